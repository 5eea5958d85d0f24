#!/usr/bin/env bash
# run.sh SUITE...: run test suites and count what passed, failed and was skipped.
#
# A suite is a program $SQLOCK_BUILD/tests/SUITE, or the scripts of its folder,
# tests/SUITE/*.sh or tests/GROUP/SUITE/*.sh, or both.  Programs and scripts run
# in several lanes side by side, since tests mostly wait.  Each lane has
# database servers of its own, started by tests/tools/servers/with.sh, because
# some suites stop their servers.  A lane runs programs one at a time; one lane
# begins with scripts, a few at a time.  Every 30 s the run prints what is
# running.  The last line is
#     N passed, N failed, N skipped
# and the exit status is 0 only if a test passed, none failed, every suite ran
# at least one and, under SKIPS_FAIL=1, none was skipped.
#
# Failures are named again just above the last line, so that the end of a long
# log shows them.  The logs of failures are kept in $SUITE_LOGS/failed.
#
# Suites that run side by side take the processor from each other, and a machine
# may stall.  So what failed is run once more at the end, with nothing beside
# it: of a program the tests that failed, a script as a whole.  If that passes it
# is no failure, but is named above the last line, too.  Nothing is repeated if
# more than SUITE_AGAIN tests and scripts failed, nor is a failure that proves a
# fault however slow the machine was: two owners at a time, a crash, the report
# of a sanitizer.
#
# A suite that needs special servers has a script with.sh in its folder, which
# starts them and runs its arguments as a command.
#
# tests/tools/logs.sh says what a program or a script has to print.
#
# Environment, with defaults in parentheses:
#     SQLOCK_BUILD     folder of the build (build)
#     WRAP             command before each program, as 'valgrind ...' (none)
#     SUITE_SECONDS    time limit of each program or script (1800)
#     SUITE_LANES      number of lanes that begin with programs (3); the default
#                      is 1, and no lane begins with scripts, at campaign scale
#                      and where the environment names a server
#     SUITE_JOBS       scripts at a time in a lane (3)
#     SQLOCK_SCALE     test or campaign (test)
#     SKIPS_FAIL=1     skipped tests are failures
#     V=1              show all output
#     SUITE_ARGS       arguments of each program (none)
#     SUITE_AGAIN      how many failures are tried again at most (12); the default
#                      is 0 at campaign scale
#     SUITE_LOGS       folder of the logs ($SQLOCK_BUILD/log)
#     SUITE_SCRIPTS=no run programs only
#     SUITE_TELL       seconds between reports of what is running (30)
#     SUITE_TESTS      run only tests and scripts whose names match: a pattern,
#                      or a word that occurs in them (all)
# Scripts find the command in $SQLOCK and first on PATH.  Their working
# directory is the root of the sources.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/tools/logs.sh
. tests/tools/logs.sh

build=${SQLOCK_BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
: "${SUITE_SECONDS:=1800}" "${SUITE_JOBS:=3}" "${SKIPS_FAIL:=}" "${WRAP:=}" "${V:=}"
: "${SUITE_TESTS:=}" "${SUITE_TELL:=30}"
export SQLOCK_BUILD=$build SQLOCK=$build/bin/sqlock SKIPS_FAIL
export SQLOCK_SCALE=${SQLOCK_SCALE:-test}
[ "$SQLOCK_SCALE" != campaign ] || : "${SUITE_AGAIN:=0}"
: "${SUITE_AGAIN:=12}"
export PATH=$build/bin:$PATH
# The output that tests expect on a terminal depends on the locale.
export LC_ALL=C.UTF-8
unset LANGUAGE
# Tests must not depend on the user's configuration.
export XDG_CONFIG_HOME=/nonexistent
# Tests must not depend on the options of the calling make, either: with -s
# `make install` would not print the lines that its tests read.  The variables
# of the calling make stay, because they describe the build.
case ${MAKEFLAGS:-} in
*'-- '*) export MAKEFLAGS="-- ${MAKEFLAGS#*-- }" ;;
*) unset MAKEFLAGS ;;
esac
unset MFLAGS

