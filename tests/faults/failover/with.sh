#!/usr/bin/env bash
# with.sh COMMAND...: run a command with "sync" as its last argument, then with
# "async", each time with a new PostgreSQL server and its standbys.  Repeat that
# 50 times under SQLOCK_SCALE=campaign, or SQLOCK_TEST_ROUNDS times.  In the
# end, print the sums of the lines that the command has written to the file
# SQLOCK_TEST_SUMMARY (judge.c).  SQLOCK_TEST_SERVERS=standby-17 chooses another
# version of PostgreSQL.
set -u
cd "$(dirname "$0")/../../.." || exit 1

case ${SQLOCK_TEST_SERVERS-} in
standby*) ;;
*) export SQLOCK_TEST_SERVERS=standby ;;
esac
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_POSTGRES_$what"
done
rounds=1
[ "${SQLOCK_SCALE:-}" != campaign ] || rounds=50
rounds=${SQLOCK_TEST_ROUNDS:-$rounds}

work=$(mktemp -d /tmp/sqlock-failover.XXXXXX) || exit 1
chmod 711 "$work"
export SQLOCK_TEST_SUMMARY=$work/summary
# The servers of all rounds begin with the same data.
export SQLOCK_TEST_POSTGRES_TEMPLATE=$work/template
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
status=0
for ((round = 1; round <= rounds; round++)); do
    for kind in sync async; do
        [ "$rounds" -eq 1 ] || echo "round $round, $kind"
        bash tests/tools/servers/with.sh "$@" "$kind" &
        command_pid=$!
        wait "$command_pid" || status=1
    done
done
[ ! -e "$SQLOCK_TEST_SUMMARY" ] || awk '
{ n[$1]++; for (i = 2; i <= NF; i++) sum[$1, i] += $i }
END {
    for (kind in n)
        printf "%s: %d promotions, %d grants, %d writes acknowledged, %d of " \
            "them lost; %d commits without an answer, %d of them carried " \
            "out; %d calls refused\n", kind, n[kind], sum[kind, 2],
            sum[kind, 3], sum[kind, 4], sum[kind, 5], sum[kind, 6], sum[kind, 7]
}' "$SQLOCK_TEST_SUMMARY"
exit "$status"
