#!/usr/bin/env bash
# with.sh COMMAND...: run a command with private servers, whose URLs say
# waiting=poll.  On PostgreSQL only an administrator may call the functions for
# advisory locks and notifications.
set -u
unset SQLOCK_TEST_{POSTGRES,MYSQL,SQLITE}_{URL,ADMIN_URL,SOCKET,PID,PIDFILE}
SQLOCK_TEST_WAITING=poll exec \
    bash "$(dirname "$0")/../../tools/servers/with.sh" "$@"