[ $# -gt 0 ] || {
    echo "usage: run.sh SUITE..." >&2
    exit 2
}
suites=("$@")

# In a lane SUITE_QUEUE is the folder of the run, with the queues; the run makes
# it.
queue=${SUITE_QUEUE:-}
unset SUITE_QUEUE
scratch=${queue:-$(mktemp -d /tmp/sqlock-run.XXXXXX)} || exit 1
# Running jobs are ended first; each ends the processes that it has started.
finish() {
    trap '' INT TERM
    # shellcheck disable=SC2046 # numbers
    kill -TERM $(jobs -p) 2>/dev/null
    wait
    [ -n "$queue" ] || rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
logs=${SUITE_LOGS:-$build/log}
mkdir -p "$logs"

# Keep a copy of the log of a failure, which the next run does not write over.
# Only the last 50 copies are kept.
keep_log() { # LOG
    local failed=$logs/failed
    mkdir -p "$failed"
    cp "$1" "$failed/$(date -u +%Y%m%dT%H%M%S)-${1##*/}"
    # shellcheck disable=SC2012 # names of ours
    (cd "$failed" && ls -t | tail -n +51 | xargs -r rm -f)
}

# Print how many programs and scripts have ended, as "3 of 20".  The files are
# gone if it outlives the run, whose end kills only the one that tells.
progress() {
    local ended
    ended=$(compgen -G "$scratch/*.counts" | wc -l)
    echo "$ended of $(cat "$scratch/total" 2>/dev/null)"
}

# Run one program or script under the time limit, in a process group that ends
# with it; write its row of the table and its counts to files.
run_one() { # NUMBER NAME COMMAND...
    local number=$1 name=$2 log=$logs/${2//\//-}.log began=$SECONDS
    local pid status p f s
    shift 2
    refresh_pids
    # No two programs share a SQLite file, which has one writer at a time.
    SQLOCK_TEST_DIR=${SQLOCK_TEST_DIR:-$scratch}/$number
    mkdir -p "$SQLOCK_TEST_DIR"
    : "${SQLOCK_TEST_SQLITE_URL:=sqlite:$SQLOCK_TEST_DIR/test.db}"
    export SQLOCK_TEST_DIR SQLOCK_TEST_SQLITE_URL
    echo "$name" >"$scratch/$number.running"
    trap 'kill -TERM "$pid" 2>/dev/null; wait "$pid"; exit 143' TERM INT
    timeout -k 10 "$SUITE_SECONDS" "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    wait "$pid"
    status=$?
    read -r p f s < <(count "$log" "$status")
    rm -f "$scratch/$number.running"
    echo "$p $f $s" >"$scratch/$number.counts"
    {
        [ "$V" != 1 ] || cat "$log"
        if [ "$f" -gt 0 ]; then
            show_failure "$log" "$status"
            name_failures "$name" "$log" "$status" >"$scratch/$number.failed"
            tests_to_repeat "$name" "$log" "$status" >"$scratch/$number.again"
            keep_log "$log"
        elif [ "$s" -gt 0 ]; then
            grep -E '^(skipped:|skip )' "$log" | sort | uniq -c | sort -rn |
                head -n 5
        fi
        [ "$s" -eq 0 ] || grep -E '^(skipped:|skip )' "$log" | sort -u |
            sed "s|^|  $name: |" >"$scratch/$number.skipped"
        printf '  %-24s %d passed, %d failed, %d skipped (%d s), %s\n' \
            "$name" "$p" "$f" "$s" $((SECONDS - began)) "$(progress)"
    } >"$scratch/$number.text"
    cat "$scratch/$number.text"
    echo "$((SECONDS - began))" >"$scratch/$number.seconds"
    rm -rf "$SQLOCK_TEST_DIR"
}

# Read the servers' process ids again: an earlier suite may have restarted a
# server.
refresh_pids() {
    if [ -r "${SQLOCK_TEST_POSTGRES_PIDFILE:-}" ]; then
        SQLOCK_TEST_POSTGRES_PID=$(cat "$SQLOCK_TEST_POSTGRES_PIDFILE")
        export SQLOCK_TEST_POSTGRES_PID
    fi
    if [ -r "${SQLOCK_TEST_MYSQL_PIDFILE:-}" ]; then
        SQLOCK_TEST_MYSQL_PID=$(cat "$SQLOCK_TEST_MYSQL_PIDFILE")
        export SQLOCK_TEST_MYSQL_PID
    fi
}

# Check here that there are pseudo-terminals.  A test that gets none may have -1
# as the process id of its child, and kill(-1) would end all processes.
case " $* " in
*" cli "*)
    script -qec true /dev/null >/dev/null 2>&1 </dev/null || {
        echo "tests: no pseudo-terminals here: mount devpts on /dev/pts" >&2
        exit 1
    }
    ;;
esac

# ------------------------------------------------------------------- a lane --

# Take the next line of a queue, NUMBER NAME, and set $number and $name; return
# 1 if there is none.
next_of() { # programs|scripts|repeats
    local line
    exec {lock}>"$scratch/lock"
    flock "$lock"
    IFS= read -r line <"$scratch/$1"
    sed -i 1d "$scratch/$1"
    exec {lock}>&-
    read -r number name <<<"$line"
    [ -n "$line" ]
}

# Print the folder of a suite: tests/SUITE or tests/GROUP/SUITE.
folder_of() { # SUITE
    local folder
    for folder in "tests/$1" tests/*/"$1"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
}

run_program() {
    local with=() chosen=() folder test
    folder=$(folder_of "$name")
    [ "$SQLOCK_SCALE" != campaign ] ||
        echo "  $name is running: tail -f $logs/$name.log"
    [ -z "$SUITE_TESTS" ] || chosen=(-t "$SUITE_TESTS")
    if [ "$1" = repeats ]; then
        chosen=()
        while IFS= read -r test; do
            chosen+=(-t "$test")
        done <"$scratch/first/$number.again"
    fi
    [ ! -e "$folder/with.sh" ] || with=(bash "$folder/with.sh")
    # shellcheck disable=SC2086 # a command and its arguments
    run_one "$number" "$name" "${with[@]}" $WRAP "$build/tests/$name" \
        "${chosen[@]}" ${SUITE_ARGS:-} &
    wait
}

# A script may read in $SUITE_FAILED what failed before.
run_script() { # programs|scripts|repeats
    local SUITE_FAILED=''
    [ "$1" != repeats ] || SUITE_FAILED=$scratch/first/$number.text
    export SUITE_FAILED
    while [ "$(jobs -rp | wc -l)" -ge "$SUITE_JOBS" ]; do
        wait -n
    done
    run_one "$number" "$name" bash \
        "$(folder_of "${name%/*}")/${name##*/}.sh" &
}

