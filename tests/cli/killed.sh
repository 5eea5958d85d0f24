#!/usr/bin/env bash
# killed.sh: sqlock is killed by its name, as an operator does it: nothing that
# it has started is left when the lock passes on.  The name is one of the test's
# own, so that it kills nobody else's.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

name=lk$$
ln -s "$(realpath "$SQLOCK")" "$dir/$name"

# A daemon that ignores TERM, of a command that only KILL ends.
command='setsid sh -c "trap \"\" TERM; echo \$\$ >\"\$1\"
        while :; do sleep 0.05; done" sh "$1" </dev/null >/dev/null 2>&1 &
    until [ -s "$1" ]; do sleep 0.01; done
    echo ready >"$2"; trap "" TERM; while :; do sleep 0.05; done'

start() {
    rm -f "$dir/daemon" "$dir/ready"
    # Its folder is not named, which holds the name.
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

for one in $(databases); do
    use "$one" || continue
    by_name "pkill -9 NAME" pkill -KILL "$name"
    by_name "pkill -9 -f NAME" pkill -KILL -f "$name"
    command -v killall >/dev/null &&
        by_name "killall -9 NAME" killall -KILL "$name"
done
database=
skip_missing
done_testing
