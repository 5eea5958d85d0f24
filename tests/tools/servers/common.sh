# shellcheck shell=bash
# common.sh: functions of the scripts that run a private server.  To be sourced.
#
# A server script is called with a directory DIR of its own.  It starts its
# server there and, when the server answers, writes the variables with the
# server's URLs to DIR/env.  The script runs until it gets TERM or INT, which
# the caller has it get (setpriv --pdeathsig) when the caller ends.  If the
# server ends before that, for whatever reason, the script starts it again with
# the same port and data, so a test may kill it; but not while there is a file
# DIR/hold.
#
# SQLOCK_TEST_TREE names the tree of fetch.sh with the programs; without it the
# programs are this machine's.  SQLOCK_TEST_PASSWORD, if set, is the password of
# all users of the server.

# The command that runs a server as nobody, since servers refuse to run as root.
as_server=()
if [ "$(id -u)" -eq 0 ]; then
    as_server=(setpriv --reuid nobody --regid "$(id -gn nobody)" --clear-groups)
fi

# The command that runs a server with a wrong clock: SQLOCK_TEST_FAKETIME is the
# library of libfaketime, and SQLOCK_TEST_CLOCK a file with the clock's error.
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

# Put these folders of $SQLOCK_TEST_TREE/usr first in PATH.
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

# End the script with status 77: this machine does not have what it needs.
absent() {
    echo "${0##*/}: $*" >&2
    exit 77
}

# Make DIR with DIR/data and DIR/run, which belong to the server's user.
make_home() { # DIR
    mkdir -p "$1/data" "$1/run" || exit 1
    chmod 711 "$1" || exit 1
    chmod 700 "$1/data"
    chmod 711 "$1/run"
    if [ ${#as_server[@]} -gt 0 ]; then
        chown nobody "$1/data" "$1/run" || exit 1
    fi
}

# Print a path by which the server's user can reach TREE with PROGRAM in it:
# TREE, or a copy in DIR, if a folder above TREE is closed to other users, as
# /root is.
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

# Print a port that is not in use, below the range of outgoing connections.
free_port() {
    local port
    while :; do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# Run COMMAND again and again until it succeeds.  Return 1 if the process PID
# ends or SECONDS have passed before.
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

# End the server, continuing it first if it is stopped.  To be called by traps.
end_server() { # SIGNAL
    ending=yes
    if [ -n "$server_pid" ]; then
        kill -CONT "$server_pid" 2>/dev/null
        kill -"$1" "$server_pid" 2>/dev/null
    fi
}

# Run the server, and start it again when it ends, until end_server() is called.
# The script has the functions `launch`, which starts the server in the
# background and sets server_pid; `answers`, which succeeds if the server
# answers; and `publish`, which prints the variables.
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
            # The port was taken, or a killed server's children still run.
            kill -KILL "$server_pid" 2>/dev/null
            failures=$((failures + 1))
            if [ "$failures" -ge 20 ]; then
                echo "${0##*/}: the server does not start:" >&2
                tail -n 20 "$dir/log" >&2
                exit 1
            fi
            sleep 0.2
        fi
        # A trapped signal ends `wait`, maybe before the server has ended.
        while kill -0 "$server_pid" 2>/dev/null; do
            wait "$server_pid" 2>/dev/null
        done
        rm -f "$dir/pid"
    done
}

# ----------------------------------------------------------- MySQL, MariaDB --

# Print the first statements for a new server, which root runs without a
# password.  The last one gives root a password.
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

# Print the variables of a server in $dir at $port, for `publish`.
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

# Prepare such a server in $dir.  All its servers have the same passwords.
make_cluster() {
    trap 'exit 143' TERM INT
    trap 'end_children; rm -rf "$dir"' EXIT
    chmod 711 "$dir"
    SQLOCK_TEST_PASSWORD=$(password)
    export SQLOCK_TEST_PASSWORD
}

# Publish the variables that are read from standard input.
publish_all() {
    cat >"$dir/env.new" && mv "$dir/env.new" "$dir/env"
}

# Run another server's script in directory DIR and wait until that server
# answers: then its variables are in DIR/env.
start_child() { # SCRIPT DIR
    mkdir -p "$2"
    # shellcheck disable=SC2154 # the folder of the script that sources us
    setpriv --pdeathsig TERM bash "$here/$1" "$2" &
    children+=($!)
    wait_for 120 $! test -e "$2/env" || {
        wait $!
        # 77 if the script ended with 77, which is a skip.
        exit "$(($? == 77 ? 77 : 1))"
    }
}

# End the servers of start_child.  To be called by traps.
end_children() {
    local child
    for child in "${children[@]}"; do
        kill -TERM "$child" 2>/dev/null
    done
    wait
}

# Print a variable that a child has published.
of_child() { # DIR VARIABLE
    # shellcheck disable=SC1090,SC1091 # written by the child
    (. "$1/env" && echo "${!2}")
}

# Print the port of a URL.
port_of() { # URL
    local rest=${1##*:}
    echo "${rest%%/*}"
}
