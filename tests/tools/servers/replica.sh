#!/usr/bin/env bash
# replica.sh DIR: run a private Oracle MySQL, or this machine's MariaDB if DIR is
# called replica-mariadb, and a replica of it, which is read-only, in DIR; see
# common.sh.
#
# It publishes the variables of a single server, for the source, and
#     SQLOCK_TEST_MYSQL_REPLICA_{URL,ADMIN_URL,PIDFILE}
# The servers' directories are DIR/source and DIR/replica.  A server whose
# directory has a file "hold" is not started again when it ends.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
tree=${SQLOCK_TEST_MYSQL_TREE:-$here/../../../build/servers/mysql}
make_cluster
case ${dir##*/} in
*-mariadb)
    script=mariadb.sh
    options=SQLOCK_TEST_MARIADB_OPTIONS
    settings="--log-bin=b"
    shell=("$(command -v mariadb || command -v mysql)" --no-defaults)
    ;;
*)
    script=mysql.sh
    options=SQLOCK_TEST_MYSQL_SETTINGS
    settings="--gtid-mode=ON --enforce-gtid-consistency=ON --log-bin=b"
    shell=("$tree/mysql")
    ;;
esac

start() { # NAME ID
    export "$options=$settings --server-id=$2"
    start_child "$script" "$dir/$1"
}

ask() { # NAME SQL
    MYSQL_PWD=$SQLOCK_TEST_PASSWORD "${shell[@]}" -E -u root \
        -S "$(of_child "$dir/$1" SQLOCK_TEST_MYSQL_SOCKET)" -e "$2"
}

# Neither server has anything of the other's until here.
follow() {
    local port position
    port=$(port_of "$(of_child "$dir/source" SQLOCK_TEST_MYSQL_URL)")
    if [ "$script" = mysql.sh ]; then
        ask replica "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1',
            SOURCE_PORT = $port, SOURCE_USER = 'root',
            SOURCE_PASSWORD = '$SQLOCK_TEST_PASSWORD',
            SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1,
            SOURCE_CONNECT_RETRY = 1;
            START REPLICA; SET PERSIST super_read_only = ON"
        return
    fi
    position=$(ask source 'SELECT @@gtid_binlog_pos AS at' |
        sed -n 's/.*at: //p')
    ask replica "RESET MASTER; SET GLOBAL gtid_slave_pos = '$position';
        CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = $port,
        MASTER_USER = 'root', MASTER_PASSWORD = '$SQLOCK_TEST_PASSWORD',
        MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1;
        START SLAVE; SET GLOBAL read_only = ON"
}

is_running() {
    local shown
    shown=$(ask replica 'SHOW REPLICA STATUS')
    [ "$(grep -cE '(IO|SQL)_Running: Yes' <<<"$shown")" = 2 ]
}

start source 1
start replica 2
follow || fail "no replication"
wait_for 60 "${children[0]}" is_running || fail "the replica does not follow"

{
    cat "$dir/source/env"
    sed -n 's/^SQLOCK_TEST_MYSQL_\(URL\|ADMIN_URL\|PIDFILE\)=/SQLOCK_TEST_MYSQL_REPLICA_\1=/p' \
        "$dir/replica/env"
} | publish_all
wait
