#!/usr/bin/env bash
# clock.sh: the tests of a database whose clock is set forward and back, on
# servers of their own that read their clock from a file.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}

[ -n "${SQLOCK_TEST_CLOCK:-}" ] ||
    exec bash tests/tools/servers/clock.sh bash tests/faults/fault/clock.sh
unset SQLOCK_TEST_POSTGRES_URL SQLOCK_TEST_MYSQL_URL
unset SQLOCK_TEST_POSTGRES_ADMIN_URL SQLOCK_TEST_MYSQL_ADMIN_URL
unset SQLOCK_TEST_POSTGRES_PIDFILE SQLOCK_TEST_MYSQL_PIDFILE
unset SQLOCK_TEST_POSTGRES_PID SQLOCK_TEST_MYSQL_PID
# One after the other: both read the same file.
status=0
for pair in postgres=postgres mariadb=mysql; do
    SQLOCK_TEST_SERVERS=${pair%=*} bash tests/tools/servers/with.sh \
        "$build/tests/fault" -c "$SQLOCK_TEST_CLOCK" "${pair#*=}" || status=1
done
exit "$status"
