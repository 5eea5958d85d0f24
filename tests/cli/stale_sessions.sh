#!/usr/bin/env bash
# stale_sessions.sh: sessions of PostgreSQL, which have names: how many a command
# has; and statements that go on in the server after their client was killed
# (F74), for whose end the next holder waits.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
psql=("bash" "$here/../tools/servers/psql.sh" -qXAt "${SQLOCK_TEST_POSTGRES_URL:-}")

ask() { # SQL
    "${psql[@]}" -c "$1" 2>>"$dir/err.psql"
}
tag_of() { # KEY: what its holder's command finds
    sq run "$1" -- sh -c 'echo "$PGAPPNAME"'
}

# Lock the table cli_gate in a session, until open_gate.  Statements of other
# sessions wait at this gate by LOCK TABLE: they have read nothing, so CREATE
# INDEX CONCURRENTLY in the same database does not wait for them.
shut_gate() {
    ask "CREATE TABLE IF NOT EXISTS cli_gate (n int)"
    mkfifo "$dir/gate"
    "${psql[@]}" <"$dir/gate" >"$dir/gate.out" 2>&1 &
    helper "$!"
    exec 8>"$dir/gate"
    printf '%s\n' "BEGIN;" "LOCK TABLE cli_gate;" "\\echo shut" >&8
    until_true grep -qx shut "$dir/gate.out" || not_ok "gate" "it is not shut"
}
open_gate() {
    exec 8>&-
    ask "DROP TABLE cli_gate"
}

names() {
    local first second
    first=$(tag_of names)
    second=$(tag_of names)
    like "a session has a name" "$first" "sqlock:????????????????:[1-9]*"
    is "of the lock" "${second%:*}" "${first%:*}"
    [ "$second" != "$first" ]
    is "and of the token" "$?" 0
    is "that fits" "$((${#first} < 64))" 1
    [ "$(tag_of others)" != "$first" ]
    is "another lock has another one" "$?" 0
    out=$(PGAPPNAME=mine tag_of names)
    is "a name that the caller has given stays" "$out" mine
}

# A command that waits, and asks meanwhile who holds the lock, has one session,
# and so has the holder before it renews its lease.
one_each() {
    local pids=() i
    hold one_each -t 600
    pids=("$holder")
    for i in 1 2 3 4 5 6; do
        "$SQLOCK" --table-prefix "$prefix" run one_each -- true \
            2>"$dir/err.$i" &
        helper "$!"
        pids+=("$!")
    done
    for i in 1 2 3 4 5 6; do
        until_true grep -q "waiting, at place" "$dir/err.$i"
    done
    is "a session each of six who wait and a holder" "$(ask "SELECT count(*)
        FROM pg_stat_activity WHERE application_name SIMILAR TO
        'sqlock % ($(IFS='|' && echo "${pids[*]}"))'")" 7
    let_go
    for i in "${pids[@]:1}"; do
        wait "$i" || not_ok "one who waited" "exit status $?"
    done
}

