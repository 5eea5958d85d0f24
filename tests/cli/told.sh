#!/usr/bin/env bash
# told.sh: sqlock is told to end while its command runs, or a signal ends the
# command: nothing that was started is left, daemons included, when the lock
# passes on; and --keep-daemons, which leaves daemons alone.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# A daemon that ignores TERM, and HOW the command ends.
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
    # The command's own end, after that.
    start "trap 'exit 3' TERM; $command$until_told"
    started
    kill -TERM "$holder"
    ends
    is "told, the command exits by itself: its own status" "$?" 3
    is "told, the command exits by itself: the daemon is ended" \
        "$(next_sees)" gone
    has "told: what was ended is told" "$(cat "$dir/err")" "left processes"
}

# A signal that sqlock is not told of, as ^C on a terminal.
ended_by_a_signal() {
    start "$command"'; echo ready >"$2"; kill -INT $$; sleep 600'
    started
    ends
    is "the command is ended by a signal: exit status" "$?" 130
    is "the command is ended by a signal: the daemon, too" "$(next_sees)" gone
}

# A signal that is only passed on leaves it to the command whether to end.
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

    # Not where the lease would not outlast it.
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
    not_told
    kept
fi
database=
skip_missing
done_testing
