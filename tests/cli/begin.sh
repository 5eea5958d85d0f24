#!/usr/bin/env bash
# begin.sh: a command that must not begin, because its lease is over, or that
# cannot begin; and messages when stderr blocks or its writer is late.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
preload halt
preload refuse
preload slow

# sqlock has told the supervisor to let the command begin.  Both are stopped, as
# if the machine were frozen, before the supervisor reads that, and go on after
# the lease has expired: the command does not begin.
frozen() {
    local supervisor
    rm -f "$dir/begun"
    LD_PRELOAD="$dir/halt.so" "$SQLOCK" --table-prefix "$prefix" run -t 3 \
        frozen -- sh -c ': >"$1"' sh "$dir/begun" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true is_halted_or_gone
    supervisor=$(supervisor_of "$holder")
    sleep 0.2 # until it is given
    stop "$holder"
    until_true is_over frozen
    kill -CONT "$supervisor"
    until_true is_gone "$supervisor"
    kill -CONT "$holder"
    ends
    is "frozen before the command began: exit status" "$?" 76
    [ ! -e "$dir/begun" ]
    is "frozen before the command began: it does not begin" "$?" 0
}
is_halted_or_gone() {
    state_is "$(supervisor_of "$holder")" T || is_gone "$holder"
}
is_over() { # KEY
    ! is_held "$1"
}

# The command's process cannot be forked, and sqlock gets a signal for the
# command: the signal reaches no other process of sqlock's process group.
not_forked() {
    local holding supervisor bystander
    hold refused
    holding=$holder
    # sqlock and the bystander have a process group of their own.
    setsid sh -c 'sleep 600 & echo $! >"$1"; LD_PRELOAD=$2; shift 2
        export LD_PRELOAD; exec "$@"' sh "$dir/bystander" "$dir/refuse.so" \
        "$SQLOCK" --table-prefix "$prefix" -v run refused -- true \
        2>"$dir/err" &
    holder=$!
    until_true grep -q waiting "$dir/err"
    bystander=$(cat "$dir/bystander")
    supervisor=$(supervisor_of "$holder")
    helper "$holder" "$bystander" "$supervisor"
    stop "$supervisor"
    kill -TERM "$holding"
    until_true grep -q "is ours" "$dir/err"
    kill -USR1 "$holder"
    has_taken "$holder"
    kill -CONT "$supervisor"
    ends
    is "no process for the command: exit status" "$?" 126
    is_alive "$bystander"
    is "no process for the command: a signal for it gets nobody else" "$?" 0
    kill -KILL "$bystander"
}

# There is no such command, and stderr is a full pipe: sqlock waits to write its
# message, but has released the lock before.
nobody_reads() {
    mkfifo "$dir/full"
    exec 7<>"$dir/full"
    dd if=/dev/zero of="$dir/full" bs=4096 oflag=nonblock 2>/dev/null
    "$SQLOCK" --table-prefix "$prefix" run unread -- "$dir/nothing-there" 2>&7 &
    holder=$!
    helper "$holder"
    until_true is_free unread
    is "no such command, and nobody reads that: the lock is free" "$?" 0
    is "no such command, and nobody reads that: it is to be said" \
        "$(is_alive "$holder" && echo "alive")" alive
    dd if="$dir/full" of="$dir/said" bs=4096 iflag=nonblock 2>/dev/null
    ends
    is "no such command, and nobody reads that: exit status" "$?" 127
    exec 7>&-
}

# With --verbose sqlock writes messages while it holds the lock.  If stderr is a
# full pipe, the command runs and the lock is released all the same.
nobody_reads_more() {
    mkfifo "$dir/more"
    exec 7<>"$dir/more"
    dd if=/dev/zero of="$dir/more" bs=4096 oflag=nonblock 2>/dev/null
    "$SQLOCK" --table-prefix "$prefix" -v run --min-hold 0.1 told -- \
        sh -c ': >"$1"' sh "$dir/told" 2>&7 &
    holder=$!
    helper "$holder"
    until_true test -e "$dir/told"
    is "verbose, and nobody reads that: the command runs" "$?" 0
    until_true is_free told
    is "verbose, and nobody reads that: the lock is free" "$?" 0
    ends
    is "verbose, and nobody reads that: exit status" "$?" 0
    exec 7>&-
    run -v run --min-hold 0.1 told -- sh -c 'echo it runs >&2'
    is "verbose: all is said, in order" \
        "$(grep -o -e 'is ours' -e 'it runs' -e 'keeping' "$dir/err" |
            paste -sd ' ')" "is ours it runs keeping"
}

# With --verbose the thread that writes a message is late, as on a busy machine
# (slow.c): sqlock waits for it, so messages are neither dropped nor out of
# order.
said_late() {
    LD_PRELOAD="$dir/slow.so" "$SQLOCK" --table-prefix "$prefix" -v run \
        --min-hold 0.1 late -- sh -c 'echo it runs >&2' 2>"$dir/err"
    is "verbose, on a busy machine: exit status" "$?" 0
    is "verbose, on a busy machine: all is said, in order" \
        "$(grep -o -e 'is ours' -e 'it runs' -e 'keeping' "$dir/err" |
            paste -sd ' ')" "is ours it runs keeping"
    LD_PRELOAD="$dir/slow.so" "$SQLOCK" --table-prefix "$prefix" -v run \
        late -- true 2>"$dir/err"
    has "verbose, on a busy machine, a brief command: it is said" \
        "$(cat "$dir/err")" "is ours"
}
is_free() { # KEY
    [ "$(sq show "$1" --json 2>/dev/null | json state)" = free ]
}

if use "$(databases | head -n 1)"; then
    frozen
    not_forked
    nobody_reads
    nobody_reads_more
    said_late
fi
done_testing
