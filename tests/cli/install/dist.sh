#!/usr/bin/env bash
# dist.sh: `make dist` gives the same bytes to whoever calls it: in another
# folder, at another time, under another umask and locale, and from the sources
# that it has packed.  It packs the files that git tracks.
set -u
cd "$(dirname "$0")/../../.." || exit 1
make=${MAKE:-make}
work=$(mktemp -d /tmp/sqlock-dist.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

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
dist() { # FOLDER [BUILD]
    (cd "$1" &&
        "$make" --no-print-directory -s SETUP=no "BUILD=${2:-build}" dist)
}
unset MAKEFLAGS MFLAGS SOURCE_DATE_EPOCH

is_tracked=
if git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
    is_tracked=yes
    check "git clones the sources" git clone -q . "$work/one"
    (umask 077 && git clone -q . "$work/other") || exit 1
else
    mkdir "$work/one" &&
        tar -c --exclude=./build --exclude=./.git . | tar -x -C "$work/one" &&
        cp -a "$work/one" "$work/other" || exit 1
fi
echo 'not tracked' >"$work/other/build.log"
[ -n "$is_tracked" ] || rm "$work/other/build.log"
find "$work/other" -name .git -prune -o -exec touch -h {} + || exit 1
[ -n "$is_tracked" ] ||
    touch -r "$work/one/CHANGELOG.md" "$work/other/CHANGELOG.md"
check "make dist" dist "$work/one"
archive=$(cd "$work/one/build" && echo sqlock-*.tar.xz)
LC_ALL=C.UTF-8 TZ=Asia/Tokyo check "make dist elsewhere" dist "$work/other"
check "gives the same bytes" cmp "$work/one/build/$archive" \
    "$work/other/build/$archive"
check "it can be unpacked" tar -C "$work" -xf "$work/one/build/$archive"
name=${archive%.tar.xz}
check "and has the sources" diff -r --exclude=.git --exclude=build \
    "$work/one" "$work/$name"
check "make dist of what was unpacked" dist "$work/$name"
check "gives the same bytes" cmp "$work/one/build/$archive" \
    "$work/$name/build/$archive"
check "make dist of it, once built, into another folder" \
    dist "$work/$name" "$work/elsewhere"
check "gives the same bytes" cmp "$work/one/build/$archive" \
    "$work/elsewhere/$archive"
exit $status
