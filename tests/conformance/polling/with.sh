#!/usr/bin/env bash
# with.sh COMMAND...: run a command with servers of its own, whose URLs say
# waiting=poll, and where nobody may call PostgreSQL's advisory locks or notify.
set -u
unset SQLOCK_TEST_{POSTGRES,MYSQL,SQLITE}_{URL,ADMIN_URL,SOCKET,PID,PIDFILE}
SQLOCK_TEST_WAITING=poll exec \
    bash "$(dirname "$0")/../../tools/servers/with.sh" "$@"
