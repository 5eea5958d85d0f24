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
# A suite that needs special servers has a script with.sh in its folder, which
# starts them and runs its arguments as a command.
#
# A program prints the standard output of cmocka.  A script prints lines
# "ok - what", "not ok - what", "skip - what".  If it prints none of them, it
# counts as one test by its exit status.  Exit status 77 is a skip in any case.
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
#     SUITE_LOGS       folder of the logs ($SQLOCK_BUILD/log)
#     SUITE_SCRIPTS=no run programs only
#     SUITE_TELL       seconds between reports of what is running (30)
#     SUITE_TESTS      run only tests and scripts whose names match: a pattern,
#                      or a word that occurs in them (all)
# Scripts find the command in $SQLOCK and first on PATH.  Their working
# directory is the root of the sources.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${SQLOCK_BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
: "${SUITE_SECONDS:=1800}" "${SUITE_JOBS:=3}" "${SKIPS_FAIL:=}" "${WRAP:=}" "${V:=}"
: "${SUITE_TESTS:=}" "${SUITE_TELL:=30}"
export SQLOCK_BUILD=$build SQLOCK=$build/bin/sqlock SKIPS_FAIL
export SQLOCK_SCALE=${SQLOCK_SCALE:-test}
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

# Print "PASSED FAILED SKIPPED", the counts of a log, to which its program's
# exit status may add one.
count() { # LOG STATUS
    awk -v status="$2" '
    function result(kind) {
        n[kind]++
        open = 0
    }
    { sub(/\r$/, "") }
    /^\[ RUN      \]/ { if (open) result("failed"); open = 1; spoke = 1; next }
    # Names come again in the summary of a group, when no test is open.
    open && /^\[       OK \]/ { result("passed"); next }
    open && /^\[  SKIPPED \]/ { result("skipped"); next }
    open && /^\[  FAILED  \]/ { result("failed"); next }
    /^\[  FAILED  \] GROUP (SETUP|TEARDOWN)/ { result("failed"); next }
    /^ok([ :]|$)/ { result("passed"); spoke = 1; next }
    /^not ok([ :]|$)/ { result("failed"); spoke = 1; next }
    /^skip([ :]|$)/ { result("skipped"); spoke = 1; next }
    END {
        if (open)
            result("failed")
        if (!spoke && status == 0)
            n["passed"]++
        else if (status == 77)
            n["skipped"] += !n["skipped"]
        else if (status != 0 && !n["failed"])
            n["failed"]++ # ended by a signal, a sanitizer, the time limit
        print n["passed"] + 0, n["failed"] + 0, n["skipped"] + 0
    }' "$1"
}

# Print how a program ended, if it did not end by itself.  timeout(1) returns
# 124 when the time was up, and ends by SIGKILL, too, if it had to send that.
ended_by() { # STATUS
    if [ "$1" -eq 124 ]; then
        echo "time is up after $SUITE_SECONDS s"
    elif [ "$1" -eq 137 ]; then
        echo "ended by SIGKILL, or time is up after $SUITE_SECONDS s"
    elif [ "$1" -gt 128 ] && kill -l "$1" >/dev/null 2>&1; then
        echo "ended by SIG$(kill -l "$1")"
    fi
}

# Print how the program of a log ended, and its failed tests, at most 12, with
# their last lines: 12 lines in all, or 3 of each test if more than 4 failed.
name_failures() { # NAME LOG STATUS
    local how
    how=$(ended_by "$3")
    awk -v name="$1" -v status="$3" -v how="$how" '
    function keep(line) {
        # The table that ends a report of AddressSanitizer.
        if (line !~ /^(  |=>)0x|^Shadow byte|^  [A-Z].*:  +[0-9a-f][0-9a-f]/)
            lines[++n] = line
    }
    # A test of a program, or a line "not ok", with the lines that are its.
    function fail(what) {
        failed[++f] = what
        first[f] = from
        last[f] = n
        from = n + 1
    }
    function begin() {
        open = ""
        from = n + 1
    }
    BEGIN { from = 1 }
    { sub(/\r$/, "") }
    /^[a-z]+ (postgres|mysql|sqlite)( |$)/ { where = " (" $0 ")"; next }
    /^\[ RUN      \]/ {
        if (open != "")
            fail(open where ": it did not end")
        begin()
        open = substr($0, 14)
        next
    }
    open != "" && /^\[(       OK |  SKIPPED )\]/ { begin(); next }
    open != "" && /^\[  FAILED  \]/ {
        said = substr($0, 14)
        fail(open where (said == open ? "" : ": " said))
        begin()
        next
    }
    /^\[  FAILED  \] GROUP (SETUP|TEARDOWN)/ {
        fail(substr($0, 14) where)
        next
    }
    /^(ok|skip)([ :]|$)/ { begin(); next }
    /^not ok([ :]|$)/ { fail($0); next }
    # Lines "# ..." of a script right after "not ok" belong to that failure.
    f && from == last[f] + 1 && failed[f] ~ /^not ok/ && /^# / {
        keep($0)
        last[f] = n
        from = n + 1
        next
    }
    { keep($0) }
    END {
        if (open != "")
            fail(open where ": it did not end")
        if (!f && how == "")
            fail("exit status " status)
        print "  " name (how == "" ? "" : ": " how)
        shown = f < 12 ? f : 12
        each = shown > 4 ? 3 : shown ? int(12 / shown) : 0
        for (i = 1; i <= shown; i++) {
            print "    " failed[i]
            k = last[i] - each + 1
            for (k = k < first[i] ? first[i] : k; k <= last[i]; k++)
                print "        " substr(lines[k], 1, 200)
        }
        if (f > shown)
            print "    and " f - shown " more"
        # Nothing was said of a test: the end of the log has to do.
        if (!f)
            for (k = n > 12 ? n - 11 : 1; k <= n; k++)
                print "        " substr(lines[k], 1, 200)
    }' "$2"
}

