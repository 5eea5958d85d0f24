# shellcheck shell=bash
# common.sh: what the scripts that run a private server share; to be sourced.
#
# A server script is called with a directory of its own.  It starts its server
# there, writes the variables that lead to it to DIR/env when it answers, and
# stays in the foreground until it is told to end (TERM or INT), or until the
# process that started it is gone.  A server that ends meanwhile, whatever the
# reason, is started again on the same port and data: a test may kill it.  It is
# not while there is a file DIR/hold.
#
# SQLOCK_TEST_TREE names the tree of fetch.sh that the programs are in; without
# it they are this machine's.  SQLOCK_TEST_PASSWORD is every user's password where
# it is set.

# The user that servers run as: they refuse root.
as_server=()
if [ "$(id -u)" -eq 0 ]; then
    as_server=(setpriv --reuid nobody --regid "$(id -gn nobody)" --clear-groups)
fi

# Before a server's program: SQLOCK_TEST_FAKETIME is libfaketime's library, and
# SQLOCK_TEST_CLOCK a file that says how far the server's clock is off.
clock=()
if [ -n "${SQLOCK_TEST_CLOCK:-}" ]; then
    clock=(env "LD_PRELOAD=${SQLOCK_TEST_FAKETIME:?}"
        "FAKETIME_TIMESTAMP_FILE=$SQLOCK_TEST_CLOCK" FAKETIME_NO_CACHE=1
        FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1)
fi

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# The programs of SQLOCK_TEST_TREE, looked for in these folders of it, come first.
use_tree() { # FOLDER...
    local folder
    [ -d "$SQLOCK_TEST_TREE/usr" ] ||
        absent "no tree $SQLOCK_TEST_TREE: see tests/tools/servers/fetch.sh"
    "${as_server[@]}" test -x "$SQLOCK_TEST_TREE/usr/bin" ||
        fail "$SQLOCK_TEST_TREE is closed to the user nobody: move it elsewhere\
 and set SQLOCK_TEST_TREES"
    for folder in "$@"; do
        PATH=$SQLOCK_TEST_TREE/usr/$folder:$PATH
    done
}

# The programs are not on this machine.
absent() {
    echo "${0##*/}: $*" >&2
    exit 77
}

