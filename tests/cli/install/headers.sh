#!/usr/bin/env bash
# headers.sh: each public header compiles by itself, as C and C++ of all years,
# and so does what applications write with its macros, under flags stricter than
# most applications use.
set -u
cd "$(dirname "$0")/../../.." || exit 1

strict=(-Iinclude -fsyntax-only -Wall -Wextra -Wpedantic -pedantic-errors
    -Wshadow -Wundef -Wconversion -Werror)
status=0
headers=(include/*.h include/sqlock/*.h)
headers=("${headers[@]#include/}")

# Begin a struct of each kind that has defaults, and reset it later.
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

try_macros() { # WHAT COMMAND...
    local what=$1
    shift
    if { printf '#include "%s"\n' "${headers[@]}" && echo "$uses" &&
        echo "size_t use_all(void); size_t use_all(void) { return 0" &&
        grep -o 'use_.*_INIT(' <<<"$uses" | sed 's/.*/+ &)/' &&
        echo '; }'; } | "$@" "${strict[@]}" -; then
        echo "ok - macros as $what by ${1##*/}"
    else
        echo "not ok - macros as $what by ${1##*/}"
        status=1
    fi
}

each() { # STANDARD COMPILER FLAG...
    local std=$1
    shift
    for header in "${headers[@]}"; do
        try "$header" "$std" "$@"
    done
    try_macros "$std" "$@"
}
for cc in "${CC:-cc}" clang; do
    command -v "${cc%% *}" >/dev/null || continue
    for std in c99 c11 c17; do
        # shellcheck disable=SC2086 # CC may have words
        each "$std" $cc -std=$std -x c -Wstrict-prototypes \
            -Wmissing-prototypes
    done
done
for cxx in "${CXX:-c++}" clang++; do
    command -v "${cxx%% *}" >/dev/null || continue
    for std in c++11 c++14 c++17 c++20; do
        # shellcheck disable=SC2086
        each "$std" $cxx -std=$std -x c++
    done
done
exit $status
