#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a MySQL group of its own.
set -u
cd "$(dirname "$0")/../../.." || exit 1
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_MYSQL_$what"
done
SQLOCK_TEST_SERVERS=group exec bash tests/tools/servers/with.sh "$@"
