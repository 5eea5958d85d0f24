#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a new MySQL server and its replica.
set -u
cd "$(dirname "$0")/../../.." || exit 1
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_MYSQL_$what"
done
SQLOCK_TEST_SERVERS=replica exec bash tests/tools/servers/with.sh "$@"
