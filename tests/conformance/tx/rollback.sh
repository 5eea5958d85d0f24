#!/usr/bin/env bash
# rollback.sh: run the tests of F21 on a MariaDB with
# innodb_rollback_on_timeout, where a wait for a lock that times out rolls back
# the whole transaction, and not only the statement.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}

case ${SQLOCK_TEST_SERVERS-mariadb} in
*mariadb*) ;;
*)
    echo "skip - no MariaDB is wanted"
    exit 77
    ;;
esac
unset SQLOCK_TEST_MYSQL_URL SQLOCK_TEST_MYSQL_ADMIN_URL
unset SQLOCK_TEST_MYSQL_PIDFILE SQLOCK_TEST_MYSQL_PID
SQLOCK_TEST_SERVERS=mariadb \
    SQLOCK_TEST_MARIADB_OPTIONS=--innodb-rollback-on-timeout \
    exec bash tests/tools/servers/with.sh "$build/tests/tx" -j 1 \
    -t 'test_F21_*' mysql
