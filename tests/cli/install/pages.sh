#!/usr/bin/env bash
# pages.sh: each public name has a description and a manual page, the pages are
# without errors, and the calling sequence of each header compiles.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
tool=src/man/pages.pl
headers=(include/sqlock.h include/sqlock/*.h)
read -ra cc <<<"${CC:-cc}"

# ---------------------------------------------------------- descriptions --

check "each public name has a description in its header" perl $tool --check
mkdir "$dir/man3"
check "pages are made" perl $tool --out "$dir/man3"
says_nothing() { # COMMAND...
    "$@" >"$dir/said" 2>&1 && cat "$dir/said" && [ ! -s "$dir/said" ]
}
check "without a word of what was not expected" says_nothing \
    perl $tool --out "$dir/man3"

# Find names by other means than pages.pl: exported symbols, and words of the
# code.
functions_have_pages() {
    local name missing=0 count=0
    for name in $(nm -D --defined-only "$build/lib/libsqlock.so" |
        awk '{ print $3 }'); do
        count=$((count + 1))
        [ -s "$dir/man3/$name.3" ] || {
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
    cat "$dir"/man3/*.3 >"$dir/all"
    [ "$(words_of_code '\<(SQLOCK|sqlock)_\w+' | wc -l)" -gt 200 ] || return 1
    for name in $(words_of_code '\<(SQLOCK|sqlock)_\w+' |
        grep -vxE 'SQLOCK_(API|MUSTUSE|INLINE|SIZED|ERRORS|EVENTS|EVENT_|X|VERSION_[A-Z]+|[A-Z]*_?H)|sqlock_sized'); do
        grep -qE "(^|[^A-Za-z0-9_])$name([^A-Za-z0-9_]|\$)" "$dir/all" || {
            echo "$name is on no page"
            missing=1
        }
    done
    return $missing
}
check "each function, type, constant and macro is on a page" words_have_pages

# The reverse: pages name nothing that is not in the headers.
pages_name_what_is_there() {
    local word missing=0
    { perl $tool --names | awk '{ print $2 }'
        words_of_code '\<(SQLOCK|sqlock)_\w+'
        sed -n 's/^ *X(\(E[A-Z]*\),.*/SQLOCK_\1/p' include/sqlock.h; } |
        sort -u >"$dir/there"
    for word in $(cat "$dir"/man3/*.3 | grep -oE '\<(SQLOCK|sqlock)_\w+' | sort -u); do
        grep -qxF "$word" "$dir/there" ||
            grep -qxiF "$word" "$dir/there" || {
            echo "$word is in no header"
            missing=1
        }
    done
    return $missing
}
check "pages name what the headers have" pages_name_what_is_there

# The pages of C++ and Python have the names of their own.
are_on_page() { # PAGE NAME...
    local name missing=0 page=src/man/$1
    shift
    [ $# -gt 30 ] || return 1
    for name; do
        grep -qE "(^|[^A-Za-z0-9_])$name([^A-Za-z0-9_]|\$)" "$page" || {
            echo "$name is not on $page"
            missing=1
        }
    done
    return $missing
}
# Names in namespace sqlock itself; classes whose names end in _access are not
# for applications.
names_of_cpp() {
    perl -0777 -ne '
        s{^namespace detail\n\{\n(?:struct .*\n)*\}\n}{}mg;
        s{^namespace (?:sqlock::)?detail\n.*?^\} /\* namespace (?:sqlock::)?detail}{}msg;
        print "$_\n" for grep { !/^(?:result|.*_access)$/ }
            m{^(?:template <.*?>\s)?(?:class|struct)\s(?:\[\[nodiscard\]\]\s)?(\w+)[^;]*?\{}mg,
            m{^(?:inline\s)?[\w:][\w:<>,\s]*?\s(\w+)\((?!const\s\w+\s&\)\n)}mg' \
        include/*.hpp include/sqlock/*.hpp | sort -u
}
# shellcheck disable=SC2046 # lists of names
check "sqlock-cpp.7 has each class and function" are_on_page sqlock-cpp.7 \
    $(names_of_cpp)
names_of_python() {
    SQLOCK_LIBRARY=$build/lib/libsqlock.so PYTHONPATH=src/python \
        PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" -c '
import sqlock
for name in sqlock.__all__:
    print(name)
    one = getattr(sqlock, name)
    if isinstance(one, type) and not issubclass(one, (BaseException, tuple)):
        for base in one.__mro__:
            if base.__module__.startswith("sqlock"):
                print(*(member for member in vars(base) if member[0] != "_"))'
}
# shellcheck disable=SC2046
check "sqlock-python.7 has each name of the package" are_on_page \
    sqlock-python.7 $(names_of_python)

# A declaration without a description is found.
finds() { # NAME FILE SED-SCRIPT: once the script has changed the header
    rm -rf "$dir/tree"
    mkdir -p "$dir/tree/src"
    cp -r include "$dir/tree"
    cp -r src/man "$dir/tree/src"
    sed -i "$3" "$dir/tree/include/$2"
    ! cmp -s "include/$2" "$dir/tree/include/$2" || return 1
    ! perl "$dir/tree/$tool" --check >"$dir/found" &&
        grep -q "^$2: $1 has no description" "$dir/found"
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

# A calling sequence compiles as the body of a function, after these
# declarations.
mkdir "$dir/examples"
check "calling sequences are found" perl $tool --examples "$dir/examples"
compiles() { # FILE
    {
        printf '#include <%s>\n' poll.h stdio.h string.h unistd.h \
            sys/eventfd.h "${headers[@]#include/}"
        cat <<'EOF'
extern sqlock_registry *registry;
extern sqlock_registry *registries[3];
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
    example=$dir/examples/${name//\//-}.c
    [ "$header" = include/sqlock.h ] || check "$name.h opens with a calling sequence" \
        test -s "$example"
done
for example in "$dir"/examples/*.c; do
    check "the calling sequence of ${example##*/} compiles" compiles "$example"
done

# ----------------------------------------------------------------- pages --

if command -v mandoc >/dev/null; then
    # mandoc looks for pages that are referred to among those that are
    # installed, so look for them here.
    check "pages have no errors" mandoc -Tlint -Wwarning "$dir"/man3/*.3
    for target in $(sed -n 's/^\.Xr \(sqlock[a-z0-9_-]*\) 3.*/\1/p' \
        "$dir"/man3/*.3 | sort -u); do
        [ -s "$dir/man3/$target.3" ] || check "there is a page $target" false
    done
    check "the manual as HTML is made" perl src/man/html.pl "$dir/man3" \
        "$dir/doc"
    # A long page has a table of contents, with each of its headings.
    contents_are_whole() {
        local page headings listed long=0 missing=0
        for page in "$dir"/doc/*.[0-9].html; do
            headings=$(grep -oE '<h[12] class="S[hs]" id="[^"]*"' "$page" |
                sed 's/.* id="//; s/"//')
            listed=$(sed -n '/<details class="toc">/,/<\/details>/p' "$page" |
                grep -v 'class="Cm"' | grep -oE 'href="#[^"]*"' |
                sed 's/href="#//; s/"//')
            [ "$(wc -l <<<"$headings")" -le 6 ] && headings=
            long=$((long + (${#headings} > 0)))
            [ "$headings" = "$listed" ] || {
                echo "${page##*/}: $listed"
                missing=1
            }
        done
        [ $long -gt 10 ] && [ $missing = 0 ]
    }
    check "a long page has a table of its headings" contents_are_whole
    check "and links within a page lead somewhere" bash -c '
        cd "$1" || exit 1
        status=0
        for page in ./*.html; do
            for target in $(grep -oE "href=\"#[^\"]*" "$page" | cut -c8- |
                sort -u); do
                grep -qF "id=\"$target\"" "$page" ||
                    { echo "$page#$target"; status=1; }
            done
        done
        exit $status' - "$dir/doc"
    check "and its links lead to files of its own" bash -c '
        cd "$1" || exit 1
        status=0
        for target in $(grep -oh "href=\"[^\"#]*" ./*.html | cut -c7- |
            grep -v : | sort -u); do
            [ -s "$target" ] || { echo "$target"; status=1; }
        done
        exit $status' - "$dir/doc"
else
    echo "skip - manual pages: mandoc is not installed"
fi
exit $status
