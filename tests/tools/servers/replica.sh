#!/usr/bin/env bash
# replica.sh DIR: run a private Oracle MySQL, and a replica of it, which is
# read-only, in DIR; see common.sh.
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
make_cluster
settings="--gtid-mode=ON --enforce-gtid-consistency=ON --log-bin=b"
SQLOCK_TEST_MYSQL_SETTINGS="$settings --server-id=1" \
    start_child mysql.sh "$dir/source"
SQLOCK_TEST_MYSQL_SETTINGS="$settings --server-id=2" \
    start_child mysql.sh "$dir/replica"
port=$(port_of "$(of_child "$dir/source" SQLOCK_TEST_MYSQL_URL)")
tree=${SQLOCK_TEST_MYSQL_TREE:-$here/../../../build/servers/mysql}

ask() { # SQL, to the replica
    MYSQL_PWD=$SQLOCK_TEST_PASSWORD "$tree/mysql" -E -u root \
        -S "$(of_child "$dir/replica" SQLOCK_TEST_MYSQL_SOCKET)" -e "$1"
}

is_running() {
    [ "$(ask 'SHOW REPLICA STATUS' | grep -c 'Running: Yes')" = 2 ]
}

ask "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1',
    SOURCE_PORT = $port, SOURCE_USER = 'root',
    SOURCE_PASSWORD = '$SQLOCK_TEST_PASSWORD', SOURCE_AUTO_POSITION = 1,
    GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1;
    START REPLICA; SET PERSIST super_read_only = ON" || fail "no replication"
wait_for 60 "${children[0]}" is_running || fail "the replica does not follow"

{
    cat "$dir/source/env"
    sed -n 's/^SQLOCK_TEST_MYSQL_\(URL\|ADMIN_URL\|PIDFILE\)=/SQLOCK_TEST_MYSQL_REPLICA_\1=/p' \
        "$dir/replica/env"
} | publish_all
wait
