#!/usr/bin/env bash
# compile.sh: sqlock.hpp and sqlock/*.hpp compile with each compiler as C++17,
# C++20 and C++23, and the programs of this folder as the oldest and the newest
# of these, under flags stricter than most applications use.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
strict=(-Iinclude -Wall -Wextra -Wpedantic -pedantic-errors -Wshadow -Wundef
    -Wconversion -Wsign-conversion -Wold-style-cast -Werror)

case " ${DRIVERS-sqlite} " in
*' sqlite '*) strict+=(-DHAVE_SQLITE) ;;
esac
headers=(include/*.hpp include/sqlock/*.hpp)
headers=("${headers[@]#include/}")

# Check by the compiler $1 that $2 compiles as that language and with options.
compiles() { # COMPILER FILE LANGUAGE...
    check "${2##*/} as ${*:3} by $1" "$1" -std="$3" "${strict[@]}" "${@:4}" \
        -fsyntax-only "$2"
}

# Each header by itself, included twice to test its include guard.
for header in "${headers[@]}"; do
    mkdir -p "$dir/twice/${header%/*}"
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" \
        >"$dir/twice/$header.cc"
    compiles g++ "$dir/twice/$header.cc" c++17
done
printf '#include "%s"\n' "${headers[@]}" >"$dir/headers.cc"
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || {
        echo "skip - sqlock.hpp by $cxx: it is not installed"
        continue
    }
    compiles $cxx "$dir/headers.cc" c++17 -fno-exceptions
    for language in c++17 c++20 c++2b; do
        compiles $cxx "$dir/headers.cc" $language
    done
done
for program in tests/conformance/cpp/*.cc; do
    compiles g++ "$program" c++17
    ! command -v clang++ >/dev/null || compiles clang++ "$program" c++2b
done
exit $status
