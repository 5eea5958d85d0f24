#!/usr/bin/env bash
# signals.sh: signals in every state of sqlock, and the signals, files and
# arguments that the command inherits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Copy lines with signal masks of /proc/PID/status, without signals 32 and 33.
without_own_signals() {
    local name mask
    while read -r name mask; do
        printf '%s %x\n' "$name" $((16#$mask & ~16#180000000))
    done
}

start() { # OUTPUT ARGUMENT...: sqlock in the background, as $holder
    local to=$1
    shift
    rm -f "$dir/$to" "$dir/err" # what says() reads must not be the last one's
    # A shell without job control starts background jobs with INT ignored.
    env --default-signal=INT,QUIT "$SQLOCK" --table-prefix "$prefix" "$@" \
        >"$dir/$to" 2>"$dir/err" &
    holder=$!
    helper "$holder"
}

says() { # FILE TEXT
    until_true grep -q "$2" "$dir/$1" || not_ok "$2" "the command does not say it"
}

passed_on() {
    local signal
    for signal in HUP INT QUIT TERM USR1 USR2; do
        start out run signal -- sh -c "trap 'echo got $signal; exit 5' $signal
            echo ready; while :; do sleep 0.02; done"
        says out ready
        kill -"$signal" "$holder"
        ends
        is "$signal is passed on" "$?/$(tail -n 1 "$dir/out")" "5/got $signal"
    done
    start out run signal -- sh -c 'echo ready; exec sleep 600'
    says out ready
    kill -TERM "$holder"
    ends
    is "a command that does not catch it" "$?" 143
    run run -n signal -- true
    is "the lock was given back" "$status" 0
}

while_waiting() {
    local signal waiter
    hold signal
    waiter=$holder
    for signal in HUP INT QUIT TERM USR1 USR2; do
        start out -v run signal -- echo "it runs"
        says err waiting
        kill -"$signal" "$holder"
        ends
        is "$signal while waiting" "$?" $((128 + $(kill -l "$signal")))
        is "the command was not run" "$(cat "$dir/out")" ""
    done
    holder=$waiter
    let_go
    run run -n signal -- true
    is "none of them has left the lock held" "$status" 0
}

# TERM comes some milliseconds after the start, one more in each round: no
# command is left running, and the lock passes on.
at_any_moment() {
    local i orphans rounds=12
    [ "${SQLOCK_SCALE:-test}" != campaign ] || rounds=100
    for i in $(seq 1 "$rounds"); do
        # A lease that is renewed in time on a busy machine, but is soon over.
        start out run -t 3 moment -- sleep "600.$$"
        sleep "0.0$(printf '%02d' $((i % 25)))"
        kill -TERM "$holder"
        ends
        status=$?
        [ "$status" -eq 143 ] || not_ok "TERM at any moment" "status $status"
    done
    orphans=$(ps -e -o args= | grep -c "^sleep 600.$$\$")
    is "TERM at any moment leaves no command behind" "$orphans" 0
    run run -w 20 moment -- true
    is "TERM at any moment: the lock passes on" "$status" 0
}

ignored() {
    rm -f "$dir/out" "$dir/sent"
    (
        trap '' HUP
        exec "$SQLOCK" --table-prefix "$prefix" run signal -- \
            sh -c 'echo ready; read -r line; echo "$line"'
    ) >"$dir/out" 2>"$dir/err" < <(
        until_true grep -q ready "$dir/out"
        until_true test -e "$dir/sent"
        echo "still here"
    ) &
    holder=$!
    helper "$holder"
    says out ready
    kill -HUP "$holder"
    : >"$dir/sent"
    ends
    is "HUP is ignored under nohup" "$?/$(tail -n 1 "$dir/out")" "0/still here"
}

# A candidate that waits below nohup outlives the end of its session, too.
ignored_while_waiting() {
    local waiter
    hold signal
    waiter=$holder
    rm -f "$dir/out" "$dir/err"
    (
        trap '' HUP
        exec "$SQLOCK" --table-prefix "$prefix" -v run signal -- echo "it runs"
    ) >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    says err waiting
    kill -HUP "$holder"
    (
        holder=$waiter
        let_go
    )
    ends
    is "the command runs when the lock is free" "$?/$(cat "$dir/out")" "0/it runs"
}

# Start a command that prints its number and succeeds once $dir/go exists.  Set
# $holder and $supervisor.
start_patient() { # OPTION...
    rm -f "$dir/go"
    start out -v run "$@" patient -- \
        sh -c 'echo $$; until [ -e "$1" ]; do sleep 0.02; done' sh "$dir/go"
    says out '[0-9]'
    supervisor=$(supervisor_of "$holder")
    helper "$supervisor"
}

# TERM comes after the command has succeeded: while that is recorded, before
# sqlock knows of it, or while processes that are left behind are ended.  The
# lock is not kept for --min-hold, and the exit status is 0.
when_it_has_ended() {
    # Use tables of its own, because once.sh needs a prefix without the table of
    # --once.
    local pid prefix=CLI_signals_
    sq -q init 2>"$dir/err" && sq -q init --once 2>"$dir/err" ||
        not_ok "init" "there is no table to test with"
    start_patient --once --min-hold 600
    stop "$holder"
    : >"$dir/go"
    until_true is_gone "$supervisor"
    kill -TERM "$holder"
    kill -CONT "$holder"
    ends
    is "TERM while the success is recorded" "$?" 0

    start_patient --min-hold 600
    pid=$(cat "$dir/out")
    stop "$supervisor"
    : >"$dir/go"
    until_true is_gone "$pid"
    kill -TERM "$holder"
    has_taken "$holder"
    kill -CONT "$supervisor"
    ends
    is "TERM when the command's end is not yet known" "$?" 0

    start out run --grace 1.5 --min-hold 600 patient -- sh -c \
        'sh -c "trap \"echo told\" TERM; echo ready
            while :; do sleep 0.02; done" &
        until grep -q ready "$1"; do sleep 0.02; done' sh "$dir/out"
    says out told
    kill -TERM "$holder"
    ends
    is "TERM while what it has left behind is ended" "$?" 0
}

# TSTP and CONT come while the supervisor is stopped, so that it reads both at
# once: the command goes on.
stopped_for_a_moment() {
    start_patient
    stop "$supervisor"
    kill -TSTP "$holder"
    has_taken "$holder"
    kill -CONT "$holder"
    has_taken "$holder"
    kill -CONT "$supervisor"
    : >"$dir/go"
    ends
    is "CONT right after TSTP lets the command go on" "$?" 0
}

stopped() {
    local pid
    start out run -t 5 signal -- sh -c 'echo $$; exec sleep 600'
    says out '[0-9]'
    pid=$(cat "$dir/out")
    kill -TSTP "$holder"
    until_true state_is "$pid" T
    is "TSTP stops the command" "$?" 0
    run run -n signal -- true
    is "the lock stays held" "$status" 75
    kill -CONT "$holder"
    until_true state_is "$pid" S
    is "CONT lets it go on" "$?" 0
    kill -TSTP "$holder"
    until_true state_is "$pid" T
    kill -TERM "$holder"
    ends
    is "TERM ends it while it is stopped" "$?" 143
}

inherited() {
    local expected
    printf 'a\0b\nc' >"$dir/in"
    sq run files -- cat <"$dir/in" >"$dir/out" 2>"$dir/err"
    cmp -s "$dir/in" "$dir/out"
    is "stdin and stdout are untouched" "$?" 0
    sq run files -- sh -c 'printf "x\ty" >&2' 2>"$dir/err"
    is "stderr is untouched" "$(cat "$dir/err")" $'x\ty'
    out=$(sq run files -- sh -c 'echo /proc/$$/fd/*' </dev/null 2>"$dir/err" |
        sed 's,/proc/[0-9]*/fd/,,g')
    is "no other file is open in it" "$out" "$(sh -c 'echo /proc/$$/fd/*' \
        </dev/null 2>"$dir/err" | sed 's,/proc/[0-9]*/fd/,,g')"
    out=$(sq run files -- sh -c '[ -e /proc/$$/fd/0 ] || echo closed' <&-)
    is "what was closed stays closed" "$out" closed
    # Without 32 and 33, which are the C library's own: a program with threads
    # handles them, and they are no longer ignored in what it executes.
    expected=$(grep -E '^Sig(Blk|Ign)' /proc/self/status | without_own_signals)
    run run files -- grep -E '^Sig(Blk|Ign)' /proc/self/status
    is "signals are as they were" \
        "$(without_own_signals <<<"$out")" "$expected"
    run run files -- sh -c 'ps -o pgid= -p $$ | tr -d " "; echo $$'
    is "it leads a process group" "$(sort -u <<<"$out" | wc -l)" 1
    run run files -- printf '%s|' 'a b' '' '*' '--' '$HOME'
    is "arguments are untouched" "$out" 'a b||*|--|$HOME|'
}

for one in $(databases); do
    use "$one" || continue
    passed_on
    while_waiting
    at_any_moment
    stopped
done
use "$(databases | head -n 1)" && {
    when_it_has_ended
    stopped_for_a_moment
    ignored
    ignored_while_waiting
    inherited
}
database=
skip_missing
done_testing
