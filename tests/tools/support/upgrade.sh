#!/usr/bin/env bash
# upgrade.sh DATABASE LAYOUT PREFIX TTL_MS [on]: change a lock table of that
# layout to sqlock's, in the database of SQLOCK_URL, with the script of sql/ and
# the command that the script asks for; "now": make its view.  Without TTL_MS (empty), the script is
# not told it; "on": the client goes on after an error.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)

script() {
    local name=upgrade-$2
    [ "$2" != now ] || name=now
    sed "s/INT_LOCK/$3LOCK/g" "$root/sql/$1/$name.sql"
}

case $1 in
postgres)
    script "$@" | bash "$root/tests/tools/servers/psql.sh" -X -q \
        -v ON_ERROR_STOP="$([ -n "${5:-}" ] && echo 0 || echo 1)" \
        ${4:+-v ttl="'$4 ms'"} -f - "$SQLOCK_URL"
    ;;
mysql)
    # mysql://user:password@host:port/database
    [[ $SQLOCK_URL =~ ^mysql://([^:]*):([^@]*)@([^:]*):([0-9]*)/(.*)$ ]] ||
        exit 1
    export MYSQL_PWD=${BASH_REMATCH[2]}
    script "$@" | "$(command -v mariadb || command -v mysql)" --no-defaults \
        -u "${BASH_REMATCH[1]}" -h "${BASH_REMATCH[3]}" -P "${BASH_REMATCH[4]}" \
        "${BASH_REMATCH[5]}" ${4:+--init-command="SET @ttl_ms = $4"} \
        ${5:+--force}
    ;;
sqlite)
    script "$@" | sqlite3 ${4:+-cmd ".parameter set :ttl_ms $4"} \
        "${SQLOCK_URL#sqlite:}"
    ;;
esac
