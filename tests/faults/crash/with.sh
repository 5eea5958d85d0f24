#!/usr/bin/env bash
# with.sh COMMAND...: run a command with new servers that lose their last commits
# when they are killed: a MariaDB that keeps them in its memory for 45 minutes, but
# waits for its disk if the file SQLOCK_TEST_CRASH_INIT, which each start reads,
# says so; and a PostgreSQL that writes seldom what no commit waits for.
# SQLOCK_TEST_SERVERS="postgres mariadb" chooses of them.
# SQLOCK_TEST_ROUNDS says how often each is killed; 20 times under
# SQLOCK_SCALE=campaign.
set -u
cd "$(dirname "$0")/../../.." || exit 1
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_MYSQL_$what" "SQLOCK_TEST_POSTGRES_$what"
done
unset SQLOCK_TEST_DURABLE
if [ "${SQLOCK_SCALE:-}" = campaign ]; then
    export SQLOCK_TEST_ROUNDS=${SQLOCK_TEST_ROUNDS:-20}
fi
servers=
for server in ${SQLOCK_TEST_SERVERS-postgres mariadb}; do
    case $server in
    postgres* | mariadb*) servers="$servers $server" ;;
    esac
done
[ -n "$servers" ] || exec "$@" # which skips its tests
SQLOCK_TEST_CRASH_INIT=$(mktemp /tmp/sqlock-crash.XXXXXX) || exit 1
export SQLOCK_TEST_CRASH_INIT
chmod 644 "$SQLOCK_TEST_CRASH_INIT"
trap 'rm -f "$SQLOCK_TEST_CRASH_INIT"' EXIT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
export SQLOCK_TEST_MARIADB_OPTIONS="--innodb-flush-log-at-trx-commit=0\
 --innodb-flush-log-at-timeout=2700 --init-file=$SQLOCK_TEST_CRASH_INIT"
export SQLOCK_TEST_POSTGRES_SETTINGS="fsync=on wal_writer_delay=10s autovacuum=off"
SQLOCK_TEST_SERVERS=$servers bash tests/tools/servers/with.sh "$@" &
command_pid=$!
wait "$command_pid"
