#!/usr/bin/env bash
# killed.sh: sqlock is killed by its name, as with pkill(1): no process that it
# has started is left when the next holder gets the lock.  The script gives
# sqlock a name of its own, so that it kills no other sqlock.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

name=lk$(printf %07d $$)killed # part of no other name
ln -s "$(realpath "$SQLOCK")" "$dir/$name"

# A command that starts a daemon, writes the daemon's number to $1 and then a
# word to $2.  Command and daemon ignore TERM.
command='setsid sh -c "trap \"\" TERM; echo \$\$ >\"\$1\"
        while :; do sleep 0.05; done" sh "$1" </dev/null >/dev/null 2>&1 &
    until [ -s "$1" ]; do sleep 0.01; done
    echo ready >"$2"; trap "" TERM; while :; do sleep 0.05; done'

start() {
    rm -f "$dir/daemon" "$dir/ready"
    # No argument of the command has the name in it, which pkill -f would find.
    (
        cd "$dir" || exit
        exec "./$name" --table-prefix "$prefix" run -t 4 job -- \
            sh -c "$command" sh daemon ready
    ) 2>"$dir/err" &
    holder=$!
    helper "$holder"
    started
}

by_name() { # WHAT COMMAND...
    local what=$1
    shift
    start
    "$@" >>"$dir/err" 2>&1
    is "$what finds it" "$?" 0
    ends
    is "$what kills it" "$?" 137
    is "$what: nothing is left for the next" "$(next_sees)" gone
}

# The supervisor, which ends the command, comes before all other processes.
precedence() {
    local supervisor
    chrt -f 1 true 2>/dev/null || {
        skip "the supervisor's precedence" "nobody may have any here"
        return
    }
    start
    supervisor=$(supervisor_of "$holder")
    is "the supervisor runs first on a busy machine" \
        "$(ps -o cls= -p "$supervisor" | tr -d ' ')" FF
    kill -KILL "$holder"
    ends
}

for one in $(databases); do
    use "$one" || continue
    precedence
    by_name "pkill -9 NAME" pkill -KILL "$name"
    by_name "pkill -9 -f NAME" pkill -KILL -f "$name"
    if command -v killall >/dev/null; then
        by_name "killall -9 NAME" killall -KILL "$name"
    else
        skip "killall -9 NAME" "there is no killall"
    fi
done
database=
skip_missing
done_testing
