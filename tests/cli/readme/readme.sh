#!/usr/bin/env bash
# readme.sh: README.md is right: its shell commands run, its C example compiles
# with the command below it and runs, and the targets, files, pages and
# functions that it names are there.  tests/cli/install/places.sh runs its
# commands that install.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

# Print the first block of code in a language, or the one of that number.
block() { # LANGUAGE [NUMBER]
    awk -v open="\`\`\`$1" -v wanted="${2:-1}" '
        $0 == open && ++seen == wanted { inside = 1; next }
        $0 == "```" { inside = 0 }
        inside' README.md
}

block c >"$dir/example.c"
block c 2 >"$dir/guard.c"
block sh 1 >"$dir/install.sh"
block sh 2 >"$dir/commands.sh"
block sh 3 >"$dir/compile.sh"

# This script uses the build instead of an installation.  The library path does
# what ldconfig does for an installed library.
mkdir "$dir/bin"
cat >"$dir/bin/pkg-config" <<END
#!/bin/sh
PKG_CONFIG_PATH=$build/lib/pkgconfig exec $(command -v pkg-config) \\
    --define-variable=libdir=$build/lib \\
    --define-variable=includedir=$root/include "\$@"
END
read -ra cc <<<"${CC:-cc}" # may have words: "ccache gcc"
# Keep the present PATH for the compiler: ccache looks in PATH for the real
# `cc`, and would find this script in the new one.
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PATH" \
    "$(command -v "${cc[0]}") ${cc[*]:1}" >"$dir/bin/cc"
chmod +x "$dir"/bin/*
export PATH=$dir/bin:$build/bin:$PATH LD_LIBRARY_PATH=$build/lib

# -------------------------------------------------------------- commands --

check "it has three blocks of commands" \
    test "$(grep -c '^```sh$' README.md)" -eq 3
check "the first installs" grep -q "make install" "$dir/install.sh"
check "the commands are five" test "$(grep -c . "$dir/commands.sh")" -eq 5
cd "$dir" || exit 1
check "they run" bash -eu commands.sh
for command in $(sed -n 's/^sqlock \([a-z]*\).*/\1/p' commands.sh) break; do
    check "sqlock $command has a help text" sqlock "$command" --help
done
cd "$root" || exit 1

# --------------------------------------------------------------- example --

lines=$(grep -c . "$dir/example.c")
check "the C example is there, and short" test "$lines" -ge 10 -a "$lines" -le 26
for std in c99 c11; do
    check "it compiles as $std without a warning" cc -std=$std -Wall -Wextra \
        -Wpedantic -Wshadow -Wconversion -Werror -I"$root/include" \
        -fsyntax-only "$dir/example.c"
done
cd "$dir" || exit 1
check "it compiles and runs by the commands below it" bash -eu compile.sh

says_done() {
    ./example >said || return 1
    cat said
    [ "$(tr '\n' ' ' <said)" = 'page 1 page 2 page 3 done ' ]
}
check "it takes the lock, works and gives it back" says_done

# Another process holds the lock as long as a pipe is open.
mkfifo hold
sqlock --url sqlite:locks.db run invoice/4711 -- \
    sh -c 'echo held >held; cat >/dev/null' <hold &
holder=$!
helper "$holder"
exec 9>hold
for ((i = 0; i < 200; i++)); do
    [ ! -s held ] || break
    read -rt 0.05 <> <(:)
done
is_refused() {
    [ -s held ] || { echo "nobody holds it" && return 1; }
    ./example >said 2>why
    [ $? -eq 1 ] && [ ! -s said ] && [ "$(wc -l <why)" -eq 1 ]
}
check "while another has the lock it is refused, with one line" is_refused
exec 9>&-
wait "$holder"
check "and gets it when the other has ended" says_done

guards() {
    sed 's/example\.c/guard.c/; s/-o example/-o guard/' compile.sh |
        grep -v '^\./' >compile-guard.sh
    bash -eu compile-guard.sh && ./guard
}
paid() {
    sqlite3 locks.db "SELECT count(*) FROM invoice"
}
check "the guard is short" test "$(grep -c . guard.c)" -le 28
said=$(guards 2>&1)
check "it compiles as it is pasted, and pays once" test "$said/$(paid)" = paid/1
# The lease ends between the grant and the guard.
awk '/sqlock_tx_begin/ { print "system(\"sqlite3 locks.db \\\"UPDATE "\
    "INT_LOCK SET EXPIRED_AFTER = CREATED_DATE + 1\\\"\") == 0 &&" } 1' \
    guard.c | sed '1i #include <stdlib.h>' >late.c
sed 's/guard/late/g' compile-guard.sh >compile-late.sh
check "it compiles with a break before the guard" bash -eu compile-late.sh
./late >said 2>why
check "a holder that is too late writes nothing" test "$?/$(paid)" = 1/1

cd "$root" || exit 1

# ----------------------------------------------------------------- names --

is_target() { # WORD
    grep -Eq "^([a-z-]+ )*$1( [a-z-]+)*:([^=]|$)" Makefile tests/run.mk
}
for target in $(grep -oE '^    make( [a-z-]+)+|`make [a-z-]+' README.md |
    sed 's/.*make//' | tr ' ' '\n' | sort -u); do
    check "make $target is a target" is_target "$target"
done
for path in $(grep -oE '(src|include|sql|tests|docker)/[a-zA-Z_/.]*' README.md |
    sort -u) CHANGELOG.md LICENSE; do
    check "$path is there" test -e "$path"
done
for page in $(grep -oE 'sqlock(-[a-z]+)?\([0-9]\)' README.md | sort -u); do
    section=${page%)}
    check "$page is there" test -e "src/man/${page%(*}.${section#*(}"
done
for page in src/man/*.[17]; do
    name=${page##*/}
    check "$name is named" grep -qF "${name%.?}(${name##*.})" README.md
done
for name in $(grep -oE '(sqlock|SQLOCK)_[A-Za-z_]+' README.md | sort -u); do
    check "$name is in the headers, or a variable of the command or the tests" \
        grep -qrwE "$name|X\\(${name#SQLOCK_},.*" include src/cli tests/tools/servers
done
for code in $(grep -oE '\bE[A-Z]{3,}\b=?' README.md | grep -v '=\|EXISTS' |
    sort -u); do
    check "$code is a result" grep -q "X($code," include/sqlock.h
done
exit $status
