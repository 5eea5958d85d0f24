#!/usr/bin/env bash
# sqlite.sh: a group of users shares a SQLite file by the recipe of
# sql/sqlite/grants.sql, and other users have no access.
# Use a folder in /tmp, which all users can reach.
unset SQLOCK_TEST_DIR
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
about='sqlite: '
[ "$(id -u)" -eq 0 ] || skip_all "it takes root to be several users"

# Numbers of users and of a group, which need no names.  The user $outside is
# not in the group.
locks=61000 one=61001 two=61002 outside=61003
as() { # USER COMMAND...
    local user=$1 group=$locks
    shift
    [ "$user" != "$outside" ] || group=$outside
    setpriv --reuid "$user" --regid "$group" --clear-groups "$@"
}
status_of() { # COMMAND...
    "$@" >"$dir/out" 2>"$dir/err"
    echo $?
}
mode_of() { # FILE
    stat -c '%a %u %g' "$1"
}

# Install the command where all users can run it.
chmod 711 "$dir"
install -m 755 "$SQLOCK" "$dir/sqlock"
: >"$dir/err"
: >"$dir/out"
sq() { # USER ARGUMENT...
    local user=$1
    shift
    as "$user" "$dir/sqlock" --url "sqlite:$file" "$@"
}
new_folder() { # NAME [OWNER]
    install -d -m 2770 -o "${2:-$one}" -g "$locks" "$dir/$1"
    file=$dir/$1/shop.db
}

# Hold the lock "job" as a user in the background, until let_go.  Set $holder to
# the process number.  The command that holds the lock reads from a pipe until
# file descriptor 9, the end for writing, is closed.
hold() { # USER
    mkfifo "$dir/go"
    : >"$dir/held" # what the holder before it said is not waited for
    sq "$1" run job -- sh -c 'echo held; cat >/dev/null' <"$dir/go" \
        >"$dir/held" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    exec 9>"$dir/go"
    until grep -q held "$dir/held" || ! kill -0 "$holder" 2>/dev/null; do
        sleep 0.05
    done
}
let_go() {
    exec 9>&-
    rm "$dir/go"
}

# Let WAITER wait for the lock of HOLDER until CONDITION, and check that it gets
# the lock.  Set $bell to mode, owner and group of the socket at which it is rung,
# or to nothing if it has none.
wait_for_each_other() { # HOLDER WAITER CONDITION...
    local users=("$1" "$2")
    shift 2
    hold "${users[0]}"
    sq "${users[1]}" run -w 60 job -- true 2>"$dir/waiter.err" 9>&- &
    until "$@" || ! kill -0 $! 2>/dev/null; do
        sleep 0.05
    done
    bell=$(mode_of "$file"-sqlock-*.bell 2>/dev/null)
    let_go
    wait $!
    is "the second user waits for the first one and gets the lock" $? 0
    wait "$holder"
}
has_socket() {
    compgen -G "$file-sqlock-*.bell" >/dev/null
}
waits() {
    sq $one show job | grep '^waiting' | grep -qv ' none$'
}

by_the_recipe() {
    new_folder recipe
    umask 007
    is "one makes the database" "$(status_of sq $one init)" 0
    is "it is the group's" "$(mode_of "$file")" "660 $one $locks"
    wait_for_each_other $one $two has_socket
    is "the waiter's socket has its mode and group" "$bell" "660 $two $locks"
    is "and goes with the waiter" "$(compgen -G "$file-sqlock*")" ""
    is "the other user may make tables, too" \
        "$(status_of sq $two init --once)" 0
    is "and reap" "$(status_of sq $two reap --older-than 0)" 0
    for command in ls "run job -- true" init; do
        # shellcheck disable=SC2086 # a command and its arguments
        is "who is outside the group cannot $command" \
            "$(status_of sq $outside $command)" 77
    done
    umask 022
}

# The user who waits has a strict umask: other users can ring, all the same.
with_another_umask() {
    new_folder umask
    umask 007
    is "one makes the database" "$(status_of sq $one init)" 0
    umask 077
    wait_for_each_other $one $two has_socket
    is "the waiter's socket has its mode all the same" \
        "$bell" "660 $two $locks"
    umask 022
    sq $two doctor --json >"$dir/out" 2>"$dir/err"
    is "the other user's doctor finds the wake-ups" \
        "$(grep -A 1 '"check": "waiting"' "$dir/out" | grep -c '"ok"')" 1
}

by_root() {
    new_folder root
    umask 007
    is "one makes the database" "$(status_of sq $one init)" 0
    umask 077
    wait_for_each_other 0 0 has_socket
    is "the socket of root is its owner's" "$bell" "660 $one $locks"
    umask 022
}

# A user who may not make files in the directory can have no socket there, and
# polls the row instead, for as long as the holder keeps -wal and -shm.
by_polling() {
    new_folder polling
    umask 007
    is "one makes the database" "$(status_of sq $one init)" 0
    chmod 2750 "$dir/polling"
    wait_for_each_other $one $two waits
    is "it has no socket" "$bell" ""
    hold $one
    sq $two doctor --json >"$dir/out" 2>"$dir/err"
    is "doctor says that waiters can only look" \
        "$(grep -A 1 '"check": "waiting"' "$dir/out" | grep -c '"warning"')" 1
    is "and which file it is" "$(grep -c "shop.db-sqlock" "$dir/out")" 1
    let_go
    wait "$holder"
    umask 022
}

# A user who may not write to the file cannot read locks either, as grants.sql
# says.
by_reading() {
    new_folder reading
    chmod 2750 "$dir/reading"
    umask 027
    is "one makes the database" "$(status_of sq $one init)" 0
    for command in ls "show job"; do
        # shellcheck disable=SC2086 # a command and its arguments
        is "who may only read cannot $command" \
            "$(status_of sq $two $command)" 69
        is "that is said" "$(grep -c -i 'read-\?only' "$dir/err")" 1
    done
    hold $one
    is "nor while another has the lock" "$(status_of sq $two ls)" 69
    is "who has it, can" "$(status_of sq $one ls)" 0
    is "and has it still" "$(grep -c held "$dir/out")" 1
    let_go
    wait "$holder"
    umask 022
}

by_the_recipe
by_reading
with_another_umask
by_root
by_polling
exit $status
