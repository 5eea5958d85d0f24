#!/usr/bin/env bash
# lost.sh: when the lease is lost, the database hangs, or sqlock is killed or
# stopped, the command ends before the next holder begins; processes that a
# command leaves behind are ended, but daemons are left alone.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
preload clone

# A command that starts one process in its process group and one in a session of
# its own, writes their numbers and then its own to $1, which it renames to $2,
# and runs until a signal ends it.  The second process writes its number after
# setsid(1): until then it is in the group.
family='sleep 600 & echo $! >"$1"
    setsid sh -c "echo \$\$ >>\"\$1\"; exec sleep 600" sh "$1" &
    until [ "$(wc -l <"$1")" -ge 2 ]; do sleep 0.01; done
    echo $$ >>"$1"; mv "$1" "$2"; wait; wait'
stubborn="trap '' TERM; $family"

start_family() { # SCRIPT OPTION...
    local script=$1
    shift
    rm -f "$dir/pids"
    "$SQLOCK" --table-prefix "$prefix" run "$@" job -- sh -c "$script" sh "$dir/new" "$dir/pids" \
        2>"$dir/err.family" &
    holder=$!
    helper "$holder"
    until_true test -e "$dir/pids" || not_ok "start" "no command"
    mapfile -t family_pids <"$dir/pids"
    helper "${family_pids[@]}"
}
is_family_gone() { # WHAT
    local pid alive=
    for pid in "${family_pids[@]}"; do
        ! is_alive "$pid" || alive+=" $pid"
    done
    is "$1" "$alive" ""
}
break_it() {
    sq -q break job --token "$(sq show job --json | json token)" \
        --reason test "$@"
}

broken() {
    start_family "$family" -t 4 -q # no word of a busy server's late renewals
    break_it --now
    ends
    is "lost: exit status" "$?" 76
    is_family_gone "lost: all that descends from the command is gone"
    cp "$dir/err.family" "$dir/err"
    is_one_line "lost: it is said"

    start_family "$stubborn" -t 2
    break_it --now
    ends
    is "lost, the command ignores TERM: exit status" "$?" 76
    is_family_gone "lost, the command ignores TERM: all of it is gone"

    start_family "$stubborn" -t 2 --grace 0
    kill -STOP "${family_pids[2]}"
    break_it --now
    ends
    is "lost, the command is stopped: exit status" "$?" 76
    is_family_gone "lost, the command is stopped: all of it is gone"
}

# While the command runs, another process breaks the lease and takes the lock,
# and releases it or still holds it.  The command ends before a renewal notices:
# the loss is reported at the release.
stolen() {
    # Without PGAPPNAME, the name of the first holder's sessions: the next
    # holder waits for the end of sessions of that name.
    local take="env -u PGAPPNAME \"$SQLOCK\" -q --url '$SQLOCK_URL' --table-prefix $prefix"
    run run -t 60 job -- sh -c "$take break job --now --reason test \
        --token \"\$SQLOCK_TOKEN\" && $take run -n job -- true && echo stolen"
    is "stolen, and given back, before a renewal: exit status" \
        "$status/$out" 76/stolen
    has "stolen, and given back, before a renewal: it is said" "$err" \
        "another owner may have had the lock"
    run run -t 60 job -- sh -c "$take break job --now --reason test \
        --token \"\$SQLOCK_TOKEN\" && (setsid $take run job -- sh -c \
        'echo held; exec sleep 600' >\"\$1\" 2>&1 & echo \$! >\"\$2\") &&
        until grep -q held \"\$1\"; do sleep 0.02; done" sh "$dir/thief" \
        "$dir/thief.pid"
    is "stolen, and held, before a renewal: exit status" "$status" 76
    helper "$(cat "$dir/thief.pid")"
    kill -TERM "$(cat "$dir/thief.pid")"
    until_true is_gone "$(cat "$dir/thief.pid")"
}

renewed() {
    local other
    # Without SQLOCK_LEASES, by which a sqlock within the command knows that the
    # lock is held around it, and refuses to wait for it.
    other="env -u SQLOCK_LEASES \"$SQLOCK\" -q --url '$SQLOCK_URL'"
    other+=" --table-prefix $prefix run -n job"
    run run -t 2 job -- sh -c "i=0; while [ \$i -lt 7 ]; do
        sleep 0.5; $other -- true; echo \$?; i=\$((i + 1)); done"
    is "renewed: nobody is let in for longer than the TTL" \
        "$(echo "$out" | sort -u)" 75
    is "renewed: exit status" "$status" 0
}

killed() {
    start_family "$stubborn" -t 3
    kill -KILL "$holder"
    ends
    run run -w 20 job -- true
    is_family_gone "F71 sqlock killed: all of it is gone before the next"
    is "F71 sqlock killed: the lock passes on" "$status" 0
    has "F71 sqlock killed: the supervisor says so" "$(cat "$dir/err.family")" \
        "sqlock was killed"
}

