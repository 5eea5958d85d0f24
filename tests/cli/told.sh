#!/usr/bin/env bash
# told.sh: a signal tells sqlock to end while its command runs, or ends the
# command: no process that the command has started, not even a daemon, is left
# when the next holder gets the lock.  With --keep-daemons, daemons are left
# alone.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# The beginning of a command: start a daemon that ignores TERM and writes its
# number to $1.  With $until_told, the command then writes to $2 and runs until
# a signal ends it.
command='setsid sh -c "trap \"\" TERM; echo \$\$ >\"\$1\"
        while :; do sleep 0.05; done" sh "$1" </dev/null >/dev/null 2>&1 &
    until [ -s "$1" ]; do sleep 0.01; done'
until_told='; echo ready >"$2"; while :; do sleep 0.02; done'

start() { # SCRIPT OPTION...
    local script=$1
    shift
    rm -f "$dir/daemon" "$dir/ready"
    env --default-signal=INT,QUIT "$SQLOCK" --table-prefix "$prefix" run -t 20 \
        --grace 0.3 "$@" job -- sh -c "$script" sh "$dir/daemon" "$dir/ready" \
        2>"$dir/err" &
    holder=$!
    helper "$holder"
}

told() {
    local signal
    for signal in HUP INT QUIT TERM; do
        start "$command$until_told"
        started
        kill -"$signal" "$holder"
        ends
        is "told by $signal: exit status" "$?" $((128 + $(kill -l "$signal")))
        is "told by $signal: a daemon is ended before the next" \
            "$(next_sees)" gone
    done
    # The command catches the signal and exits by itself.
    start "trap 'exit 3' TERM; $command$until_told"
    started
    kill -TERM "$holder"
    ends
    is "told, the command exits by itself: its own status" "$?" 3
    is "told, the command exits by itself: the daemon is ended" \
        "$(next_sees)" gone
    has "told: what was ended is told" "$(cat "$dir/err")" "left processes"
}

# A signal ends the command, but is not sent to sqlock, as with ^C on a
# terminal: the daemon is ended, too.
ended_by_a_signal() {
    local signal
    for signal in INT KILL SEGV USR1; do
        start "$command; echo ready >\"\$2\"; kill -$signal \$\$; sleep 600"
        started
        ends
        is "the command is ended by $signal: exit status" "$?" \
            $((128 + $(kill -l "$signal")))
        is "the command is ended by $signal: the daemon, too" "$(next_sees)" gone
    done
}

# A descendant's name looks like the end of a name in /proc/PID/stat, and what
# follows it: it is told to end like the others.
odd_name() {
    cp "$(command -v bash)" "$dir/a) S 1"
    cat >"$dir/odd.sh" <<'END'
trap 'echo told >"$2"; exit' TERM
echo $$ >"$1"
while :; do sleep 0.05; done
END
    rm -f "$dir/was_told"
    start "'$dir/a) S 1' '$dir/odd.sh' \"\$1\" '$dir/was_told' &
        trap '' TERM
        until [ -s \"\$1\" ]; do sleep 0.01; done
        echo ready >\"\$2\"
        while :; do sleep 0.05; done" --grace 3
    started
    is "an odd name: it has that name" "$(ps -o comm= -p "$daemon")" "a) S 1"
    sq -q break job --token "$(sq show job --json | json token)" --now \
        --reason test 2>/dev/null
    ends
    is "an odd name: the lease is lost" "$?" 76
    is "an odd name: it was told to end, before it was killed" \
        "$(cat "$dir/was_told" 2>&1)" told
}

# A signal that sqlock only passes on does not tell sqlock to end.  The command
# exits by itself: its daemon is left alone.
not_told() {
    start "trap 'exit 0' USR1; $command$until_told"
    started
    kill -USR1 "$holder"
    ends
    is "USR1, the command exits by itself: its own status" "$?" 0
    is "USR1, the command exits by itself: the daemon is left alone" \
        "$(next_sees)" alive
    kill -KILL "$daemon"
}

kept() {
    start "$command$until_told" --keep-daemons
    started
    kill -TERM "$holder"
    ends
    is "--keep-daemons, told by TERM: exit status" "$?" 143
    is "--keep-daemons, told by TERM: the daemon is left alone" \
        "$(next_sees)" alive
    kill -KILL "$daemon"

    # sqlock is killed, so the lease is renewed no longer: the daemon is ended
    # all the same, before the lease is over.
    start "$command$until_told" --keep-daemons -t 3
    started
    kill -KILL "$holder"
    ends
    is "--keep-daemons, sqlock is killed: the daemon is ended" \
        "$(next_sees)" gone
}

for one in $(databases); do
    use "$one" || continue
    told
done
if use "$(databases | head -n 1)"; then
    ended_by_a_signal
    odd_name
    not_told
    kept
fi
database=
skip_missing
done_testing
