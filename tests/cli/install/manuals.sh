#!/usr/bin/env bash
# manuals.sh: the manual pages are without errors, and say of the command and of
# the library what these say themselves.
set -u
cd "$(dirname "$0")/../../.." || exit 1
root=$PWD
build=${SQLOCK_BUILD:-build}
case $build in
/*) ;;
*) build=$root/$build ;;
esac
: "${SQLOCK:=$build/bin/sqlock}"
unset SQLOCK_URL SQLOCK_REGION
work=$(mktemp -d /tmp/sqlock-manuals.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        cat "$work/out"
        echo "not ok - $what"
        status=1
    fi
}

if ! command -v mandoc >/dev/null; then
    echo "skip - manual pages: mandoc is not installed"
    exit 0
fi

# The overview of the library, with the lists that come from the headers.
mkdir "$work/man3"
perl src/man/pages.pl --out "$work/man3"
for page in src/man/*.[1-9]; do
    [ "${page##*/}" != sqlock.3 ] || page=$work/man3/sqlock.3
    check "$page has no errors" mandoc -Tlint -Wwarning "$page"
    mandoc -Tascii "$page" |
        sed "s,.\x08,,g" >"$work/${page##*/}.txt"
done

# mandoc takes some words of a heading for macros: "In place" became "<place>".
no_macro_in_headings() {
    ! grep -nE '^\.(It|Ss|Sh) (.* )?(An|At|Do|In|No) ' src/man/*.[1-9]
}
check "no word of a heading is a macro" no_macro_in_headings

# Options and commands, in the help and in the manual.
options() {
    grep -oE -- '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}
same() { # MANUAL HELP
    diff "$1" "$2" && [ -s "$1" ]
}
for command in $("$SQLOCK" --help | sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p'); do
    "$SQLOCK" "$command" --help >"$work/$command.help"
    [ "$command" = run ] || cat "$work/$command.help" >>"$work/help"
    check "sqlock.1 has $command" grep -Eq "^ {5}$command( |$)" \
        "$work/sqlock.1.txt"
done
"$SQLOCK" --help >>"$work/help"
options <"$work/help" >"$work/help.options"
options <"$work/sqlock.1.txt" >"$work/manual.options"
check "sqlock.1 has the options of --help" same "$work/manual.options" \
    "$work/help.options"
options <"$work/run.help" | grep -vx -e --help >"$work/help.options"
options <"$work/sqlock-run.1.txt" >"$work/manual.options"
check "sqlock-run.1 has those of run --help" same "$work/manual.options" \
    "$work/help.options"

# The example of the library; pages.sh has the rest of section 3.
sed -n '/^\.Bd -literal/,/^\.Ed/p' src/man/sqlock.3 | grep -v '^\.' |
    sed 's/\\e/\\/g' >"$work/example.c"
read -ra cc <<<"${CC:-cc}"
check "its example compiles" "${cc[@]}" -std=c99 -Wall -Wextra -Wpedantic \
    -Werror -Wno-unused-result -Iinclude -c "$work/example.c" \
    -o "$work/example.o"
exit $status
