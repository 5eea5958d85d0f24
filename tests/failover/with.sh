#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a PostgreSQL and its standbys, new ones
# for "sync" and for "async", which is its last argument; 50 times each under
# SQLOCK_SCALE=campaign.  SQLOCK_TEST_SERVERS=standby-17 is another version.
set -u
cd "$(dirname "$0")/../.." || exit 1

case ${SQLOCK_TEST_SERVERS-} in
standby*) ;;
*) export SQLOCK_TEST_SERVERS=standby ;;
esac
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_POSTGRES_$what"
done
rounds=1
[ "${SQLOCK_SCALE:-}" != campaign ] || rounds=50

trap 'exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
status=0
for ((round = 1; round <= rounds; round++)); do
    for kind in sync async; do
        bash tests/servers/with.sh "$@" "$kind" &
        command_pid=$!
        wait "$command_pid" || status=1
    done
done
exit "$status"
