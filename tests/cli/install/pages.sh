#!/usr/bin/env bash
# pages.sh: each public name has a description and a manual page, the pages are
# without errors, and the calling sequence of each header compiles.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
work=$(mktemp -d /tmp/sqlock-pages.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
tool=src/man/pages.pl
headers=(include/sqlock.h include/sqlock/*.h)
read -ra cc <<<"${CC:-cc}"

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        head -n 30 "$work/out"
        echo "not ok - $what"
        status=1
    fi
}

# ---------------------------------------------------------- descriptions --

check "each public name has a description in its header" perl $tool --check
mkdir "$work/man3"
check "pages are made" perl $tool --out "$work/man3"
check "without a word of what was not expected" test ! -s "$work/out"

# Names by other means than the tool's: symbols, and words of the code.
functions_have_pages() {
    local name missing=0 count=0
    for name in $(nm -D --defined-only "$build/lib/libsqlock.so" |
        awk '{ print $3 }'); do
        count=$((count + 1))
        [ -s "$work/man3/$name.3" ] || {
            echo "$name() has no page"
            missing=1
        }
    done
    [ "$count" -gt 50 ] && [ $missing = 0 ]
}
check "each exported function has a page" functions_have_pages
words_of_code() { # PATTERN: in the headers, outside of comments
    "${cc[@]}" -fpreprocessed -dD -E -P -x c "${headers[@]}" 2>/dev/null |
        grep -oE "$1" | sort -u
}
words_have_pages() {
    local name missing=0
    cat "$work"/man3/*.3 >"$work/all"
    [ "$(words_of_code '\<(SQLOCK|sqlock)_\w+' | wc -l)" -gt 300 ] || return 1
    for name in $(words_of_code '\<(SQLOCK|sqlock)_\w+' |
        grep -vxE 'SQLOCK_(API|MUSTUSE|SIZED|ERRORS|EVENTS|EVENT_|X|VERSION_[A-Z]+|[A-Z]*_?H)|sqlock_sized'); do
        grep -qE "(^|[^A-Za-z0-9_])$name([^A-Za-z0-9_]|\$)" "$work/all" || {
            echo "$name is on no page"
            missing=1
        }
    done
    return $missing
}
check "each function, type, constant and macro is on a page" words_have_pages

# And the other way round: a page names nothing that is not there.
pages_name_what_is_there() {
    local word missing=0
    { perl $tool --names | awk '{ print $2 }'
        words_of_code '\<(SQLOCK|sqlock)_\w+'
        sed -n 's/^ *X(\(E[A-Z]*\),.*/SQLOCK_\1/p' include/sqlock.h; } |
        sort -u >"$work/there"
    for word in $(cat "$work"/man3/*.3 | grep -oE '\<(SQLOCK|sqlock)_\w+' | sort -u); do
        grep -qxF "$word" "$work/there" ||
            grep -qxiF "$word" "$work/there" || {
            echo "$word is in no header"
            missing=1
        }
    done
    return $missing
}
check "pages name what the headers have" pages_name_what_is_there

# A declaration without a description is found.
finds() { # NAME FILE SED-SCRIPT: once the script has changed the header
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src"
    cp -r include "$work/tree"
    cp -r src/man "$work/tree/src"
    sed -i "$3" "$work/tree/include/$2"
    ! cmp -s "include/$2" "$work/tree/include/$2" || return 1
    ! perl "$work/tree/$tool" --check >"$work/found" &&
        grep -q "^$2: $1 has no description" "$work/found"
}
check "a function without a description is found" finds sqlock_again \
    sqlock/many.h 's/^#endif \/\* SQLOCK_MANY_H.*/\nint sqlock_again(int n);\n&/'
check "an option without one is found" finds sqlock_options.again \
    sqlock.h 's/^    sqlock_event_fn on_event;/    int again;\n\n&/'
check "a constant without one is found" finds sqlock_sort.SQLOCK_SORT_AGAIN \
    sqlock/admin.h 's/^    SQLOCK_SORT_HELD,/    SQLOCK_SORT_AGAIN,\n&/'
check "a macro without one is found" finds SQLOCK_AGAIN \
    sqlock/many.h 's/^#endif \/\* SQLOCK_MANY_H.*/\n#define SQLOCK_AGAIN 1\n&/'

# -------------------------------------------------------------- examples --

# A calling sequence is the body of a function, with these names around it.
mkdir "$work/examples"
check "calling sequences are found" perl $tool --examples "$work/examples"
compiles() { # FILE
    {
        printf '#include <%s>\n' poll.h stdio.h string.h unistd.h \
            sys/eventfd.h "${headers[@]#include/}"
        cat <<'EOF'
extern sqlock_registry *registry;
extern sqlock_lock *lock;
extern sqlock_lock *locks[8];
extern sqlock_error err;
extern int rc;
extern const char *url;
int work_to_do(void);
void do_a_step(void);
int example(void);
int example(void)
{
{
EOF
        cat "$1"
        printf '\n}\nreturn 0;\n}\n'
    } >"$1.whole.c"
    "${cc[@]}" -std=gnu11 -Wall -Wextra -Werror -Wno-unused-but-set-variable \
        -Iinclude -fsyntax-only "$1.whole.c"
}
for header in "${headers[@]}"; do
    name=${header#include/}
    name=${name%.h}
    example=$work/examples/${name//\//-}.c
    [ "$header" = include/sqlock.h ] || check "$name.h opens with a calling sequence" \
        test -s "$example"
done
for example in "$work"/examples/*.c; do
    check "the calling sequence of ${example##*/} compiles" compiles "$example"
done

# ----------------------------------------------------------------- pages --

if command -v mandoc >/dev/null; then
    # The linter looks for pages that are referred to among those installed.
    check "pages have no errors" mandoc -Tlint -Wwarning "$work"/man3/*.3
    for target in $(sed -n 's/^\.Xr \(sqlock[a-z0-9_-]*\) 3.*/\1/p' \
        "$work"/man3/*.3 | sort -u); do
        [ -s "$work/man3/$target.3" ] || check "there is a page $target" false
    done
    check "the manual as HTML is made" bash src/man/html.sh "$work/man3" \
        "$work/doc"
    check "and its links lead to files of its own" bash -c '
        cd "$1" || exit 1
        status=0
        for target in $(grep -oh "href=\"[^\"#]*" ./*.html | cut -c7- |
            grep -v : | sort -u); do
            [ -s "$target" ] || { echo "$target"; status=1; }
        done
        exit $status' - "$work/doc"
else
    echo "skip - manual pages: mandoc is not installed"
fi
exit $status
