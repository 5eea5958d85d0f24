#!/usr/bin/env bash
# fetch-postgres.sh: unpack PostgreSQL's server programs and PgBouncer under
# build/servers, if this machine does not have them.  postgres-bin.sh and
# pgbouncer.sh find them there.
#
# Debian's packages are not installed, since they would start services and
# create a user.  They are downloaded and unpacked, with the libraries that they
# need and this machine does not have.  PostgreSQL finds its files relative to
# its programs.
set -u
cd "$(dirname "$0")/../../.." || exit 1
root=$PWD
export LC_ALL=C # apt-cache translates its words

fail() {
    printf 'tests: %s\n' "$@"
    exit 1
}

# Print the packages that would be installed with a package, but only libraries,
# server, client and pooler; and without the libraries for just-in-time
# compilation, such as libllvm, which the tests switch off.  A server comes with
# its client even where that is installed: they are looked for in one folder.
wanted() { # PACKAGE
    local found
    [ -n "$1" ] || return 1
    found=$(apt-get -s install --no-install-recommends "$1" 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
        grep -E "^(lib|postgresql-(client-)?[0-9]+$|pgbouncer$)" |
        grep -vE '^lib(llvm|clang|z3|gdbm|perl|python)|-perl$')
    [ -n "$found" ] || return 1
    case $1 in
    postgresql-*) printf '%s\n' "$found" "postgresql-client-${1#*-}" | sort -u ;;
    *) echo "$found" ;;
    esac
}

server() {
    apt-cache depends postgresql 2>/dev/null |
        sed -n 's/^ *Depends: \(postgresql-[0-9][0-9]*\)$/\1/p' | head -n 1
}

pooler() {
    echo pgbouncer
}

refresh() {
    if [ "$(id -u)" -eq 0 ]; then
        apt-get -q update >/dev/null 2>&1
    else
        sudo -n apt-get -q update >/dev/null 2>&1
    fi
}

# Download a package, and those it needs, into the working directory.  Without
# the option apt, run as root, would download as a user who may not write there.
download() { # PACKAGE
    wanted "$1" | xargs apt-get -q -o APT::Sandbox::User=root download >log 2>&1
}

unpack() { # TREE WHAT: a function that names the package
    local tree=$1 what=$2 deb
    command -v apt-get >/dev/null ||
        fail "no PostgreSQL server programs (initdb, postgres) or no PgBouncer" \
            "    here; put them on PATH or set SQLOCK_TEST_POSTGRES_URL"
    # There may be no package lists yet.  Below, they may name packages that the
    # mirror has replaced.
    [ -n "$(wanted "$($what)")" ] || refresh
    [ -n "$(wanted "$($what)")" ] ||
        fail "apt knows no PostgreSQL $what; install its programs" \
            "    or set SQLOCK_TEST_POSTGRES_URL"

    echo "setup: unpacking PostgreSQL's $what under $tree"
    rm -rf "$tree" "$tree.new"
    mkdir -p "$tree.new/debs"
    cd "$tree.new/debs" || exit 1
    download "$($what)" || { refresh && download "$($what)"; } || {
        tail -n 5 log
        fail "cannot download PostgreSQL's $what"
    }
    for deb in *.deb; do
        dpkg-deb -x "$deb" .. || exit 1
    done
    cd "$root" || exit 1
    # Packages use /lib or /usr/lib, where an installed system has one folder.
    if [ -d "$tree.new/lib" ]; then
        cp -a "$tree.new"/lib/. "$tree.new/usr/lib/" || exit 1
        rm -rf "$tree.new/lib"
    fi
    rm -rf "$tree.new"/debs "$tree.new"/usr/share/{doc,man,locale,lintian}
    mv "$tree.new" "$tree"
}

bash tests/tools/servers/postgres-bin.sh >/dev/null ||
    unpack build/servers/postgres server
bash tests/tools/servers/postgres-bin.sh >/dev/null ||
    fail "no usable PostgreSQL among the unpacked packages"

PATH=$PATH:/usr/sbin
command -v pgbouncer >/dev/null || [ -x build/servers/pooler/usr/sbin/pgbouncer ] ||
    unpack build/servers/pooler pooler
