#!/usr/bin/env bash
# exports.sh: the shared library exports what the public headers declare and
# nothing else; the static library's other symbols begin with lk_.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
status=0

# A declared function is a name of ours before a parenthesis, in the text that
# the compiler sees; pointers to functions are no such thing.
declared=$(printf '#include "%s"\n' include/*.h include/sqlock/*.h |
    ${CC:-cc} -E -P -Iinclude -I. -x c - | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    grep -v '\<typedef\>' | grep 'visibility' |
    sed 's/__attribute__ *(([^()]*\(([^()]*)\)*[^()]*))//g' |
    grep -oE '\<sqlock_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
exported=$(nm -D --defined-only "$build/lib/libsqlock.so" |
    awk '{ print $3 }' | sort -u)

if [ -z "$declared" ]; then
    echo "not ok - the headers declare functions"
    status=1
elif difference=$(diff <(echo "$declared") <(echo "$exported")); then
    echo "ok - $(echo "$declared" | wc -l) exported symbols are the headers'"
else
    echo "declared (<) and exported (>):"
    echo "$difference"
    echo "not ok - exported symbols are the headers'"
    status=1
fi

strays=$(nm -g --defined-only "$build/lib/libsqlock.a" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(lk_|sqlock_|__|_ITM|_\.stapsdt)/ { print $3 }' |
    sort -u)
if [ -z "$strays" ]; then
    echo "ok - symbols of the static library have a prefix"
else
    echo "without a prefix:" $strays
    echo "not ok - symbols of the static library have a prefix"
    status=1
fi
exit $status