# sqlock and its command, a client, are killed, and the client's statement goes
# on in the server: no other command begins before it has ended.
killed() {
    local waiter orphan
    ask "CREATE TABLE IF NOT EXISTS cli_orphan (n int)"
    "$SQLOCK" --table-prefix "$prefix" run -t 2 job -- "${psql[@]}" \
        -c "BEGIN" -c "INSERT INTO cli_orphan VALUES (1)" \
        -c "LOCK TABLE cli_gate" 2>"$dir/err.first" 8>&- &
    holder=$!
    helper "$holder"
    until_true is_waiting || not_ok "F74" "no statement is running"
    orphan=$(waiters)
    kill -KILL "$holder"
    ends
    run run -n soon -- true
    is "F74 another lock is not kept waiting" "$status" 0
    until_true is_refused_for_orphans
    is "F74 -n: nobody is let in beside the statement" "$?" 0
    is "F74 which goes on" "$(waiters)" "$orphan"
    run show job --json
    is "F74 the lock was given back" "$(json state <<<"$out")" free
    run run -w 1.5 job -- echo "it runs"
    is "F74 -w: given up in time" "$status/$out" "75/"
    is_one_line "F74 it is said"

    rm -f "$dir/err" # what is waited for must not be the last one's
    "$SQLOCK" --table-prefix "$prefix" run job -- \
        bash "$here/../tools/servers/psql.sh" -qXAt "$SQLOCK_URL" \
        -c "SELECT count(*) FROM cli_orphan" >"$dir/out" 2>"$dir/err" 8>&- &
    waiter=$!
    helper "$waiter"
    until_true grep -q "still at work" "$dir/err" ||
        not_ok "F74" "who waits does not say so"
    is "F74 meanwhile it does not begin" "$(cat "$dir/out")" ""
    is "F74 and keeps the lock" "$(sq show job --json | json state)" held
    ask "SELECT pg_terminate_backend($orphan)" >"$dir/ended"
    wait "$waiter"
    is "F74 then it does" "$?/$(cat "$dir/out")" "0/0"
    ask "DROP TABLE cli_orphan"
}
waiters() {
    ask "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LOCK TABLE cli_gate%' \
        AND application_name LIKE 'sqlock:%' AND wait_event_type = 'Lock'"
}
is_waiting() {
    [ -n "$(waiters)" ]
}
# Check the message, too: the exit status is 75 while the old lease lasts, as
# well.
is_refused_for_orphans() {
    run run -n job -- true
    [ "$status" -eq 75 ] && [[ $err == *"still at work"* ]]
}

# Those who share a lock do not wait for one another's statements, but for those
# of one who has lost it.
shared() {
    local sharer
    run acquire --shared --ttl 600 together
    "$SQLOCK" --table-prefix "$prefix" run -t 2 --shared together -- \
        "${psql[@]}" -c "BEGIN" -c "LOCK TABLE cli_gate" 2>"$dir/err.first" 8>&- &
    holder=$!
    helper "$holder"
    until_true is_waiting || not_ok "--shared" "no statement is running"
    sharer=$(waiters)
    run run -n --shared together -- echo in
    is "a sharer begins beside another's statement" "$status/$out" 0/in
    kill -KILL "$holder"
    ends
    until_true is_kept_out
    is "but not beside that of a sharer whose lease is over" "$?" 0
    ask "SELECT pg_terminate_backend($sharer)" >"$dir/ended"
    until_true sq run -n --shared together -- true
    is "then it does" "$?" 0
}
is_kept_out() {
    run run -n --shared together -- true
    [ "$status" -eq 75 ] && [[ $err == *"still at work"* ]]
}

# A signal ends the wait for such statements, and the lock is released.
interrupted() {
    local orphan
    start_orphan
    orphan=$!
    until_true is_waiting
    for signal in TERM HUP; do
        rm -f "$dir/err"
        env --default-signal=INT,QUIT "$SQLOCK" --table-prefix "$prefix" run \
            -t 60 signal -- true 2>"$dir/err" &
        holder=$!
        helper "$holder"
        until_true grep -q "still at work" "$dir/err"
        kill -"$signal" "$holder"
        ends
        is "$signal while waiting for them" "$?" $((128 + $(kill -l "$signal")))
        is "the lock was given back" "$(sq show signal --json | json state)" free
    done
    ask "SELECT pg_terminate_backend($(waiters))" >"$dir/ended"
    wait "$orphan"
    run run -n signal -- true
    is "and then it is to be had" "$status" 0
}
start_orphan() {
    PGAPPNAME=$(tag_of signal) "${psql[@]}" -c "BEGIN" -c "LOCK TABLE cli_gate" \
        >"$dir/orphan" 2>&1 8>&- &
    helper "$!"
}

for one in $(databases); do
    use "$one" || continue
    if [ "$one" != postgres ]; then
        is "sessions have no names" "$(tag_of names)" ""
        continue
    fi
    names
    one_each
    shut_gate
    killed
    shared
    interrupted
    open_gate
done
database=
skip_missing
done_testing
