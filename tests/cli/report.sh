#!/usr/bin/env bash
# report.sh: --status-fd, by which `sqlock run` reports the lock and the outcome
# to a program, and -c, a command that is a string for a shell.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool fill

# Run the command with --status-fd 7.  Put the report that the lock was granted
# into $dir/granted, and other reports into $dir/report.
reported() { # ARGUMENT...
    : >"$dir/told"
    run run --status-fd 7 "$@" 7>"$dir/told"
    split
}
split() {
    grep '"event":"granted"' "$dir/told" >"$dir/granted"
    grep -v '"event":"granted"' "$dir/told" >"$dir/report"
}
says() { # CAUSE STATUS COMMAND_STATUS COMMAND_SIGNAL: of the last one
    local got
    is "$1: one line" "$(wc -l <"$dir/report")" 1
    is "$1: it is the last" "$(tail -n 1 "$dir/told")" "$(cat "$dir/report")"
    is "$1: that the end is told" "$(json event <"$dir/report")" ended
    got=$(for member in cause status command_status command_signal; do
        json "$member" <"$dir/report"
    done | tr '\n' ' ')
    is "$1: what it says" "$got" "$1 $2 $3 $4 "
    is "$1: the status is the exit status" "$status" "$2"
}

outcomes() {
    local word member
    reported report -- true
    says exited 0 0 null
    is "the name" "$(json name <"$dir/report")" report
    is "the region" "$(json region <"$dir/report")" "$SQLOCK_REGION"
    is "the key" "$(json key <"$dir/report")" "$(sq key report)"
    reported report -- sh -c 'echo "$SQLOCK_TOKEN $SQLOCK_CLIENT_ID"'
    is "the token and the client id are the command's" \
        "$(json token <"$dir/report") $(json client_id <"$dir/report")" "$out"
    is "and those of the grant" \
        "$(json token <"$dir/granted") $(json client_id <"$dir/granted")" "$out"
    is "the members of the grant" "$(json <"$dir/granted")" \
        "event:string token:integer region:string key:string client_id:string"
    reported report -- sh -c 'exit 75'
    says exited 75 75 null
    reported report -- sh -c 'kill -TERM $$'
    says signaled 143 null 15
    reported report -- "$dir/nothing"
    says not_found 127 null null
    : >"$dir/no-program"
    reported report -- "$dir/no-program"
    says not_runnable 126 null null
    hold report
    reported -n report -- true
    says busy 75 null null
    is "there was no lease" "$(json token <"$dir/report")" null
    is "nothing was granted" "$(cat "$dir/granted")" ""
    reported -n -E 0 report -- true
    says busy 0 null null
    let_go
    reported --ttl x report -- true
    says usage 64 null null
    : >"$dir/told"
    run run --ttl x --status-fd 7 report -- true 7>"$dir/told"
    split
    says usage 64 null null
    for word in --bogus --once=x -x "-xn" --wai=3; do
        reported "$word" report -- true
        says usage 64 null null
        is "the name" "$(json name <"$dir/report")" report
        is_one_line "$word: one line"
        : >"$dir/told"
        run run "$word" --status-fd 7 report -- true 7>"$dir/told"
        split
        says usage 64 null null
        is_one_line "$word before it: one line"
    done
    reported report --wait
    says usage 64 null null
    : >"$dir/told"
    run lead --status-fd 7 --once report -- true 7>"$dir/told"
    split
    says usage 64 null null
    run run --status-fd 99 --bogus report -- true
    is "a descriptor that is not open: usage" "$status" 64
    is_one_line "a descriptor that is not open, and more: one line"
    reported ""
    says usage 64 null null
    reported --region $'\xff' report -- true
    says usage 64 null null
    is "a region that is not UTF-8 is told, escaped" \
        "$(json region <"$dir/report")" '\xff'
    reported report
    says usage 64 null null
    is "a region that was not read is null" \
        "$(json region <"$dir/report")" null
    is "and so is what belongs to a lease" \
        "$(for member in key token client_id; do
            json "$member" <"$dir/report"
        done | uniq)" null
    SQLOCK_URL=sqlite:$dir/nowhere/x.db reported -n report -- true
    says usage 64 null null
    SQLOCK_URL=postgresql://nobody@127.0.0.1:1/none reported -n report -- true
    says database 69 null null
    # A machine that stalls for longer than a fortieth of the lease between
    # KILL and its end has no signal to report.
    reported -t 30 --grace 1 report -- sh -c "trap '' TERM
        '$SQLOCK' --url '$SQLOCK_URL' --table-prefix $prefix -q break report \
            --token \"\$SQLOCK_TOKEN\" --reason test
        while :; do sleep 0.1; done"
    says lost 76 null 9
}

# sqlock reports that it has the lock while the command runs.  If the pipe is
# full, the command runs all the same.
at_once() {
    mkfifo "$dir/fifo"
    "$SQLOCK" --table-prefix "$prefix" run --status-fd 7 at-once -- \
        sleep 600 7>"$dir/fifo" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    exec 8<"$dir/fifo"
    read -r -t 30 -u 8 out
    is "the grant is told at once" "$(json event <<<"$out")" granted
    is "the token is the row's" "$(json token <<<"$out")" \
        "$(sq show at-once --json | json token)"
    let_go
    read -r -t 30 -u 8 out
    is "and the end at the end" "$(json cause <<<"$out")" signaled
    exec 8<&-
    # The pipe is full, and is not read before the command has run.
    "$dir/fill" "$SQLOCK" --table-prefix "$prefix" run --status-fd 7 full \
        -- touch "$dir/it-ran" 2>"$dir/err" | {
        until_true test -e "$dir/it-ran" && echo yes >"$dir/ran-unread"
        cat >/dev/null
    }
    is "a pipe that is full keeps the command from nothing" \
        "$(cat "$dir/ran-unread" 2>/dev/null)" yes
}