# Run the items of a queue until it is empty.  A program runs alone in its lane,
# because it may stop the servers.  Scripts run side by side: they mostly wait,
# and do not disturb each other.
run_queue() { # programs|scripts|repeats
    while next_of "$1"; do
        case $1,$name in
        scripts,* | *,*/*) run_script "$1" ;;
        *) run_program "$1" ;;
        esac
        [ "$1" != repeats ] || wait
    done
    wait
}

# A lane runs its first queue, and then what is left in the other one.
if [ -n "$queue" ]; then
    for kind in $SUITE_QUEUES; do
        run_queue "$kind"
    done
    exit 0
fi

# ------------------------------------------------------------------ the run --

# The longest suites come first, so that no lane ends long before the others.
longest='fault renewer conformance exhaust scenes waiting stock tx command'
longest_scripts='install/debian python/package model/rules cpp/compile
    scenes/bindings cpp/programs cli/commands cli/lead cli/limits cli/once
    cli/acquire cli/break cli/doctor cli/status cli/lost
    migration/postgres migration/mysql migration/sqlite
    install/go readme/examples cli/killed cli/list install/places
    install/headers install/consumer install/pages cli/messages python/wheel
    cli/outage cli/signals demo/demo install/dist'
items=() programs=0 scripts=0 empty=0
: >"$scratch/programs"
: >"$scratch/scripts"
add() { # programs|scripts NAME
    items+=("$2")
    echo "${#items[@]} $2" >>"$scratch/$1"
}
# Return whether a program has tests that SUITE_TESTS selects.
has_tests() { # SUITE
    [ -z "$SUITE_TESTS" ] ||
        [ -n "$("$build/tests/$1" --list -t "$SUITE_TESTS" 2>/dev/null)" ]
}
# Return whether SUITE_TESTS selects a script, by the rule that programs use for
# tests.
is_chosen() { # NAME
    case $SUITE_TESTS in
    '') true ;;
    *[*?[]*)
        # shellcheck disable=SC2053 # a pattern
        [[ $1 == $SUITE_TESTS ]]
        ;;
    *) [[ $1 == *"$SUITE_TESTS"* ]] ;;
    esac
}
for suite in $longest "$@"; do
    case " $* " in
    *" $suite "*) ;;
    *) continue ;;
    esac
    case " ${items[*]} " in
    *" $suite "*) continue ;;
    esac
    [ -x "$build/tests/$suite" ] && has_tests "$suite" || continue
    add programs "$suite"
done
programs=${#items[@]}
names=()
for suite in "$@"; do
    folder=$(folder_of "$suite")
    for script in "${folder:-/nonexistent}"/*.sh; do
        case ${script##*/} in
        lib.sh | common.sh | with.sh | '*.sh') continue ;;
        esac
        name=$suite/${script##*/}
        name=${name%.sh}
        [ "${SUITE_SCRIPTS:-}" = no ] || ! is_chosen "$name" ||
            names+=("$name")
    done
    if [ ! -x "$build/tests/$suite" ] &&
        ! compgen -G "$folder/*.sh" >/dev/null; then
        echo "  $suite: no such suite in $build/tests or below tests"
        empty=$((empty + 1))
    fi
done
for name in $longest_scripts "${names[@]}"; do
    case " ${names[*]} " in
    *" $name "*) ;;
    *) continue ;;
    esac
    case " ${items[*]} " in
    *" $name "*) ;;
    *) add scripts "$name" ;;
    esac
