#!/usr/bin/env bash
# headers.sh: each public header compiles by itself, as C and C++ of several
# years, and so do uses of its macros as in applications, under flags stricter
# than those of most applications.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

strict=(-Iinclude -fsyntax-only -Wall -Wextra -Wpedantic -pedantic-errors
    -Wshadow -Wundef -Wconversion -Werror)
headers=(include/*.h include/sqlock/*.h)
headers=("${headers[@]#include/}")

# A function for each macro SQLOCK_..._INIT: it initializes structs by the
# macro, and later resets one.
uses=$(sed -n 's/^#define \(SQLOCK_[A-Z]*_INIT\) SQLOCK_SIZED(\([a-z_]*\))$/\
static size_t use_\1(void)\n{\n    \2 one = \1;\n    const \2 other = \1;\n\
    one = (\2)\1;\n    return one.size + other.size;\n}/p' include/*.h \
    include/sqlock/*.h)
[ "$(grep -c '_INIT(void)' <<<"$uses")" = \
    "$(grep -c '^#define SQLOCK_[A-Z]*_INIT ' include/*.h include/sqlock/*.h |
        awk -F: '{ n += $2 } END { print n }')" ] || {
    echo "not ok - every macro that ends in _INIT is tried"
    status=1
}

compiles() { # SOURCE COMMAND...
    local source=$1
    shift
    "$@" "${strict[@]}" - <<<"$source"
}

use_it='int use_it(void); int use_it(void) { return SQLOCK_EBUSY; }'
macros=$(printf '#include "%s"\n' "${headers[@]}" && echo "$uses" &&
    echo "size_t use_all(void); size_t use_all(void) { return 0" &&
    grep -o 'use_.*_INIT(' <<<"$uses" | sed 's/.*/+ &)/' && echo '; }')

each() { # STANDARD COMPILER FLAG...
    local std=$1
    shift
    for header in "${headers[@]}"; do
        # Twice: the guard must work, too.
        check "$header as $std by ${1##*/}" compiles "$(printf \
            '#include "%s"\n' "$header" "$header")
$use_it" "$@"
    done
    check "macros as $std by ${1##*/}" compiles "$macros" "$@"
}
has() { # COMPILER
    command -v "${1%% *}" >/dev/null ||
        ! echo "skip - headers by $1: it is not installed"
}
for cc in "${CC:-cc}" clang; do
    has "$cc" || continue
    for std in c99 c11 c17; do
        # shellcheck disable=SC2086 # CC may have words
        each "$std" $cc -std=$std -x c -Wstrict-prototypes \
            -Wmissing-prototypes
    done
done
for cxx in "${CXX:-c++}" clang++; do
    has "$cxx" || continue
    for std in c++11 c++14 c++17 c++20; do
        # shellcheck disable=SC2086
        each "$std" $cxx -std=$std -x c++
    done
done
exit $status
