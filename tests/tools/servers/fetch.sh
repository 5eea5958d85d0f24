#!/usr/bin/env bash
# fetch.sh [-l] [NAME]...: unpack servers from packages of several Debian
# suites, each under build/servers/NAME (or $SQLOCK_TEST_TREES/NAME).  Nothing
# is installed.  -l lists the names.
#
# A tree NAME has
#     usr       the unpacked packages; the programs run with the C library of
#               their suite
#     version   the version, such as "17.6-1"; made last
# A tree with a version is kept.  The script needs Debian with apt and its
# archive keyring, patchelf, network, and 100 to 400 MB for each tree.  It gets
# the versions that the archive has today.
set -eu
cd "$(dirname "$0")/../../.."
trees=${SQLOCK_TEST_TREES:-$PWD/build/servers}

# NAME SUITE PACKAGES: the version is that of the first package.
catalogue='
postgres-13  bullseye  postgresql-13
postgres-15  bookworm  postgresql-15
postgres-17  trixie    postgresql-17
postgres-18  sid       postgresql-18
mariadb-10   bookworm  mariadb-server-core mariadb-client-core mariadb-server galera-4
mariadb-11   trixie    mariadb-server-core mariadb-client-core
pgbouncer    trixie    pgbouncer
'

fail() {
    echo "fetch: $*" >&2
    exit 1
}

# Packages that are left out: those that only maintainer scripts and Perl tools
# need, those for compiling, and the compiler for just-in-time compilation,
# which the tests switch off.
useless='^(perl|libperl|libgdbm|dpkg|tar|debconf|adduser|passwd|login|base-|init'
useless+='|sysv|apt|libc6-dev|libc-dev|linux-libc|.*-dev$|gcc-.*-base|libc-gconv'
useless+='|postgresql-common|postgresql-client-common|ssl-cert|netbase|ucf'
useless+='|sensible-utils|libllvm|libclang|libz3|lsb-|mount|util-linux|bsdutils'
useless+='|coreutils|sed|grep|gzip|hostname|diffutils|findutils|bash|dash|mawk'
useless+='|ncurses-|debianutils|tzdata|openssl$|ca-certificates|systemd|logsave'
useless+='|e2fsprogs|libdbi-perl|lib.*-perl|python3|libpython|media-types)'

mirror() {
    # shellcheck disable=SC2016 # these are apt's own
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
        awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

# Configure apt with lists and a cache of its own, and without any installed
# package, so that it names all packages that a server depends on.
prepare() { # WORK SUITE
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg archive
    [ -r "$keyring" ] || fail "$keyring is missing"
    archive=$(mirror)
    [ -n "$archive" ] || fail "apt has no Debian archive to fetch from"
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/debs"
    echo "deb [signed-by=$keyring] $archive $2 main" >"$1/sources.list"
    apt=(apt-get -q -o Dir::Etc::sourcelist="$1/sources.list"
        -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$1/lists"
        -o Dir::State::status=/dev/null -o Dir::Cache="$1/cache"
        -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0
        -o Acquire::Languages=none -o Debug::NoLocking=1)
    "${apt[@]}" update >"$1/log" 2>&1 || {
        tail -n 5 "$1/log" >&2
        fail "cannot read the archive's index"
    }
}

download() { # WORK PACKAGE...
    local work=$1 packages
    shift
    mapfile -t packages < <("${apt[@]}" -s install --no-install-recommends \
        "$@" 2>>"$work/log" | awk '$1 == "Inst" { print $2 }' |
        grep -vE "$useless")
    [ ${#packages[@]} -gt 0 ] || fail "cannot be had today: $*"
    (cd "$work/debs" && "${apt[@]}" download "${packages[@]}") \
        >>"$work/log" 2>&1 || fail "cannot download: $(tail -n 1 "$work/log")"
}

# Change the programs so that they find the loader and the libraries of their
# own tree.
rebase() { # TREE
    local program loader libraries
    loader=$(find "$1/usr/lib" "$1/usr/lib64" -name 'ld-linux*.so.*' \
        2>/dev/null | head -n 1)
    [ -n "$loader" ] || fail "the packages hold no loader"
    libraries=$(find "$1/usr/lib" -maxdepth 2 -name '*.so*' -printf '%h\n' |
        sort -u | paste -sd:)
    find "$1"/usr/{bin,sbin,lib/postgresql} -type f -perm -u+x 2>/dev/null |
        while read -r program; do
            patchelf --print-interpreter "$program" >/dev/null 2>&1 || continue
            patchelf --set-interpreter "$loader" --force-rpath \
                --set-rpath "$libraries" "$program"
        done
}

fetch() { # NAME SUITE PACKAGE...
    local tree=$trees/$1 suite=$2 work=$trees/$1.new deb
    shift 2
    [ ! -e "$tree/version" ] || return 0
    command -v patchelf >/dev/null || fail "patchelf is missing"
    echo "fetch: $1 of Debian $suite into $tree"
    rm -rf "$work" "$tree"
    prepare "$work" "$suite"
    download "$work" "$@"
    mkdir -p "$tree/root"
    for deb in "$work"/debs/*.deb; do
        dpkg-deb -x "$deb" "$tree/root"
    done
    # Packages use /lib or /usr/lib, where an installed system has one folder.
    mv "$tree/root/usr" "$tree/usr"
    for deb in lib lib64 bin sbin; do
        if [ -d "$tree/root/$deb" ]; then
            mkdir -p "$tree/usr/$deb"
            cp -a "$tree/root/$deb"/. "$tree/usr/$deb/"
        fi
    done
    rm -rf "$tree/root" "$tree"/usr/share/{doc,man,locale,lintian}
    rebase "$tree"
    dpkg-deb -f "$(printf '%s\n' "$work/debs/$1"_*.deb | head -n 1)" Version \
        >"$work/version"
    mv "$work/version" "$tree/version"
    rm -rf "$work"
}

entry() { # NAME
    awk -v name="$1" '$1 == name' <<<"$catalogue"
}

if [ "${1:-}" = -l ]; then
    awk 'NF { print $1 }' <<<"$catalogue"
    exit
fi
[ $# -gt 0 ] || fail "usage: fetch.sh [-l] [NAME]..."
mkdir -p "$trees"
for name in "$@"; do
    words=$(entry "$name")
    [ -n "$words" ] || fail "there is no $name"
    # shellcheck disable=SC2086 # words
    fetch $words
done
