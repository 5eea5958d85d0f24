#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a new MariaDB server that loses its last
# commits when it is killed: it keeps them in its memory for 45 minutes.  Where
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
export SQLOCK_TEST_MARIADB_OPTIONS="--innodb-flush-log-at-trx-commit=0\
 --innodb-flush-log-at-timeout=2700"
SQLOCK_TEST_SERVERS=mariadb exec bash tests/tools/servers/with.sh "$@"
