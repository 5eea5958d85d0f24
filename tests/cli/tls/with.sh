#!/usr/bin/env bash
# with.sh COMMAND...: run a command with servers that speak TLS.
#
# The command finds in its environment, besides the variables of
# tests/tools/servers/with.sh,
#     SQLOCK_TEST_TLS                         the folder that ca.sh has filled
#     SQLOCK_TEST_PLAIN_{POSTGRES,MYSQL}_URL  the caller's servers, without TLS
set -u
cd "$(dirname "$0")/../../.." || exit 1

# Oracle's MySQL always has a certificate, so MariaDB is the server without TLS.
case " ${SQLOCK_TEST_SERVERS-} " in
*" mysql "*)
    export SQLOCK_TLS_SERVERS=$SQLOCK_TEST_SERVERS
    SQLOCK_TEST_SERVERS=mariadb SQLOCK_TEST_MYSQL_URL='' exec \
        bash tests/tools/servers/with.sh bash tests/cli/tls/with.sh "$@"
    ;;
esac
if [ -n "${SQLOCK_TLS_SERVERS:-}" ]; then
    export SQLOCK_TEST_SERVERS=$SQLOCK_TLS_SERVERS
fi

SQLOCK_TEST_TLS=$(mktemp -d /tmp/sqlock-tls.XXXXXX) || exit 1
export SQLOCK_TEST_TLS
trap 'rm -rf "$SQLOCK_TEST_TLS"' EXIT
trap 'exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
bash tests/tools/servers/ca.sh "$SQLOCK_TEST_TLS" || exit

for name in POSTGRES MYSQL; do
    url=SQLOCK_TEST_${name}_URL
    export "SQLOCK_TEST_PLAIN_${name}_URL=${!url:-}"
    for what in URL ADMIN_URL SOCKET PID PIDFILE; do
        unset "SQLOCK_TEST_${name}_$what"
    done
done
bash tests/tools/servers/with.sh "$@" &
command_pid=$!
wait "$command_pid"