# The supervisor is killed: the kernel ends the command, and sqlock the other
# processes.  Or the supervisor is stopped and the lease is lost: sqlock ends
# all.
without_supervisor() {
    start_family "$stubborn" -t 20
    kill -KILL "$(supervisor_of "$holder")"
    ends
    is "supervisor killed: exit status" "$?" 71
    is_family_gone "supervisor killed: all of it is gone"
    run run -n job -- true
    is "supervisor killed: the lock was given back" "$status" 0

    start_family "$stubborn" -t 2
    kill -STOP "$(supervisor_of "$holder")"
    break_it
    ends
    is "supervisor stopped, lost: exit status" "$?" 76
    is_family_gone "supervisor stopped, lost: all of it is gone"
}

frozen() {
    start_family "$stubborn" -t 2
    kill -STOP "$holder"
    run run -w 20 job -- true
    is_family_gone "sqlock frozen: the command is over before the next"
    is "sqlock frozen: the lock passes on" "$status" 0
    kill -CONT "$holder"
    ends
    is "sqlock frozen: then it says so" "$?" 76
}

left_behind() {
    start_family "trap '' TERM; $(sed 's/wait; wait/exit 3/' <<<"$family")" \
        -t 4 --grace 0.3
    ends
    is "left behind: the command's own status" "$?" 3
    is_gone "${family_pids[0]}"
    is "left behind: its group is ended" "$?" 0
    is_alive "${family_pids[1]}"
    is "left behind: a daemon is left alone" "$?" 0
    kill -KILL "${family_pids[1]}"
    run run -n job -- true
    is "left behind: the lock was given back" "$status" 0
}

# A process calls setsid(2) 30 ms after the command has ended: it is left alone,
# as a daemon.  On a busy machine it may be too late, so one success in 30 tries
# is enough.
late_daemon() {
    local i pid survivors=0
    for ((i = 0; i < 30 && survivors == 0; i++)); do
        run run late -- sh -c '(sleep 0.03; exec setsid sleep 600) \
            >/dev/null 2>&1 & echo $!'
        pid=$out
        helper "$pid"
        ! is_alive "$pid" || survivors=1
        kill -KILL "$pid" 2>/dev/null
    done
    is "a daemon that is made late is left alone, too" "$survivors" 1
}

# If sqlock may make a control group, the command begins in one of its own, which
# is removed at the end, even if a daemon is in it.
control_group() { # WHAT
    local mount group what=$1
    mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
    run run group -- sed -n 's/^0:://p' /proc/self/cgroup
    group=$mount$out
    if [[ $out != */sqlock-* ]]; then
        is "control group, $what: none to be had, and the command runs" \
            "$status" 0
        return 1
    fi
    ok "control group, $what: the command is in one of its own"
    [ ! -e "$group" ]
    is "control group, $what: it is removed" "$?" 0
    rm -f "$dir/daemon"
    run run group -- sh -c 'setsid sh -c "echo \$\$ >\"\$1\"; exec sleep 600" \
            sh "$1" >/dev/null 2>&1 &
        until [ -s "$1" ]; do sleep 0.01; done
        sed -n "s/^0:://p" /proc/self/cgroup' sh "$dir/daemon"
    helper "$(cat "$dir/daemon")"
    [ ! -e "$mount$out" ]
    is "control group, $what: also when a daemon was left in it" "$?" 0
    is "control group, $what: which is where sqlock was" \
        "$(sed -n 's/^0:://p' "/proc/$(cat "$dir/daemon")/cgroup")" \
        "$(sed -n 's/^0:://p' /proc/self/cgroup)"
    kill -KILL "$(cat "$dir/daemon")"
}

# A group that another sqlock with this process's number has left, such as one in
# a container, is none of ours: what is in it lives on.
others_group() {
    local mount group stranger survivors=0
    mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
    group=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
    if [ -z "$mount" ] || [ ! -e "$group/cgroup.procs" ]; then
        skip "another's control group" "there is no cgroup2 here"
        return
    fi
    sleep 600 &
    stranger=$!
    helper "$stranger"
    # shellcheck disable=SC2016 # for the script
    bash -c 'mkdir "$1/sqlock-$$" && echo "$2" >"$1/sqlock-$$/cgroup.procs" ||
            exit 98
        shift 2
        exec "$@"' bash "$group" "$stranger" "$SQLOCK" \
        --table-prefix "$prefix" run -t 20 group -- sleep 600 2>"$dir/err" &
    holder=$!
    helper "$holder"
    if until_true is_begun_or_gone "$holder" && is_gone "$holder"; then
        skip "another's control group" "none may be made here"
        return
    fi
    kill -KILL "$(supervisor_of "$holder")"
    ends
    ! is_alive "$stranger" || survivors=1
    is "what is in another's control group lives on" "$survivors" 1
    kill -KILL "$stranger"
    until_true rmdir "$group/sqlock-$holder"
}
is_begun_or_gone() { # PID
    is_gone "$1" || pgrep -x sleep -P "$(supervisor_of "$1")"
}