# Start sqlock with a pipe that is full, and stays so, as stderr and 7.
unread() { # ARGUMENT...
    [ -p "$dir/full" ] || mkfifo "$dir/full"
    exec 6<>"$dir/full"
    "$dir/fill" "$SQLOCK" --table-prefix "$prefix" "$@" >&6 2>&6 &
    holder=$!
    helper "$holder"
    exec 6<&-
}
is_free() { # KEY: after it was held
    [ "$(sq show "$1" --json 2>/dev/null | json state)" = free ]
}
waits() { # KEY
    [ "$(sq show "$1" --json | json waiters)" = 1 ]
}
is_ended() { # WHAT
    kill -TERM "$holder"
    ends
    is "$1: TERM ends sqlock although nobody reads" "$?" 143
}

# Nobody reads what sqlock writes at its end: signals end it as before.
nobody_reads() {
    local waiter
    unread run --status-fd 7 unread-report -- true
    until_true is_free unread-report
    is_ended "the report"
    unread run unread-message "$dir/nothing"
    until_true is_free unread-message
    is_ended "a message"
    hold unread-wait
    waiter=$holder
    unread run --status-fd 7 unread-wait -- true
    until_true waits unread-wait
    is_ended "the report of a wait"
    holder=$waiter
    let_go
}

done_before() {
    sq -q init --once
    reported --once once -- true
    says exited 0 0 null
    reported --once once -- false
    says 'done' 0 null null
}

interrupted() {
    hold report
    local waiter=$holder
    : >"$dir/told"
    rm -f "$dir/waiting"
    "$SQLOCK" --table-prefix "$prefix" -v run --status-fd 7 report -- true \
        7>"$dir/told" 2>"$dir/waiting" &
    holder=$!
    helper "$holder"
    until_true grep -q waiting "$dir/waiting"
    kill -TERM "$holder"
    ends
    status=$?
    split
    says interrupted 143 null null
    holder=$waiter
    let_go
}

descriptors() {
    local fd word
    for fd in 8 -1 x 99999999999; do
        run run --status-fd "$fd" report -- echo "it runs"
        is "--status-fd $fd" "$status/$out" "64/"
        is_one_line "--status-fd $fd says why"
    done
    reported report -- sh -c '[ -e /proc/self/fd/7 ] || echo closed'
    is "the command does not have it" "$out" closed
    run run --status-fd 1 report -- true
    is "it may be stdout" "$(tail -n 1 <<<"$out" | json cause)" exited
    # The pipe has no reader any more: sqlock neither fails nor dies of SIGPIPE.
    sq run --status-fd 7 report -- sh -c 'sleep 0.2; exit 3' 7> >(:) 2>"$dir/err"
    is "a pipe that nobody reads" "$?" 3
    mkfifo "$dir/unread"
    exec 5<>"$dir/unread" 8>"$dir/unread" 5<&-
    for word in --bogus "--grace 99"; do
        # shellcheck disable=SC2086 # an option and its value
        sq run --status-fd 8 $word report -- true 2>"$dir/err"
        is "a pipe that nobody reads: $word" "$?" 64
        # shellcheck disable=SC2086
        sq lead --status-fd 8 $word report -- true 2>"$dir/err"
        is "a pipe that nobody reads: lead $word" "$?" 64
    done
    exec 8>&-
}

# In JSON the name has 60,000 bytes, far more than a pipe takes in one piece: it is
# left out.
long_name() {
    local name
    name=$(printf '\001%.0s' {1..10000})
    mkfifo "$dir/pipe"
    exec 8<>"$dir/pipe"
    sq run --status-fd 8 "$name" -- true
    status=$?
    timeout 60 head -n 2 <&8 >"$dir/told"
    split
    says exited 0 0 null
    is "a long name is left out" "$(json name <"$dir/report")" null
    hold "$name"
    waiter=$holder
    "$SQLOCK" --table-prefix "$prefix" -v run --status-fd 8 "$name" -- true \
        2>"$dir/waits" &
    holder=$!
    helper "$holder"
    until_true grep -q waiting "$dir/waits"
    printf '%30000s\n' "" >&8
    kill -TERM "$holder"
    ends
    status=$?
    timeout 60 head -n 2 <&8 | tail -n 1 >"$dir/told"
    split
    says interrupted 143 null null
    is "a long name is left out when a signal ends sqlock" \
        "$(json name <"$dir/report")" null
    holder=$waiter
    let_go
    exec 8>&-
}

# A candidate that is told to end while nobody reads its reports any more.
unread_candidate() {
    hold report
    waiter=$holder
    mkfifo "$dir/closed"
    exec 5<>"$dir/closed" 8>"$dir/closed" 5<&-
    "$SQLOCK" --table-prefix "$prefix" -v lead --status-fd 8 report -- true \
        2>"$dir/waits" &
    holder=$!
    helper "$holder"
    until_true grep -q waiting "$dir/waits"
    kill -TERM "$holder"
    ends
    is "a pipe that nobody reads: lead, told to end" "$?" 143
    holder=$waiter
    let_go
    exec 8>&-
}

strings() {
    run run report -c 'echo "$((40 + 2))"; exit 6'
    is "-c" "$status/$out" "6/42"
    run run -c 'echo one' report
    is "-c before the key" "$status/$out" "0/one"
    run run report -c true -- true
    is "-c and a command: usage" "$status" 64
    run run report --command 'exit 7'
    is "--command" "$status" 7
}

for one in $(databases | head -n 1); do
    use "$one" || continue
    outcomes
    at_once
    nobody_reads
    done_before
    interrupted
    descriptors
    unread_candidate
    long_name
    strings
done
database=
done_testing
