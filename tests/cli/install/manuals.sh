#!/usr/bin/env bash
# manuals.sh: the manual pages have no errors, and name the same commands and
# options as --help; the example in sqlock(3) compiles.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

if ! command -v mandoc >/dev/null; then
    echo "skip - manual pages: mandoc is not installed"
    exit 0
fi

# Make sqlock.3, which has lists from the headers.
mkdir "$dir/man3"
perl src/man/pages.pl --out "$dir/man3"
for page in src/man/*.[1-9]; do
    [ "${page##*/}" != sqlock.3 ] || page=$dir/man3/sqlock.3
    check "$page has no errors" mandoc -Tlint -Wwarning "$page"
    mandoc -Tascii "$page" |
        sed "s,.\x08,,g" >"$dir/${page##*/}.txt"
done

# mandoc takes some words of a heading for macros: "In place" became "<place>".
no_macro_in_headings() {
    ! grep -nE '^\.(It|Ss|Sh) (.* )?(An|At|Do|In|No) ' src/man/*.[1-9]
}
check "no word of a heading is a macro" no_macro_in_headings

# The manual has the commands and options of --help, and no others.
options() {
    grep -oE -- '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u
}
same() { # MANUAL HELP
    diff "$1" "$2" && [ -s "$1" ]
}
for command in $("$SQLOCK" --help | sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p'); do
    "$SQLOCK" "$command" --help >"$dir/$command.help"
    [ "$command" = run ] || cat "$dir/$command.help" >>"$dir/help"
    check "sqlock.1 has $command" grep -Eq "^ {5}$command( |$)" \
        "$dir/sqlock.1.txt"
done
"$SQLOCK" --help >>"$dir/help"
options <"$dir/help" >"$dir/help.options"
options <"$dir/sqlock.1.txt" >"$dir/manual.options"
check "sqlock.1 has the options of --help" same "$dir/manual.options" \
    "$dir/help.options"
options <"$dir/run.help" | grep -vx -e --help >"$dir/help.options"
options <"$dir/sqlock-run.1.txt" >"$dir/manual.options"
check "sqlock-run.1 has those of run --help" same "$dir/manual.options" \
    "$dir/help.options"

# The example in sqlock.3; pages.sh has the rest of section 3.
sed -n '/^\.Bd -literal/,/^\.Ed/p' src/man/sqlock.3 | grep -v '^\.' |
    sed 's/\\e/\\/g' >"$dir/example.c"
read -ra cc <<<"${CC:-cc}"
check "its example compiles" "${cc[@]}" -std=c99 -Wall -Wextra -Wpedantic \
    -Werror -Wno-unused-result -Iinclude -c "$dir/example.c" \
    -o "$dir/example.o"
exit $status
