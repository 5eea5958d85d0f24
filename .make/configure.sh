#!/usr/bin/env bash
# configure.sh: find out about the compiler and the client libraries, once, and
# print what the Makefile includes: build/config.mk.
#
# The Makefile calls it again when a variable below, include/sqlock.h or this
# script has changed.  A line says which packages are missing, if any are.
#
# Environment: CC CFLAGS CPPFLAGS SAN PKG_CONFIG DRIVERS MYSQL_CLIENT
#     MYSQL_CLIENT_TREE
set -u
cd "$(dirname "$0")/.." || exit 1

fail() {
    echo "sqlock: $*" >&2
    exit 1
}

# ------------------------------------------------------------------ version

version=$(sh .make/version.sh) || exit 1
IFS=. read -r major minor _ <<<"$version"

# ---------------------------------------------------------- client libraries

command -v "$PKG_CONFIG" >/dev/null ||
    fail "pkg-config is missing: apt-get install pkg-config, or make setup"

case $MYSQL_CLIENT in
libmariadb | mysqlclient) client=$MYSQL_CLIENT ;;
auto)
    client=libmariadb
    "$PKG_CONFIG" --exists libmariadb || ! "$PKG_CONFIG" --exists mysqlclient ||
        client=mysqlclient
    ;;
*) fail "MYSQL_CLIENT=$MYSQL_CLIENT: neither auto, libmariadb nor mysqlclient" ;;
esac
[ -z "$MYSQL_CLIENT_TREE" ] || client=mysqlclient

# In this order, whatever the order in DRIVERS.
drivers='' modules=() clients=() missing=''
need() { # MODULE PACKAGE [client]
    if [ $# -eq 3 ]; then clients+=("$1"); else modules+=("$1"); fi
    "$PKG_CONFIG" --exists "$1" ||
        missing+="pkg-config does not find $1, apt-get install $2; "
}
for driver in sqlite postgres mysql; do
    case " $DRIVERS " in
    *" $driver "*) drivers+=${drivers:+ }$driver ;;
    *) continue ;;
    esac
    case $driver in
    sqlite) need sqlite3 libsqlite3-dev ;;
    postgres) need libpq libpq-dev client ;;
    mysql) [ -n "$MYSQL_CLIENT_TREE" ] || need "$client" "$client-dev" client ;;
    esac
done
for word in $DRIVERS; do
    [[ " $drivers " = *" $word "* ]] || fail \
        "DRIVERS: no driver $word; there are sqlite, postgres and mysql"
done
need libmd libmd-dev
missing=${missing//mysqlclient-dev/libmysqlclient-dev}
[ -z "$missing" ] ||
    fail "${missing}or leave the driver out of DRIVERS, or make setup"

# As system headers, which are spared our warnings.
cflags=$("$PKG_CONFIG" --cflags "${modules[@]}" ${clients[@]+"${clients[@]}"} | sed 's/-I/-isystem /g')

# -L of a directory that is searched anyway would outlive a sysroot.
libraries() { # MODULE...
    [ $# -eq 0 ] || "$PKG_CONFIG" --libs "$@" |
        sed -E 's,-L/usr/lib(/[^ ]*-linux-gnu)?/?( |$),,g'
}
libs="$(libraries "${modules[@]}") -ldl"
# Programs with connections of their own: tests and examples.
client_libs=$(libraries ${clients[@]+"${clients[@]}"})

# A client library is loaded when a URL asks for it, by the soname of the one
# whose headers are used here.
soname_in() { # PATTERN FILE
    readelf -d "$2" | sed -nE "s/.*(NEEDED|SONAME).*\\[($1\\.so[^]]*)\\].*/\\2/p" |
        head -n 1
}
soname_of() { # MODULE PATTERN
    local program name
    program=$(mktemp)
    # shellcheck disable=SC2046,SC2086 # words
    echo 'int main(void){return 0;}' | $CC -x c - -o "$program" \
        -Wl,--no-as-needed $("$PKG_CONFIG" --libs "$1") >/dev/null 2>&1
    name=$(soname_in "$2" "$program")
    rm -f "$program"
    [ -n "$name" ] || fail "no shared library of $1 to link: install it"
    echo "$name"
}
libpq='' mysql_so=''
for module in ${clients[@]+"${clients[@]}"}; do
    case $module in
    libpq) libpq=$(soname_of libpq libpq) || exit 1 ;;
    *) mysql_so=$(soname_of "$module" "lib${client#lib}") || exit 1 ;;
    esac