# Make DIR ours, with DIR/data for the server's user.
make_home() { # DIR
    mkdir -p "$1/data" "$1/run" || exit 1
    chmod 711 "$1" || exit 1
    chmod 700 "$1/data"
    chmod 711 "$1/run"
    if [ ${#as_server[@]} -gt 0 ]; then
        chown nobody "$1/data" "$1/run" || exit 1
    fi
}

# Print a way to TREE that the server's user can go: itself, or a copy in DIR
# where a folder above it is closed to others, as /root is.
reachable() { # TREE PROGRAM DIR
    if "${as_server[@]}" test -x "$1/$2" 2>/dev/null; then
        echo "$1"
    else
        cp -a "$1" "$3/programs" && chmod -R a+rX "$3/programs" || exit 1
        echo "$3/programs"
    fi
}

password() {
    [ -z "${SQLOCK_TEST_PASSWORD:-}" ] || {
        echo "$SQLOCK_TEST_PASSWORD"
        return
    }
    od -An -N12 -tx1 /dev/urandom | tr -d ' \n'
}

# A port that nobody answers on; below the range of outgoing connections.
free_port() {
    local port
    while :; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# Ask until COMMAND succeeds, while the process PID lives and for SECONDS.
wait_for() { # SECONDS PID COMMAND...
    local end=$((SECONDS + $1)) pid=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        kill -0 "$pid" 2>/dev/null || return 1
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

server_pid=
ending=

# To be trapped: end the server without leaving anything behind.
end_server() { # SIGNAL
    ending=yes
    if [ -n "$server_pid" ]; then
        kill -CONT "$server_pid" 2>/dev/null
        kill -"$1" "$server_pid" 2>/dev/null
    fi
}

# Run the server and start it again when it ends.  Calls `launch`, which starts
# it in the background and sets server_pid; `answers`, which asks it; `publish`,
# which prints the variables.
supervise() { # DIR
    local dir=$1 failures=0
    while [ -z "$ending" ]; do
        if [ -e "$dir/hold" ]; then
            sleep 0.1
            continue
        fi
        launch
        if wait_for 60 "$server_pid" answers; then
            echo "$server_pid" >"$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
            (umask 077 && publish >"$dir/env.new") &&
                mv "$dir/env.new" "$dir/env"
            failures=0
        elif [ -z "$ending" ]; then
            # The port was taken, or a killed server's children live on.
            kill -KILL "$server_pid" 2>/dev/null
            failures=$((failures + 1))
            if [ "$failures" -ge 20 ]; then
                echo "${0##*/}: the server does not start:" >&2
                tail -n 20 "$dir/log" >&2
                exit 1
            fi
            sleep 0.2
        fi
        # A signal ends the wait; the server may need a moment longer.
        while kill -0 "$server_pid" 2>/dev/null; do
            wait "$server_pid" 2>/dev/null
        done
        rm -f "$dir/pid"
    done
}

# ----------------------------------------------------------- MySQL, MariaDB --

# Print the statements for root, who has no password yet, on data that are new.
# The last one closes the door that the others come through.
first_statements() { # USER-PASSWORD ADMIN-PASSWORD
    cat <<SQL
CREATE DATABASE IF NOT EXISTS sqlock CHARACTER SET utf8mb4;
DROP USER IF EXISTS sqlock_test@'%', root@'%', root@'127.0.0.1', root@'::1';
CREATE USER sqlock_test@'%' IDENTIFIED BY '$1';
GRANT ALL ON sqlock.* TO sqlock_test@'%';
CREATE USER root@'%' IDENTIFIED BY '$2';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
ALTER USER root@localhost IDENTIFIED BY '$2';
SQL
}

# Print the variables of a server in $dir on $port, for `publish`.
publish_mysql() { # USER-PASSWORD ADMIN-PASSWORD
    # shellcheck disable=SC2154 # of the script that sources us
    local at=127.0.0.1:$port/sqlock
    echo "SQLOCK_TEST_MYSQL_URL='mysql://sqlock_test:$1@$at'"
    echo "SQLOCK_TEST_MYSQL_ADMIN_URL='mysql://root:$2@$at'"
    # shellcheck disable=SC2154
    echo "SQLOCK_TEST_MYSQL_SOCKET='$socket'"
    echo "SQLOCK_TEST_MYSQL_PID='$server_pid'"
    echo "SQLOCK_TEST_MYSQL_PIDFILE='$dir/pid'"
}

# ------------------------------------------- servers made of several others --

children=()

# Begin such a server in $dir; all of it has one password.
make_cluster() {
    trap 'exit 143' TERM INT
    trap 'end_children; rm -rf "$dir"' EXIT
    chmod 711 "$dir"
    SQLOCK_TEST_PASSWORD=$(password)
    export SQLOCK_TEST_PASSWORD
}

# Publish the variables on standard input.
publish_all() {
    cat >"$dir/env.new" && mv "$dir/env.new" "$dir/env"
}

# Run another server's script in a directory of its own and wait until that
# server answers; its variables are in DIR/env.
start_child() { # SCRIPT DIR
    mkdir -p "$2"
    # shellcheck disable=SC2154 # the folder of the script that sources us
    setpriv --pdeathsig TERM bash "$here/$1" "$2" &
    children+=($!)
    wait_for 120 $! test -e "$2/env" || {
        wait $!
        # As it said: not to be had here, or broken.
        exit "$(($? == 77 ? 77 : 1))"
    }
}

# To be trapped.
end_children() {
    local child
    for child in "${children[@]}"; do
        kill -TERM "$child" 2>/dev/null
    done
    wait
}

# A variable that a child has published.
of_child() { # DIR VARIABLE
    # shellcheck disable=SC1090,SC1091 # written by the child
    (. "$1/env" && echo "${!2}")
}

# The port of a URL.
port_of() { # URL
    local rest=${1##*:}
    echo "${rest%%/*}"
}
