# helpers.sh: keep a list of processes, called helpers, that a script or its
# commands have started, and kill them at the script's end.  To be sourced.
# shellcheck shell=bash

helpers=()

# Print when a process started, in clock ticks after boot.  By the time that a
# helper is to be killed, its process id may be that of another process, which
# started later.
start_of() { # PID
    local stat
    stat=$(cat "/proc/$1/stat") || return
    # shellcheck disable=SC2086 # its fields
    set -- ${stat##*) }
    echo "${20}"
} 2>/dev/null

# Set $state to the state of a process, a letter of proc(5), or to nothing if
# there is no such process.  Loops call this every 0.05 s, so it starts no ps(1).
read_state() { # PID
    local stat=
    read -r stat 2>/dev/null <"/proc/$1/stat"
    stat=${stat##*) }
    state=${stat%% *}
}

is_alive() { # PID
    local state
    read_state "$1"
    [[ $state == [^ZX] ]]
}

helper() { # PID...
    local pid
    for pid in "$@"; do
        helpers+=("$pid $(start_of "$pid")")
    done
}

# Kill the helpers that still run.
kill_helpers() {
    local one pid
    for one in "${helpers[@]}"; do
        pid=${one% *}
        [ "$(start_of "$pid")" = "${one#* }" ] || continue
        kill -CONT "$pid"
        kill -KILL "$pid"
    done
} 2>/dev/null
