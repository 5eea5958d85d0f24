#!/usr/bin/env bash
# mutants.sh [-k] [PATTERN...]: do the tests notice bugs that were put in on purpose
#
# Each NAME.patch is a bug of a line or two.  It begins with a sentence that says
# what a user would suffer, and with the tests that should notice:
#
#     test: PROGRAM ARGUMENTS...   a program of build/tests, or
#     test: script FILE            a script of tests/cli, or
#     test: pytest ARGUMENTS...    in tests/conformance/python
#     test: on SERVERS ...         one of these, on servers such as "mariadb";
#                                  without it there is SQLite only
#
# They run in this order until one fails.  The sources are copied to
# $SQLOCK_BUILD/mutants, so that each bug costs the compilation of a file; with
# -k that copy is kept as it is, for a look at a bug that nobody notices.
# Patterns of the shell choose names.  Exit status 1 if a bug is not noticed, or a
# patch no longer fits.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
mutants=$root/tests/mutants
tree=$build/mutants
keeps=no
[ "${1:-}" != -k ] || { keeps=yes && shift; }
[ $# -gt 0 ] || set -- '*'
patches=()
for pattern in "$@"; do
    # shellcheck disable=SC2206 # a pattern
    patches+=("$mutants"/$pattern.patch)
done
: "${MUTANT_SECONDS:=300}"
export SQLOCK_TEST_SECONDS=90 # a test that hangs is told by its name
make=(make --no-print-directory -s "-j$(nproc)" -C "$tree" SETUP=no BUILD=build
    WERROR=no)

# Copy the files, named by lines, that are others than in the copy; so what is
# the same stays compiled.  A file that is gone is removed from the copy.
copy_sources() {
    local file copy
    while IFS= read -r file; do
        copy=$tree/$file
        if [ ! -f "$file" ]; then
            rm -f "$copy"
            continue
        fi
        cmp -s "$file" "$copy" && continue
        [ -d "${copy%/*}" ] || mkdir -p "${copy%/*}"
        cp "$file" "$copy"
    done
}

# Remove the files from the copy that are not named by lines.
remove_others() {
    LC_ALL=C sort | LC_ALL=C comm -13 - <(cd "$tree" &&
        find . -path ./build -prune -o -type f -printf '%P\n' |
        LC_ALL=C sort) | (cd "$tree" && xargs -r -d '\n' rm -f)
}

# Print what make has to build for a test.
goals_of() { # WORDS...
    [ "$1" != on ] || shift 2
    case $1 in
    script | pytest) echo all ;;
    chaos) echo build/bin/sqlock build/tests/chaos ;;
    command) echo all build/tests/command ;;
    *) echo "build/tests/$1" ;;
    esac
}

# Run a test of the copy, and return its status.
run_test() { # WORDS...
    local words=("$@") servers='' command with=tools/servers
    if [ "$1" = on ]; then
        servers=$2
        words=("${@:3}")
    fi
    [ "${words[0]}" != crash ] || with=faults/crash # servers of its own
    case ${words[0]} in
    script) command=(bash "${words[1]}") ;;
    pytest)
        command=(/usr/bin/python3 -m pytest -q -x -p no:cacheprovider
            "tests/conformance/python/${words[1]}" "${words[@]:2}")
        ;;
    *) command=("build/tests/${words[0]}" "${words[@]:1}") ;;
    esac
    (cd "$tree" && SQLOCK_BUILD=$tree/build SQLOCK=$tree/build/bin/sqlock \
        SQLOCK_LIBRARY=$tree/build/lib/libsqlock.so \
        PYTHONPATH=$tree/src/python SQLOCK_TEST_DIR=$dir \
        SQLOCK_TEST_SQLITE_URL=sqlite:$dir/test.db SQLOCK_TEST_SERVERS=$servers \
        timeout -k 5 "$MUTANT_SECONDS" \
        bash "tests/$with/with.sh" "${command[@]}")
}

# A line of a test that has come to its end.
has_run='^(ok|not ok) |^\[ +(OK|FAILED) +\] [a-z]|[1-9][0-9]* (passed|failed)'

# Print "noticed" and the test, "not noticed", or what is wrong.  A test that the
# time limit ended has not noticed anything.
judge() { # PATCH
    local line words status
    if ! patch -s -p1 -d "$tree" --no-backup-if-mismatch <"$1" >"$dir/out"; then
        echo 'the patch no longer fits'
        return
    fi
    while IFS= read -r line; do
        # with the quotes that a shell would take away
        mapfile -t words < <(xargs -n 1 printf '%s\n' <<<"$line")
        # shellcheck disable=SC2046 # goals are words
        if ! "${make[@]}" $(goals_of "${words[@]}") >"$dir/out" 2>&1; then
            echo 'it does not compile'
            return
        fi
        run_test "${words[@]}" >"$dir/out" 2>&1 </dev/null
        status=$?
        if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
            echo "no time: $line"
            return
        elif ! grep -qE "$has_run" "$dir/out"; then
            echo "no test runs: $line"
            return
        elif [ "$status" -ne 0 ]; then
            echo "noticed: $line"
            return
        fi
    done < <(sed -n 's/^test: //p' "$1")
    echo 'NOT NOTICED'
}

rows=() noticed=0 all=0
mkdir -p "$tree"
git ls-files -co --exclude-standard >"$dir/files"
copy_sources <"$dir/files"
remove_others <"$dir/files"
for patch in "${patches[@]}"; do
    name=${patch##*/} name=${name%.patch} begun=$SECONDS
    result=$(judge "$patch")
    all=$((all + 1))
    case $result in
    noticed*)
        passed "$name"
        noticed=$((noticed + 1))
        ;;
    *) failed "$name: $result: $(head -n 1 "$patch")" ;;
    esac
    rows+=("$(printf '# %-20s %4ss  %s' "$name" $((SECONDS - begun)) "$result")")
    [ "$keeps" = yes ] || sed -n 's,^+++ b/,,p' "$patch" | copy_sources
done
printf '%s\n' "${rows[@]}" "# $noticed of $all noticed"
exit $status
