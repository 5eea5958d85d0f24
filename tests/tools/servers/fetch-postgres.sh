#!/usr/bin/env bash
# fetch-postgres.sh: PostgreSQL's server programs and PgBouncer, unpacked under
# build/servers where there are none.  Prints nothing but what it does;
# postgres-bin.sh and pgbouncer.sh find them.
#
# Debian's packages would start services and make a user, so they are not
# installed: they and those libraries they need that are not here are downloaded
# and unpacked.  PostgreSQL finds its files relative to its programs.
set -u
cd "$(dirname "$0")/../../.." || exit 1
root=$PWD

fail() {
    printf 'tests: %s\n' "$@"
    exit 1
}

# Print the packages that a package needs: libraries, server, client and pooler
# only.  libllvm serves just-in-time compilation, which the tests switch off.
wanted() { # PACKAGE
    [ -n "$1" ] || return 1
    apt-get -s install --no-install-recommends "$1" 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
        grep -E "^(lib|postgresql-(client-)?[0-9]+$|pgbouncer$)" |
        grep -vE '^lib(llvm|clang|z3|gdbm|perl|python)|-perl$'
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

# Into the present folder.  As root apt would download as another user, who may
# not write here.
download() { # PACKAGE
    wanted "$1" | xargs apt-get -q -o APT::Sandbox::User=root download >log 2>&1
}

unpack() { # TREE WHAT: a function that names the package
    local tree=$1 what=$2 deb
    command -v apt-get >/dev/null ||
        fail "no PostgreSQL server programs (initdb, postgres) or no PgBouncer" \
            "    here; put them on PATH or set SQLOCK_TEST_POSTGRES_URL"
    # No package lists yet, or lists that name what the mirror has replaced.
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
    # Where /lib is a link to /usr/lib, packages may still use the one or the
    # other.
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
