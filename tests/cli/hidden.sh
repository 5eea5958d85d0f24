#!/usr/bin/env bash
# hidden.sh: where /proc hides processes, or there is none, what a command leaves
# behind ends all the same before the lock passes on.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Run a command in a namespace where /proc is as mounted, and check that the
# process that it writes to "$2" outlives it or not.  A mount in one of another
# process namespace changes nothing outside.
# shellcheck disable=SC2016 # for the inner shells
left_behind() { # WHAT MOUNT COMMAND [EXPECTED]
    rm -f "$dir/left"
    out=$(timeout -s KILL 60 unshare -mpf --kill-child sh -c "$2"' || exit 98
        setpriv --bounding-set -sys_ptrace "$1" --table-prefix "$3" \
            run --grace 2s outer -- sh -c "$2" sh "$1" "$4" "$3"
        status=$?
        kill -0 "$(cat "$4")" 2>/dev/null && echo "it lives"
        exit "$status"' sh "$(realpath "$SQLOCK")" "$3" "$prefix" "$dir/left" \
        2>"$dir/err")
    status=$?
    is "$1: exit status" "$status" 0
    [ -s "$dir/left" ]
    is "$1: it was begun" "$?" 0
    is "$1: whether it lives on" "$out" "${4:-}"
    has "$1: that is said" "$(cat "$dir/err")" "left processes behind"
    run run -n outer -- true
    is "$1: the lock passes on" "$status" 0
}

# Return whether both may be mounted.
may_mount() {
    unshare -mpf setpriv --bounding-set -sys_ptrace sh -c '
        mount -t proc -o hidepid=2,gid=54321 proc /proc &&
            mount -t tmpfs none /proc' 2>/dev/null
}

if ! may_mount; then
    skip "hidden processes" "no namespace may be made here"
elif use "$(databases | head -n 1)"; then
    left_behind "as usual" "mount -t proc proc /proc" \
        'sleep 600 & echo "$!" >"$2"; exit 0'
    left_behind "without /proc" "mount -t tmpfs none /proc" \
        'sleep 600 & echo "$!" >"$2"; exit 0'
    left_behind "without /proc, TERM ignored" "mount -t tmpfs none /proc" \
        'trap "" TERM; sleep 600 & echo "$!" >"$2"; exit 0'
    left_behind "a daemon without /proc" "mount -t tmpfs none /proc" \
        'setsid sh -c "echo \$\$ >\"\$1\"; exec sleep 600" sh "$2" &
        until [ -s "$2" ]; do sleep 0.02; done; exit 0' "it lives"
    left_behind "hidden" "mount -t proc -o hidepid=2,gid=54321 proc /proc" \
        '"$1" --table-prefix "$3" run inner -- \
            sh -c "echo \$\$ >\"\$1\"; exec sleep 600" sh "$2" &
        until [ -s "$2" ]; do sleep 0.02; done'
fi
database=
done_testing
