#!/usr/bin/env bash
# with.sh COMMAND...: run a command with a new MariaDB server and its replica;
# with SQLOCK_TEST_SERVERS=replica, with those of Oracle's MySQL.
set -u
cd "$(dirname "$0")/../../.." || exit 1
for what in URL ADMIN_URL SOCKET PID PIDFILE; do
    unset "SQLOCK_TEST_MYSQL_$what"
done
case " ${SQLOCK_TEST_SERVERS-mariadb} " in
*" replica "* | *" replica-mariadb "*) ;;
*" mariadb "*) export SQLOCK_TEST_SERVERS=replica-mariadb ;;
*) exec "$@" ;; # which skips its tests
esac
exec bash tests/tools/servers/with.sh "$@"
