#!/usr/bin/env bash
# programs.sh: every test program answers --help, lists its tests, selects tests
# by -t, and refuses unknown options and databases.  No database is needed.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"

says_usage() { # PROGRAM
    [[ $("$1" --help 2>&1) == [Uu]"sage: ${1##*/} "* ]]
}
lists() { # PROGRAM
    [ -n "$("$1" --list)" ] && ! "$1" --list | grep -q '^\['
}
# Every script of the tests that the help names exists.
names_scripts() { # PROGRAM
    local script
    for script in $("$1" --help | grep -o 'tests/[A-Za-z0-9/_-]*\.sh'); do
        [ -e "$script" ] || return 1
    done
}
# -t selects a test by its name and by a pattern, and none by an unknown name.
chooses() { # PROGRAM
    local first
    first=$("$1" --list | tail -n 1)
    "$1" --list -t "$first" | grep -qxF "$first" &&
        "$1" --list -t "*${first: -9}" | grep -qxF "$first" &&
        [ -z "$("$1" --list -t 'no such test')" ]
}
refuses() { # PROGRAM
    local out
    out=$("$1" --no-such-option 2>&1) && return 1
    [[ $out == *--no-such-option*--help* ]] || return 1
    [ "${1##*/}" = failover ] || ! "$1" no-such-database >/dev/null 2>&1
}

for main in tests/*/main.c tests/*/*/main.c; do
    name=${main%/main.c}
    name=${name##*/}
    program=$build/tests/$name
    [ -x "$program" ] || continue # only some suites are built
    check "$name: --help" says_usage "$program"
    check "$name: names scripts that are there" names_scripts "$program"
    check "$name: a wrong option is refused" refuses "$program"
    [ "$name" != bench ] || continue # it has no tests
    check "$name: --list" lists "$program"
    check "$name: -t" chooses "$program"
done
exit $status