# The command is forked in its group by clone3(), or joins it where an old kernel
# or a filter of system calls refuses that, or there is no group: its descendants
# end before the lock passes on all the same.
forked() { # WHAT NOTE SETTING...
    local what=$1 note=$2 real=$SQLOCK has_group=no
    shift 2
    # shellcheck disable=SC2016 # for the script
    printf '#!/bin/sh\nexec env %s LD_PRELOAD=%s "%s" "$@"\n' \
        "CLONE_LOG=$dir/forks $*" "$dir/clone.so" "$(realpath "$SQLOCK")" \
        >"$dir/preloaded"
    chmod +x "$dir/preloaded"
    SQLOCK=$dir/preloaded
    : >"$dir/forks"
    control_group "$what" && has_group=yes
    # Without a group nothing is forked in one.
    [ "$has_group" = yes ] || note=
    is "control group, $what: how the command was forked" \
        "$(sort -u "$dir/forks")" "$note"
    start_family "$stubborn" -t 3
    kill -KILL "$holder"
    ends
    run run -w 20 job -- true
    is_family_gone "control group, $what: all is gone before the next"
    is "control group, $what: the lock passes on" "$status" 0
    start_family "$stubborn" -t 20
    kill -KILL "$(supervisor_of "$holder")"
    ends
    is_family_gone "control group, $what, supervisor killed: all is gone"
    SQLOCK=$real
}

# ---- a database that hangs

processes_of() { # DATABASE
    case $1 in
    postgres)
        echo "${SQLOCK_TEST_POSTGRES_PID:-}"
        ps -o pid= --ppid "${SQLOCK_TEST_POSTGRES_PID:-0}"
        ;;
    mysql) echo "${SQLOCK_TEST_MYSQL_PID:-}" ;;
    esac
}
freeze() {
    if [ "$database" = sqlite ]; then
        mkfifo "$dir/end"
        "$dir/hold_sqlite" "${SQLOCK_URL#sqlite:}" <"$dir/end" >"$dir/held" &
        helper "$!"
        exec 9>"$dir/end"
        until_true grep -q held "$dir/held"
        return
    fi
    # The first process forks the others: none is forked once it is stopped.
    stop "$(processes_of "$database" | head -n 1)"
    # shellcheck disable=SC2046 # numbers
    kill -STOP $(processes_of "$database")
}
thaw() {
    if [ "$database" = sqlite ]; then
        exec 9>&-
        rm "$dir/end"
        return
    fi
    # shellcheck disable=SC2046 # numbers
    kill -CONT $(processes_of "$database")
}

# Write to $dir/next when the next client gets the lock, which it tries until
# the database answers again.
next_grant() {
    until sq -q run -w 20 job -- date +%s%N >"$dir/next" 2>"$dir/next.err"; do
        sleep 0.05
    done
}

hung() {
    local next last
    if [ "$database" != sqlite ] && ! kill -0 \
        "$(processes_of "$database" | head -n 1)" 2>/dev/null; then
        skip "the database hangs" "its process is not ours"
        return
    fi
    : >"$dir/activity"
    rm -f "$dir/pids"
    "$SQLOCK" --table-prefix "$prefix" run -t 2 job -- sh -c \
        'trap "" TERM; echo $$ >"$1"
        while :; do date +%s%N >>"$2"; sleep 0.02; done' sh "$dir/pids" \
        "$dir/activity" 2>"$dir/err" &
    holder=$!
    until_true test -s "$dir/activity"
    family_pids=("$(cat "$dir/pids")")
    helper "$holder" "${family_pids[@]}"
    freeze
    next_grant 9>&- &
    next=$!
    helper "$next"
    until_true is_gone "${family_pids[0]}"
    is_family_gone "the database hangs: the command is ended meanwhile"
    thaw
    ends
    is "the database hangs: exit status" "$?" 76
    wait "$next"
    last=$(tail -n 1 "$dir/activity")
    if [ "$last" -lt "$(cat "$dir/next")" ]; then
        ok "the database hangs: it was over before the next one began"
    else
        not_ok "the database hangs: it was over before the next one began" \
            "$last, then $(cat "$dir/next")"
    fi
}

case " $(databases | tr '\n' ' ')" in
*" sqlite "*) tool hold_sqlite sqlite3 ;;
esac
if use "$(databases | head -n 1)"; then
    forked "as usual" forked
    forked "no such call" refused CLONE_ERRNO=38 # ENOSYS
    forked "refused" refused CLONE_ERRNO=1       # EPERM
    forked "no right to make one" "" CLONE_NO_GROUP=yes
    others_group
    late_daemon
fi
for one in $(databases); do
    use "$one" || continue
    broken
    stolen
    renewed
    killed
    without_supervisor
    frozen
    left_behind
    hung
done
database=
skip_missing
done_testing
