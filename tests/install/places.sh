#!/usr/bin/env bash
# places.sh: what is built after `make install`, as README shows it, starts: the
# loader is told about a folder of its own, and where that cannot be, install
# says what it takes.  Runs in a mount namespace, whose /usr/local and /etc are
# forgotten at its end.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${SQLOCK_BUILD:-build}
make=${MAKE:-make}

if [ "${1-}" != inside ]; then
    namespace=(unshare -m)
    [ "$(id -u)" -eq 0 ] || namespace=(unshare -rm)
    "${namespace[@]}" true 2>/dev/null || {
        echo "skip - install into the system: there are no mount namespaces"
        exit 77
    }
    work=$(mktemp -d /tmp/sqlock-places.XXXXXX) || exit 1
    trap 'rm -rf "$work"' EXIT
    cp -a "$build" "$work/build"
    "${namespace[@]}" bash "$0" inside "$work"
    exit
fi

work=$2
status=0
mkdir "$work/layers"
mount -t tmpfs layers "$work/layers" || exit 1
for place in usr/local etc; do
    mkdir -p "$work/layers/$place"/{up,work}
    mount -t overlay "$place" -o "lowerdir=/$place,upperdir=$work/layers/$place/up,workdir=$work/layers/$place/work" \
        "/$place" || {
        echo "skip - install into the system: there is no overlay file system"
        exit 77
    }
done

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        cat "$work/out"
        echo "not ok - $what"
        status=1
    fi
}
# SETUP=no: a test installs no packages.
install_in() { # VARIABLE=VALUE...
    "$make" --no-print-directory install SETUP=no DESTDIR= \
        "BUILD=$work/build" "$@" >"$work/said"
}
says() { # LINE
    cat "$work/said"
    grep -qxF -- "$1" "$work/said"
}

unset LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_LIBDIR
read -ra cc <<<"${CC:-cc}" # may have words: "ccache gcc"
library=$(basename "$(readlink "$build/lib/libsqlock.so")")
sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' >"$work/example.c"

check "make install" install_in PREFIX=/usr/local
check "it says that ldconfig has been run" \
    says "  library   /usr/local/lib/$library (ldconfig has been run)"
check "and where pkg-config looks anyway" \
    says "  flags     /usr/local/lib/pkgconfig/sqlock.pc"
cd "$work" || exit 1
# shellcheck disable=SC2046 # lists of flags
check "README's example is built" \
    "${cc[@]}" example.c $(pkg-config --cflags --libs sqlock) -o example
check "and starts" ./example
check "the command is there" sqlock --version
cd - >/dev/null || exit 1

check "make install into a folder that the loader does not search" \
    install_in "PREFIX=$work/elsewhere"
check "it says how the library is found" says "  library   $work/elsewhere/lib/\
$library; found with LD_LIBRARY_PATH=$work/elsewhere/lib"
check "and how pkg-config finds it" says "  flags     $work/elsewhere/lib/\
pkgconfig/sqlock.pc; found with PKG_CONFIG_PATH=$work/elsewhere/lib/pkgconfig"

printf '#!/bin/sh\necho 1000\n' >"$work/id"
chmod +x "$work/id"
PATH=$work:$PATH check "make install without being root" \
    install_in PREFIX=/usr/local
check "says what is left to be done" \
    says "  library   /usr/local/lib/$library; found once root has run ldconfig"
exit $status
