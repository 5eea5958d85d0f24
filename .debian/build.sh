#!/usr/bin/env bash
# build.sh ARCHIVE FOLDER: build Debian packages of the source archive that
# `make dist` makes, in FOLDER, and have lintian look them over.
#
# The folder with the packaging is called .debian in the sources, because their
# top level stays as it is; in the unpacked archive it is the debian/ that
# dpkg-buildpackage wants.  The whole output is in FOLDER/log.
#
# DEB_BUILD_OPTIONS=nocheck leaves the unit tests out.
set -u
[ $# -eq 2 ] || {
    echo "usage: build.sh ARCHIVE FOLDER" >&2
    exit 2
}
archive=$(realpath "$1") && folder=$(realpath -m "$2") || exit 1

fail() {
    echo "build.sh: $*" >&2
    exit 1
}

name=$(basename "$archive" .tar.xz)
rm -rf "$folder"
mkdir -p "$folder" && cd "$folder" || exit 1
cp "$archive" "${name/-/_}.orig.tar.xz" && tar -xf "$archive" &&
    cp -a "$name/.debian" "$name/debian" || fail "cannot unpack $archive"
rm "$name/debian/build.sh"
version=$(dpkg-parsechangelog -l "$name/debian/changelog" -S Version)
[ "${version%-*}" = "${name#*-}" ] ||
    fail ".debian/changelog is of $version, the sources are of ${name#*-}"

# What calls us may be make, with settings of a build of its own.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES BUILD CC SAN CFLAGS CPPFLAGS \
    LDFLAGS DRIVERS SUITES SOURCE_DATE_EPOCH
(cd "$name" && dpkg-buildpackage --no-sign -j"$(nproc)") >log 2>&1 </dev/null || {
    tail -n 20 log >&2
    fail "dpkg-buildpackage failed, see $folder/log"
}
# The maintainers have no public address yet; one in .example is nobody's.  The
# manual pages, of which there are two hundred, `make lint` has given to mandoc:
# lintian would take longer over them than over all the rest.
lintian --profile debian --allow-root --fail-on error,warning --info \
    --dont-check-part documentation/manual --suppress-tags \
    bogus-mail-host,bogus-mail-host-in-debian-changelog \
    ./*.changes >lintian 2>&1 || {
    cat lintian
    fail "lintian is not content"
}
for package in *.deb; do
    case $package in
    *-dbgsym_*) ;;
    *) echo "  $folder/$package" ;;
    esac
done
