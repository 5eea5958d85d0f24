#!/usr/bin/env bash
# mutex.sh: sqlock.hpp compiles with each compiler as each year's C++, under
# flags stricter than most applications use, and a program that is built with it
# passes its tests on each database.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/cpp.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
status=0
strict=(-Iinclude -Wall -Wextra -Wpedantic -pedantic-errors -Wshadow -Wundef
    -Wconversion -Wsign-conversion -Wold-style-cast -Werror)

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        echo "ok - $what"
    else
        tail -n 30 "$dir/out"
        echo "not ok - $what"
        status=1
    fi
}

# Twice, because the guard must work; without exceptions, too.
printf '#include "sqlock.hpp"\n#include "sqlock.hpp"\n' >"$dir/header.cc"
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || {
        echo "skip - sqlock.hpp by $cxx: it is not installed"
        continue
    }
    for std in c++17 c++20 c++2b; do
        check "sqlock.hpp as $std by $cxx" $cxx -std=$std "${strict[@]}" \
            -fsyntax-only "$dir/header.cc"
        check "and what uses it" $cxx -std=$std "${strict[@]}" -fsyntax-only \
            tests/conformance/cpp/mutex.cc
    done
    check "sqlock.hpp by $cxx without exceptions" $cxx -std=c++17 \
        "${strict[@]}" -fno-exceptions -fsyntax-only "$dir/header.cc"
done



read -ra libs <<<"$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --static \
    --libs-only-l sqlock)"
read -ra cxx <<<"${CXX:-g++}" # may have words: "ccache g++"
check "a program is built" "${cxx[@]}" -std=c++17 -O1 -g "${strict[@]}" \
    -pthread tests/conformance/cpp/mutex.cc -o "$dir/mutex" -L"$build/lib" "${libs[@]}" \
    -Wl,-rpath,"$build/lib"
[ -x "$dir/mutex" ] || exit 1

for url in ${SQLOCK_TEST_POSTGRES_URL-} ${SQLOCK_TEST_MYSQL_URL-} \
    "sqlite:$dir/locks.db"; do
    case " ${DRIVERS-sqlite postgres mysql} " in
    *" ${url%%[:q]*}"*) ;;
    *) continue ;;
    esac
    "$dir/mutex" "$url" "cpp-$$" || status=1
done
exit $status
