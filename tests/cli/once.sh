#!/usr/bin/env bash
# once.sh: with --once a command that has succeeded is not run again, on any
# layout; with --min-hold a lock is kept for a while after a success.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty
preload late
preload slow_kill
preload unread

table() {
    sq -q init --once 2>"$dir/err" || not_ok "init --once" "it fails"
}

recorded() {
    run run --once new -- echo "it runs"
    is "without a table: exit status" "$status" 69
    is "the command was not run" "$out" ""
    has "it says what to do" "$err" "sqlock init --once"
    is_one_line "in one line"
    table
    run init --once
    is "init --once may be repeated" "$status" 0
    run run --once job -- sh -c 'echo "it runs"; exit 4'
    is "a failure is no success" "$status/$out" "4/it runs"
    run run --once job -- sh -c 'echo "it runs"'
    is "so it runs again" "$status/$out" "0/it runs"
    run run --once job -- sh -c 'echo "it runs"; exit 5'
    is "after a success it does not" "$status/$out" "0/"
    run run job -- echo "it runs"
    is "without --once it does" "$status/$out" "0/it runs"
    run reap --older-than 0
    run run --once job -- echo "it runs"
    is "reap does not touch the record" "$status/$out" "0/"
    run run --once other -- echo "it runs"
    is "another key is another thing" "$status/$out" "0/it runs"
    run run --region "$region.2" --once job -- echo "it runs"
    is "and so is another region" "$status/$out" "0/it runs"
}

looked_at() {
    run once show job --json
    is "once show" "$status" 0
    is "its members" "$(json <<<"$out")" \
        "name:string key:string done_at:string token:integer client_id:string"
    is "its key" "$(json key <<<"$out")" "$(sq key job)"
    is_now "$(json done_at <<<"$out")"
    is "when it was done" "$?" 0
    run once list
    is "once list: by name" "$(awk '{ print $1 }' <<<"$out" | paste -sd ' ')" \
        "NAME job other"
    is_now "$(awk '$1 == "job" { print $2, $3 }' <<<"$out")"
    is "and when" "$?" 0
    run once ls --json
    is "once list --json" "$(json records <<<"$out")" 2
    run once show nothing
    is "once show of nothing" "$status" 1
    is_one_line "is said"
    run once forget job
    is "once forget" "$status/$out/$err" "0//"
    run run --once job -- echo "it runs"
    is "what is forgotten is done again" "$status/$out" "0/it runs"
    run once forget nothing
    is "once forget of nothing" "$status" 1
    is_one_line "is said, too"
    run run --once job -- echo "it runs"
    is_one_line "it is said that nothing is done, elsewhere than on a terminal"
    like "and when it was" "$err" \
        "*\"job\" was done before, at $(date -u +%Y)-??-?? ??:??:??Z: nothing is*"
    run -q run --once job -- echo "it runs"
    is "--quiet does not" "$status/$err" 0/
    out=$("$dir/pty" 200 "$SQLOCK" --table-prefix "$prefix" run --once job true)
    has "a terminal is told, too" "$out" '"job" was done before, at'
}

so_many_wait() { # KEY COUNT
    [ "$(sq show "$1" --json | json waiters)" = "$2" ]
}

# While this one waits, the work is done elsewhere, and then its own release
# fails: the work is done all the same.
done_meanwhile() {
    local other
    rm -f "$dir/go"
    "$SQLOCK" --table-prefix "$prefix" run --once meanwhile -- \
        sh -c 'until [ -e "$1" ]; do sleep 0.05; done' sh "$dir/go" &
    other=$!
    helper "$other"
    until_true is_held_by meanwhile "$other"
    client <<END
CREATE TRIGGER NO_RELEASE BEFORE UPDATE ON ${prefix}LOCK
WHEN NEW.CLIENT_ID IS NULL AND
    OLD.CLIENT_ID <> '$(sq show meanwhile --json | json client_id)'
BEGIN SELECT RAISE(ABORT, 'no release'); END;
END
    is "a trigger that prevents a release" "$?" 0
    "$SQLOCK" --table-prefix "$prefix" run --once meanwhile -- echo "it runs" \
        >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true so_many_wait meanwhile 1
    touch "$dir/go"
    ends
    is "what was done meanwhile, and a release that fails" \
        "$?/$(cat "$dir/out")" 0/
    has "the record is told" "$(cat "$dir/err")" "was done before"
    has "and the failure" "$(cat "$dir/err")" "could not be released"
    client <<<"DROP TRIGGER NO_RELEASE"
    wait "$other"
}

# Another program has written the record, whose bytes are no UTF-8.
foreign() {
    client <<END
INSERT INTO ${prefix}DONE (LOCK_KEY, REGION, CLIENT_ID, FENCE)
    VALUES (CAST(X'6bff' AS TEXT), 'foreign', CAST(X'63ff' AS TEXT), 1);
END
    run once list --region foreign --json
    is "a record that is no UTF-8" "$status $(grep -o '\(key\|client_id\)": ".*"' \
        <<<"$out" | paste -sd ' ')" '0 key": "k\\xff" client_id": "c\\xff"'
}