done

# libmysqlclient of a tree that fetch-mysql.sh has unpacked, run by that tree's
# own C library: RPATH must win over the host's path, RUNPATH would not.
tree_so='' tree_ldflags=''
if [ -n "$MYSQL_CLIENT_TREE" ] && [[ " $drivers " = *" mysql "* ]]; then
    tree=$(realpath -m "$MYSQL_CLIENT_TREE")
    tree_so=$(find "$tree/lib/" -name 'libmysqlclient.so.*' 2>/dev/null | head -n 1)
    tree_ld=$(find "$tree/lib/" -name 'ld-linux*.so.*' 2>/dev/null | head -n 1)
    [ -n "$tree_so" ] && [ -n "$tree_ld" ] ||
        fail "MYSQL_CLIENT_TREE=$MYSQL_CLIENT_TREE: no libmysqlclient in it"
    client_libs+=" $tree_so"
    mysql_so=$(soname_in libmysqlclient "$tree_so")
    cflags+=" -isystem $tree/include -isystem $tree/include/mysql"
    tree_ldflags="-Wl,--dynamic-linker=$tree_ld -Wl,--disable-new-dtags \
-Wl,-rpath,$tree/lib"
fi

# ----------------------------------------------------------------- compiler

takes() { # FLAG
    # shellcheck disable=SC2086 # CC may have words: "ccache gcc"
    ! $CC -Werror "$1" -x c -c /dev/null -o /dev/null >/dev/null 2>&1 ||
        printf ' %s' "$1"
}
harden="-fstack-protector-strong$(takes -fstack-clash-protection)$(
    takes -fcf-protection)"
# Fortify needs an optimizer, hides errors from the sanitizers, and is the
# user's where the user set it.
optimizer=$(grep -oE -- '-O[^ ]*' <<<"$CFLAGS" | tail -n 1)
case "$SAN $CPPFLAGS $CFLAGS" in
' '*FORTIFY*) ;;
' '*) [[ ! $optimizer =~ ^-O[123sgz]$ ]] ||
    harden+=' -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3' ;;
esac

# True when all that the module names for static programs is here: a program
# that links libsqlock.a would not link if ours required one that is not.
is_whole() { # MODULE
    # shellcheck disable=SC2046,SC2086 # words
    echo 'int main(void){return 0;}' | $CC -x c - -o /dev/null \
        $("$PKG_CONFIG" --static --libs "$1") >/dev/null 2>&1
}
required=() others=()
for module in "${modules[@]}"; do
    if is_whole "$module"; then required+=("$module"); else others+=("$module"); fi
done

# A # or $ of a path would be read by make.
put() { # NAME VALUE
    local value=${2//\$/\$\$}
    printf '%s := %s\n' "$1" "${value//#/\\#}"
}
put MAJOR "$major"
put MINOR "$minor"
put VERSION "$version"
put ENABLED "$drivers"
put MYSQL_LIBRARY "$client"
put DEP_CFLAGS "$cflags"
put DEP_LIBS "$libs"
put CLIENT_LIBS "$client_libs"
put LIBPQ "$libpq"
put MYSQL_SO "$mysql_so"
put TREE_SO "$tree_so"
put TREE_LDFLAGS "$tree_ldflags"
put HARDEN "$harden"
put REQUIRED "${required[*]:-}"
put NOT_REQUIRED "$(libraries ${others[@]+"${others[@]}"}) -ldl"
