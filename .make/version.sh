#!/bin/sh
# version.sh: print the version that include/sqlock.h has, as in 1.2.3.
cd "$(dirname "$0")/.." || exit 1
number() { # MAJOR|MINOR|PATCH
    sed -n "s/^#define SQLOCK_VERSION_$1 *\([0-9][0-9]*\)\$/\1/p" include/sqlock.h
}
version=$(number MAJOR).$(number MINOR).$(number PATCH)
case .$version. in
*..*)
    echo "include/sqlock.h: no readable SQLOCK_VERSION_MAJOR, _MINOR, _PATCH" >&2
    exit 1
    ;;
esac
echo "$version"