# A command that was told to end may not have done its work, though it says so.
told_to_end() {
    local what keep script expected
    while IFS='|' read -r what keep expected script; do
        sq once forget told 2>/dev/null
        rm -f "$dir/ready"
        # shellcheck disable=SC2086 # there may be none
        "$SQLOCK" --table-prefix "$prefix" run --once $keep told -- \
            sh -c "$script" sh "$dir/ready" 2>"$dir/err" &
        holder=$!
        helper "$holder"
        until_true test -e "$dir/ready"
        kill -TERM "$holder"
        ends
        is "$what: exit status" "$?" "${expected%/*}"
        run run --once told -- echo "it runs"
        is "$what: whether it is run again" "$out" "${expected#*/}"
    done <<'END'
told to end, with a part left||143/it runs|trap "exit 0" TERM; setsid sleep 100 & : >"$1"; wait
the same with --keep-daemons|--keep-daemons|143/it runs|trap "exit 0" TERM; sleep 100 & : >"$1"; wait
told to end, with nothing left||143/it runs|trap "exit 0" TERM; : >"$1"; while :; do sleep 0.02; done
END
    told_and_over
    run run --once left -- sh -c 'sleep 100 & exit 0'
    is "a success that leaves something behind" "$status" 0
    run run --once left -- echo "it runs"
    is "is one" "$out" ""
}

# The command obeys the signal, and has ended before the supervisor runs on
# (slow_kill.c): that was no success either.
told_and_over() {
    rm -f "$dir/ready"
    LD_PRELOAD=$dir/slow_kill.so "$SQLOCK" --table-prefix "$prefix" \
        run --once told-and-over -- sh -c 'trap "exit 0" TERM
            : >"$1"; while :; do sleep 0.02; done' sh "$dir/ready" \
        2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true test -e "$dir/ready"
    kill -TERM "$holder"
    ends
    is "told to end, and over at once: exit status" "$?" 143
    run run --once told-and-over -- echo "it runs"
    is "told to end, and over at once: it is run again" "$out" "it runs"
}

# Ten run at once: the nine that have waited find the record of the first, and
# run nothing.
ten() {
    local i pids=() failed=0
    : >"$dir/log"
    for i in 1 2 3 4 5 6 7 8 9 10; do
        sq run -w 60 --once ten -- sh -c 'echo ran; sleep 0.2' \
            >>"$dir/log" 2>>"$dir/err" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || failed=$((failed + 1))
    done
    is "ten at once all succeed" "$failed" 0
    is "and one of them ran" "$(wc -l <"$dir/log")" 1
}

# The lease is broken while the command runs, which then succeeds: the success
# is not recorded.
lost() {
    sq run -t 20 --once lost -- sh -c "
        '$SQLOCK' --url '$SQLOCK_URL' --table-prefix $prefix -q break lost \
            --client-id \"\$SQLOCK_CLIENT_ID\" --token \"\$SQLOCK_TOKEN\" \
            --reason test --now
        '$SQLOCK' --url '$SQLOCK_URL' --table-prefix $prefix -q run -w 20 \
            lost -- true" 2>"$dir/err"
    is "lost under the command: exit status" "$?" 76
    run run --once lost -- echo "it runs"
    is "nothing was recorded" "$status/$out" "0/it runs"
}

# The command may end before the thread that holds the lock waits for orders:
# late.c delays that thread.
at_once() {
    out=$(LD_PRELOAD="$dir/late.so" timeout -s KILL 30 "$SQLOCK" \
        --table-prefix "$prefix" run --once at-once -- echo "it runs" \
        2>"$dir/err")
    is "a command that ends at once is recorded" "$?/$out" "0/it runs"
    run run --once at-once -- echo "it runs"
    is "and not run again" "$status/$out" "0/"
}

is_gone_signalled() {
    kill -USR1 "$holder" 2>/dev/null
    is_gone "$holder"
}

# Each signal to sqlock makes a message to the supervisor, which ends with one
# unread (unread.c): sqlock still reads the supervisor's last message.
unread() {
    rm -f "$dir/out"
    LD_PRELOAD="$dir/unread.so" "$SQLOCK" --table-prefix "$prefix" \
        run --once unread -- sh -c 'trap "" USR1; echo "it runs"; sleep 0.1' \
        >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true test -s "$dir/out"
    until_true is_gone_signalled
    ends
    is "the last message of a supervisor is read" "$?/$(cat "$dir/out")" \
        "0/it runs"
    run run --once unread -- echo "it runs"
    is "and the success is recorded" "$status/$out" "0/"
}

min_hold() {
    rm -f "$dir/first" "$dir/done"
    local before
    # The second command begins at least 1.4 s after the first one was granted
    # the lock, and so after `before`.
    before=$(date +%s%3N)
    sq run --min-hold 1.5 hold -- echo begun >"$dir/first" 2>"$dir/err" &
    until_true test -s "$dir/first"
    run run -w 60 hold -- date +%s%3N
    [ $((out - before)) -ge 1400 ]
    is "--min-hold: so long" "$?" 0
    wait "$!"
    is "--min-hold: exit status" "$?" 0
    run run --min-hold 60 failing -- sh -c 'exit 3'
    is "--min-hold: not after a failure" "$status" 3
    "$SQLOCK" --table-prefix "$prefix" run --min-hold 600 hold -- echo finished >"$dir/done" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true grep -q finished "$dir/done"
    run run -n hold -- true
    is "--min-hold: the lock is held after the command's end" "$status" 75
    kill -TERM "$holder"
    ends
    is "--min-hold: a signal cuts it, not the success" "$?" 0
    run run -n hold -- true
    is "--min-hold: then the lock is free" "$status" 0
}

for one in $(databases); do
    for layout in sqlock spring7 spring6; do
        use "$one" "$layout" || continue
        database=$one/$layout
        recorded
        looked_at
        ten
        [ "$layout" != sqlock ] || lost
    done
    use "$one" || continue
    at_once
    min_hold
    if [ "$one" = sqlite ]; then
        done_meanwhile
        foreign
    fi
done
if use "$(databases | head -n 1)"; then
    table
    told_to_end
    unread
fi
database=
skip_missing
done_testing
