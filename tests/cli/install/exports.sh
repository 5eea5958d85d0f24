#!/usr/bin/env bash
# exports.sh: the shared library exports what the public headers declare and
# nothing else; the static library's other symbols begin with lk_.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

# A declared function is a name of the library before a parenthesis, in the text
# that the compiler sees; a pointer to a function is not one.
declared=$(printf '#include "%s"\n' include/*.h include/sqlock/*.h |
    ${CC:-cc} -E -P -Iinclude -I. -x c - | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    grep -v '\<typedef\>' | grep 'visibility' |
    sed 's/__attribute__ *(([^()]*\(([^()]*)\)*[^()]*))//g' |
    grep -oE '\<sqlock_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
exported=$(nm -D --defined-only "$build/lib/libsqlock.so" |
    awk '{ print $3 }' | sort -u)

are_the_headers() {
    [ -n "$declared" ] && diff <(echo "$declared") <(echo "$exported")
}
check "$(wc -l <<<"$exported") exported symbols are the headers'" are_the_headers

static=$(nm -g --defined-only "$build/lib/libsqlock.a" 2>/dev/null)
has_no_strays() {
    [ -n "$static" ] && ! awk '
        NF == 3 && $3 !~ /^(lk_|sqlock_|__|_ITM|_\.stapsdt)/ { print $3 }' \
        <<<"$static" | sort -u | grep .
}
check "symbols of the static library have a prefix" has_no_strays
exit $status
