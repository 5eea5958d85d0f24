#!/usr/bin/env bash
# manuals.sh: the manual pages have no errors, and name the commands and options
# that there are; the example in sqlock(3) compiles.
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

# --help is made of the manual: it has the options that a command takes, and no
# others.
documented() { # COMMAND
    { "$SQLOCK" --help && "$SQLOCK" "$1" --help; } |
        sed -nE 's/^ {2,6}(-[A-Za-z], )?--([a-z-]+).*/\2/p' | sort -u
}
taken() { # COMMAND
    local name
    for name in "${names[@]}"; do
        "$SQLOCK" "$1" "--$name=1" --help 2>&1 | grep -q "^sqlock: unknown" ||
            echo "$name"
    done
}
has_its_options() { # COMMAND
    diff <(documented "$1") <(taken "$1")
}
mapfile -t names < <(grep -rhoE "\{\"[a-z-]+\", ('.', )?\.[a-z]+ =" src/cli |
    cut -d '"' -f 2 | sort -u)
for command in $("$SQLOCK" --help | sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p'); do
    check "sqlock.1 has $command" grep -Eq "^ {5}$command( |$)" \
        "$dir/sqlock.1.txt"
    check "the manual has the options of $command" has_its_options "$command"
done

# The example in sqlock.3; pages.sh has the rest of section 3.
sed -n '/^\.Bd -literal/,/^\.Ed/p' src/man/sqlock.3 | grep -v '^\.' |
    sed 's/\\e/\\/g' >"$dir/example.c"
read -ra cc <<<"${CC:-cc}"
check "its example compiles" "${cc[@]}" -std=c99 -Wall -Wextra -Wpedantic \
    -Werror -Wno-unused-result -Iinclude -c "$dir/example.c" \
    -o "$dir/example.o"
exit $status
