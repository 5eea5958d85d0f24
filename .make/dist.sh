#!/usr/bin/env bash
# dist.sh ARCHIVE NAME: pack the sources as ARCHIVE, below a folder NAME.
#
# The archive has the files that git tracks or, outside of git, all but the
# built ones; with the time of the last commit, in one order, and without their
# owners, so that everybody gets the same bytes, also from an archive unpacked.
#
# Environment: BUILD (folder of the build, left out) SOURCE_DATE_EPOCH
set -eu -o pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
archive=$1 name=$2
mkdir -p "$(dirname "$archive")"

if git ls-files --error-unmatch Makefile >/dev/null 2>&1; then
    files() { git ls-files -z; }
    time=$(git log -1 --format=%ct)
else
    files() {
        find . \( -path "./$BUILD" -o -path ./build -o -path ./.git \) -prune \
            -o -type f -printf '%P\0'
    }
    time=$(stat -c %Y CHANGELOG.md)
fi
files | sort -z | tar --create --format=gnu --owner=root:0 --group=root:0 \
    --numeric-owner --mode=u=rwX,go=rX --mtime="@${SOURCE_DATE_EPOCH:-$time}" \
    --no-recursion --transform="s,^,$name/," --null --files-from=- |
    xz -2 -T1 >"$archive.new"
mv "$archive.new" "$archive"
