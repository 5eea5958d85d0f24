#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a new MariaDB server that loses its last
# commits when it is killed: it keeps them in its memory for 45 minutes.  It is one
# that waits for its disk if the file SQLOCK_TEST_CRASH_INIT, which each start
# reads, says so.  Where
# SQLOCK_TEST_SERVERS does not name MariaDB, the command has no server.
# SQLOCK_TEST_ROUNDS says how often it is killed; 20 times under
# SQLOCK_SCALE=campaign.
set -u
cd "$(dirname "$0")/../../.." || exit 1
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_MYSQL_$what"
done
unset SQLOCK_TEST_DURABLE
if [ "${SQLOCK_SCALE:-}" = campaign ]; then
    export SQLOCK_TEST_ROUNDS=${SQLOCK_TEST_ROUNDS:-20}
fi
case " ${SQLOCK_TEST_SERVERS-mariadb} " in
*" mariadb"*) ;;
*) exec "$@" ;; # which skips its tests
esac
SQLOCK_TEST_CRASH_INIT=$(mktemp /tmp/sqlock-crash.XXXXXX) || exit 1
export SQLOCK_TEST_CRASH_INIT
chmod 644 "$SQLOCK_TEST_CRASH_INIT"
trap 'rm -f "$SQLOCK_TEST_CRASH_INIT"' EXIT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
export SQLOCK_TEST_MARIADB_OPTIONS="--innodb-flush-log-at-trx-commit=0\
 --innodb-flush-log-at-timeout=2700 --init-file=$SQLOCK_TEST_CRASH_INIT"
SQLOCK_TEST_SERVERS=mariadb bash tests/tools/servers/with.sh "$@" &
command_pid=$!
wait "$command_pid"
