#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a new cluster, of which it may have
# another server promoted (tools/servers/promote.sh): MariaDB with a replica, or
# the one that SQLOCK_TEST_SERVERS names, of standby, patroni, patroni-sync,
# patroni-haproxy, replica-mariadb, group and galera.  SQLOCK_TEST_ROUNDS is how
# often, and SQLOCK_TEST_LONGEST_S the longest TTL (5).
set -u
cd "$(dirname "$0")/../../.." || exit 1
for database in POSTGRES MYSQL; do
    for what in URL ADMIN_URL SOCKET PID PIDFILE; do
        unset "SQLOCK_TEST_${database}_$what"
    done
done
case " ${SQLOCK_TEST_SERVERS-mariadb} " in
*" standby"* | *" patroni"* | *" replica-mariadb "* | *" group "* | *" galera "*) ;;
*" mariadb "*) export SQLOCK_TEST_SERVERS=replica-mariadb ;;
*) exec "$@" ;; # which skips its test
esac
exec bash tests/tools/servers/with.sh bash tests/tools/servers/promote.sh run "$@"
