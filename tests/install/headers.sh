#!/usr/bin/env bash
# headers.sh: each public header compiles by itself, as C99, C11 and C++11,
# under flags stricter than most applications use.
set -u
cd "$(dirname "$0")/../.." || exit 1

strict=(-Iinclude -fsyntax-only -Wall -Wextra -Wpedantic -pedantic-errors
    -Wshadow -Wundef -Wconversion -Werror)
status=0

try() { # HEADER WHAT COMMAND...
    local header=$1 what=$2
    shift 2
    # Twice: the guard must work, too.
    if printf '#include "%s"\n#include "%s"\n%s\n' "$header" "$header" \
        'int use_it(void); int use_it(void) { return SQLOCK_EBUSY; }' |
        "$@" "${strict[@]}" -; then
        echo "ok - $header as $what by ${1##*/}"
    else
        echo "not ok - $header as $what by ${1##*/}"
        status=1
    fi
}

for header in include/*.h; do
    header=${header#include/}
    for cc in "${CC:-cc}" clang; do
        command -v "${cc%% *}" >/dev/null || continue
        for std in c99 c11; do
            # shellcheck disable=SC2086 # CC may have words
            try "$header" "$std" $cc -std=$std -x c -Wstrict-prototypes \
                -Wmissing-prototypes
        done
    done
    for cxx in "${CXX:-c++}" clang++; do
        command -v "${cxx%% *}" >/dev/null || continue
        # shellcheck disable=SC2086
        try "$header" c++11 $cxx -std=c++11 -x c++
    done
done
exit $status