# Keep a copy of the log of a failure, which the next run does not write over.
# Only the last 50 copies are kept.
keep_log() { # LOG
    local failed=$logs/failed
    mkdir -p "$failed"
    cp "$1" "$failed/$(date -u +%Y%m%dT%H%M%S)-${1##*/}"
    # shellcheck disable=SC2012 # names of ours
    (cd "$failed" && ls -t | tail -n +51 | xargs -r rm -f)
}

# Print the part of a log that shows the failure, or all of a short log.
show_failure() { # LOG STATUS
    echo "---- $1 (exit status $2$([ "$2" -ne 124 ] || echo ', time is up'))"
    if grep -q '^not ok' "$1"; then
        grep -v '^ok' "$1" | tail -n 100
    elif [ "$(wc -l <"$1")" -le 120 ]; then
        cat "$1"
    else
        grep -nE -B 12 -A 3 \
            '^\[  (FAILED|ERROR) |ERROR: .*Sanitizer|WARNING: Thread' \
            "$1" | tail -n 150
        echo "---- its last lines"
        tail -n 20 "$1"
    fi
    echo "----"
}

# Print how many programs and scripts have ended, as "3 of 20".
progress() {
    local ended
    ended=$(compgen -G "$scratch/*.counts" | wc -l)
    echo "$ended of $(<"$scratch/total")"
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
            keep_log "$log"
        elif [ "$s" -gt 0 ]; then
            grep -E '^(skipped:|skip )' "$log" | sort | uniq -c | sort -rn |
                head -n 5
        fi
        printf '  %-24s %d passed, %d failed, %d skipped (%d s), %s\n' \
            "$name" "$p" "$f" "$s" $((SECONDS - began)) "$(progress)"
    } >"$scratch/$number.text"
    cat "$scratch/$number.text"
    printf '%-26s %7d %7d %7d %6ds\n' "$name" "$p" "$f" "$s" \
        $((SECONDS - began)) >"$scratch/$number.row"
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
next_of() { # programs|scripts
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
    local with=() chosen=() folder
    folder=$(folder_of "$name")
    [ "$SQLOCK_SCALE" != campaign ] ||
        echo "  $name is running: tail -f $logs/$name.log"
    [ -z "$SUITE_TESTS" ] || chosen=(-t "$SUITE_TESTS")
    [ ! -e "$folder/with.sh" ] || with=(bash "$folder/with.sh")
    # shellcheck disable=SC2086 # a command and its arguments
    run_one "$number" "$name" "${with[@]}" $WRAP "$build/tests/$name" \
        "${chosen[@]}" ${SUITE_ARGS:-} &
    wait
}

run_script() {
    while [ "$(jobs -rp | wc -l)" -ge "$SUITE_JOBS" ]; do
        wait -n
    done
    run_one "$number" "$name" bash \
        "$(folder_of "${name%/*}")/${name##*/}.sh" &
}

# Run the items of a queue until it is empty.  A program runs alone in its lane,
# because it may stop the servers.  Scripts run side by side: they mostly wait,
# and do not disturb each other.
run_queue() { # programs|scripts
    while next_of "$1"; do
        case $1 in
        programs) run_program ;;
        scripts) run_script ;;
        esac
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
longest_scripts='install/debian python/package cpp/compile scenes/bindings
    cpp/programs cli/commands cli/once cli/acquire cli/break cli/doctor
    cli/status cli/lost migration/postgres migration/mysql migration/sqlite
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
pids=()
for queues in "${lanes[@]}"; do
    SUITE_QUEUE=$scratch SUITE_QUEUES=$queues \
        SQLOCK_TEST_SQLITE_URL=${SQLOCK_TEST_SQLITE_URL-} \
        "${with[@]}" bash tests/run.sh "$@" &
    pids+=($!)
done

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
wait "${pids[@]}"
{
    kill "$teller"
    wait "$teller"
} 2>/dev/null

passed=0 failed=0 skipped=0
printf '\n%-26s %7s %7s %7s %7s\n' suite passed failed skipped seconds
for ((i = 1; i <= ${#items[@]}; i++)); do
    if [ -e "$scratch/$i.counts" ]; then
        read -r p f s <"$scratch/$i.counts"
        cat "$scratch/$i.row"
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
# Print the failures once more, at the end of the log.
if [ "$failed" -gt 0 ]; then
    printf '\nfailed:\n'
    for ((i = 1; i <= ${#items[@]}; i++)); do
        cat "$scratch/$i.failed" 2>/dev/null
    done | awk -v logs="$logs/failed" '
        NR <= 60 || /^  [^ ]/ { print; next } # each is named at least
        { left++ }
        END { if (left) print "  and " left " more lines: " logs }'
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$empty" -eq 0 ] && [ "$passed" -gt 0 ] &&
    { [ "$skipped" -eq 0 ] || [ "$SKIPS_FAIL" != 1 ]; }
