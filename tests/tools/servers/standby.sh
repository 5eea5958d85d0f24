#!/usr/bin/env bash
# standby.sh DIR: run a private PostgreSQL with two standbys in DIR; see
# common.sh.
#
# A commit waits for the standby "sync", and not for the standby "async".  The
# script publishes the variables of a single server, for the primary, and
#     SQLOCK_TEST_POSTGRES_{SYNC,ASYNC}_URL        and _ADMIN_URL
#     SQLOCK_TEST_POSTGRES_{SYNC,ASYNC}_PIDFILE
#     SQLOCK_TEST_POSTGRES_CLUSTER                 DIR
#     SQLOCK_TEST_POSTGRES_BIN                     folder of the server programs
# The servers' directories are DIR/primary, DIR/sync and DIR/async.  A server
# whose directory has a file "hold" is not started again when it ends.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_cluster
export SQLOCK_TEST_POSTGRES_SETTINGS="wal_level=replica hot_standby=on\
 wal_keep_size=64MB wal_receiver_status_interval=1s\
 wal_retrieve_retry_interval=200ms"
export SQLOCK_TEST_POSTGRES_TEMPLATE=${SQLOCK_TEST_POSTGRES_TEMPLATE:-$dir/template}
start_child postgres.sh "$dir/primary"
socket=$(of_child "$dir/primary" SQLOCK_TEST_POSTGRES_SOCKET)
port=$(port_of "$(of_child "$dir/primary" SQLOCK_TEST_POSTGRES_URL)")
if [ -n "${SQLOCK_TEST_TREE:-}" ]; then
    bin=$(printf '%s\n' "$SQLOCK_TEST_TREE"/usr/lib/postgresql/*/bin)
else
    bin=$(bash "$here/postgres-bin.sh") || exit 77
fi

# Start a standby from the data that the primary began with; later changes come
# from the primary.
standby() { # NAME
    make_home "$dir/$1"
    cp -a "$SQLOCK_TEST_POSTGRES_TEMPLATE/." "$dir/$1/data" ||
        fail "cannot copy $SQLOCK_TEST_POSTGRES_TEMPLATE"
    echo "primary_conninfo = 'host=$socket port=$port user=postgres\
 application_name=$1'" >>"$dir/$1/data/postgresql.auto.conf"
    touch "$dir/$1/data/standby.signal"
    start_child postgres.sh "$dir/$1"
}

admin() { # SQL
    "$bin/psql" -X -q -A -t -h "$socket" -p "$port" -U postgres -d postgres \
        -c "$1"
}

is_synchronous() {
    [ "$(admin "SELECT count(*) FROM pg_stat_replication
        WHERE sync_state = 'sync'")" = 1 ]
}

standby sync
standby async
admin "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (sync)'" &&
    admin 'SELECT pg_reload_conf()' >/dev/null || exit 1
wait_for 60 "${children[0]}" is_synchronous || fail "no synchronous standby"

{
    cat "$dir/primary/env"
    for name in sync async; do
        sed -n "s/^SQLOCK_TEST_POSTGRES_\(URL\|ADMIN_URL\|PIDFILE\)=/SQLOCK_TEST_POSTGRES_${name^^}_\1=/p" \
            "$dir/$name/env"
    done
    echo "SQLOCK_TEST_POSTGRES_CLUSTER='$dir'"
    echo "SQLOCK_TEST_POSTGRES_BIN='$bin'"
} | publish_all
wait