done
scripts=$((${#items[@]} - programs))
echo "${#items[@]}" >"$scratch/total"
[ ${#items[@]} -gt 0 ] || [ -z "$SUITE_TESTS" ] ||
    echo "  no test and no script matches \"$SUITE_TESTS\""

# Servers that the environment names are used by one suite at a time.
lanes=()
if [ "$SQLOCK_SCALE" != campaign ] &&
    [ -z "${SQLOCK_TEST_POSTGRES_URL:-}${SQLOCK_TEST_MYSQL_URL:-}" ]; then
    : "${SUITE_LANES:=3}"
    [ "$scripts" -eq 0 ] || lanes=('scripts programs')
fi
: "${SUITE_LANES:=1}"
for ((i = 0; i < SUITE_LANES && i < programs; i++)); do
    lanes+=('programs scripts')
done
[ ${#lanes[@]} -gt 0 ] || lanes=('programs scripts')

# Start servers, unless all suites are of those that use none.
with=()
for suite in "$@"; do
    case $suite in
    unit | install) ;;
    *) with=(bash tests/tools/servers/with.sh) ;;
    esac
done
# Let clients of PostgreSQL hash their password once at each connection, and not
# 4096 times as usual, which takes 3 ms.  The JDBC driver of the suite spring
# would refuse that.
case " $* " in
*" spring "*) ;;
*) export SQLOCK_TEST_POSTGRES_ROUNDS=${SQLOCK_TEST_POSTGRES_ROUNDS:-1} ;;
esac
# Run lanes, each with servers of its own, until all have ended.
run_lanes() { # QUEUES...
    local queues pids=()
    for queues in "$@"; do
        SUITE_QUEUE=$scratch SUITE_QUEUES=$queues \
            SQLOCK_TEST_SQLITE_URL=${SQLOCK_TEST_SQLITE_URL-} \
            "${with[@]}" bash tests/run.sh "${suites[@]}" &
        pids+=($!)
    done
    wait "${pids[@]}"
}

# Make the first run's results of what failed, and may be tried again, those of
# an earlier run, and queue it.  Return 1 if there is nothing to repeat.
queue_repeats() {
    local file number
    mkdir "$scratch/first" || return
    : >"$scratch/repeats"
    # shellcheck disable=SC2046 # names of ours
    set -- $(compgen -G "$scratch/*.again")
    [ $# -gt 0 ] && [ "$(cat "$@" | wc -l)" -le "$SUITE_AGAIN" ] || return
    for file in "$@"; do
        [ -s "$file" ] || continue
        number=${file##*/} number=${number%.again}
        mv "$scratch/$number".* "$scratch/first"
        echo "$number ${items[number - 1]}" >>"$scratch/repeats"
    done
    [ -s "$scratch/repeats" ]
}

# Take the result of a repetition if it passed, and otherwise that of the first
# run.
judge_repeat() { # NUMBER
    local first=$scratch/first/$1 p f s passed=0 failed=1 skipped=0
    read -r p f s <"$first.counts"
    [ ! -e "$scratch/$1.counts" ] ||
        read -r passed failed skipped <"$scratch/$1.counts"
    rm -f "$scratch/$1".*
    mv "$first".* "$scratch"
    if [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && [ "$skipped" -le "$s" ]; then
        echo "$((p + f)) 0 $s" >"$scratch/$1.counts"
        mv "$scratch/$1.failed" "$scratch/$1.passed"
    fi
}

repeat_failures() {
    local number name
    queue_repeats || return
    echo "  what failed is tried again, with nothing beside it"
    cp "$scratch/repeats" "$scratch/repeated"
    run_lanes repeats
    while read -r number name; do
        judge_repeat "$number"
    done <"$scratch/repeated"
}

# Print from time to time what is running.  `read` waits for a pipe to which
# nothing is written, because a sleep(1) would outlive this run if it is ended.
tell() {
    local names
    exec {never}<> <(:)
    until read -rt "$SUITE_TELL" -u "$never"; do
        names=$(cat "$scratch"/*.running 2>/dev/null | sort | paste -sd ,)
        echo "  $(progress) suites have ended after $SECONDS s;" \
            "running: ${names//,/, }"
    done
}
tell &
teller=$!
run_lanes "${lanes[@]}"
repeat_failures
{
    kill "$teller"
    wait "$teller"
} 2>/dev/null

passed=0 failed=0 skipped=0
printf '\n%-26s %7s %7s %7s %7s\n' suite passed failed skipped seconds
for ((i = 1; i <= ${#items[@]}; i++)); do
    if [ -e "$scratch/$i.counts" ]; then
        read -r p f s <"$scratch/$i.counts"
        printf '%-26s %7d %7d %7d %6ds\n' "${items[i - 1]}" "$p" "$f" "$s" \
            "$(<"$scratch/$i.seconds")"
    else
        p=0 f=1 s=0
        echo "${items[i - 1]} did not come to its end"
        echo "  ${items[i - 1]}: it did not come to its end" \
            >"$scratch/$i.failed"
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ $((p + f + s)) -gt 0 ] || empty=$((empty + 1))
done
[ "$empty" -eq 0 ] || echo "$empty of the suites ran nothing"
[ "$skipped" -eq 0 ] || [ "$SKIPS_FAIL" != 1 ] ||
    echo "skipped tests count as failures here"
# Print once more, at the end of the log, what was skipped, and what failed: at
# last, or at first.
name_all() { # skipped|failed|passed TITLE
    compgen -G "$scratch/*.$1" >/dev/null || return
    printf '\n%s:\n' "$2"
    for ((i = 1; i <= ${#items[@]}; i++)); do
        cat "$scratch/$i.$1" 2>/dev/null
    done | awk -v logs="$logs/failed" '
        NR <= 60 || /^  [^ ]/ { print; next } # each is named at least
        { left++ }
        END { if (left) print "  and " left " more lines: " logs }'
}
name_all skipped skipped
name_all passed "failed beside others, passed alone"
name_all failed failed
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$empty" -eq 0 ] && [ "$passed" -gt 0 ] &&
    { [ "$skipped" -eq 0 ] || [ "$SKIPS_FAIL" != 1 ]; }
