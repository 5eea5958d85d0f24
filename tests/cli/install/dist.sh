#!/usr/bin/env bash
# dist.sh: `make dist` gives the same bytes to whoever calls it: in another
# folder, at another time, under another umask and locale, and from the sources
# that it has packed.  It packs the files that git tracks.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
make=${MAKE:-make}
dist() { # FOLDER [BUILD]
    (cd "$1" &&
        "$make" --no-print-directory -s SETUP=no "BUILD=${2:-build}" dist)
}
unset MAKEFLAGS MFLAGS SOURCE_DATE_EPOCH

is_tracked=
if git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
    is_tracked=yes
    check "git clones the sources" git clone -q . "$dir/one"
    (umask 077 && git clone -q . "$dir/other") || exit 1
else
    mkdir "$dir/one" &&
        tar -c --exclude=./build --exclude=./.git . | tar -x -C "$dir/one" &&
        cp -a "$dir/one" "$dir/other" || exit 1
fi
echo 'not tracked' >"$dir/other/build.log"
[ -n "$is_tracked" ] || rm "$dir/other/build.log"
find "$dir/other" -name .git -prune -o -exec touch -h {} + || exit 1
[ -n "$is_tracked" ] ||
    touch -r "$dir/one/CHANGELOG.md" "$dir/other/CHANGELOG.md"
check "make dist" dist "$dir/one"
archive=$(cd "$dir/one/build" && echo sqlock-*.tar.xz)
LC_ALL=C.UTF-8 TZ=Asia/Tokyo check "make dist elsewhere" dist "$dir/other"
check "gives the same bytes" cmp "$dir/one/build/$archive" \
    "$dir/other/build/$archive"
check "it can be unpacked" tar -C "$dir" -xf "$dir/one/build/$archive"
name=${archive%.tar.xz}
check "and has the sources" diff -r --exclude=.git --exclude=build \
    "$dir/one" "$dir/$name"
check "make dist of what was unpacked" dist "$dir/$name"
check "gives the same bytes" cmp "$dir/one/build/$archive" \
    "$dir/$name/build/$archive"
check "make dist of it, once built, into another folder" \
    dist "$dir/$name" "$dir/elsewhere"
check "gives the same bytes" cmp "$dir/one/build/$archive" \
    "$dir/elsewhere/$archive"
exit $status
