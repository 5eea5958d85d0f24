#!/usr/bin/env bash
# postgres.sh: upgrades from Spring's layouts to sqlock's while locks are held,
# on PostgreSQL.
# shellcheck source=tests/cli/upgrade/lib.sh
. "$(dirname "$0")/lib.sh"
database=postgres
needs SQLOCK_TEST_POSTGRES_URL
psql=$(bash "$root/tests/tools/servers/postgres-bin.sh")/psql
past="'2020-01-01 00:00:00'" expired="'2020-01-01 00:00:10'"

query() { # SQL
    "$psql" -X -q -A -t -v ON_ERROR_STOP=1 -c "$1" "$SQLOCK_URL"
}

# A table of before: nothing is asked about the server until the script has run.
without_server() {
    layout=server about="$database: without a table of the server: "
    prefix=UP${$}_server_
    is "is made" "$(status_of sq init)" 0
    query "DROP TABLE ${prefix}LOCK_SERVER" >/dev/null
    is "has locks" "$(status_of sq run -n job -- true)" 0
    is "is told by doctor" \
        "$(sq doctor 2>/dev/null | grep -c 'upgrade-server.sql')" 1
    is "has nothing to break" \
        "$(status_of sq break --grace --reason moved)" 64
    is "gets one" "$(status_of upgrade_with '')" 0
    is "which doctor finds" \
        "$(sq doctor 2>/dev/null | grep -c 'upgrade-server.sql')" 0
    is "grants as before" "$(status_of sq run -n job -- true)" 0
    query "UPDATE ${prefix}LOCK_SERVER SET EPOCH = 'another'" >/dev/null
    is "grants nothing on another server" \
        "$(status_of sq run -n job -- true)" 75
    is "as ls says" "$(sq ls 2>&1 | grep -c 'grants nothing')" 1
    is "and metrics" "$(sq metrics | grep -c '^sqlock_grace_seconds [1-9]')" 1
    is "until an operator lets it" \
        "$(status_of sq break --grace --reason moved)" 0
    is "and grants then" "$(status_of sq run -n job -- true)" 0
    is "which keeps why" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK_SERVER
        WHERE NOTE LIKE '%: moved'")" 1
    is "once" "$(status_of sq break --grace --reason moved)" 1
    query "DROP VIEW ${prefix}LOCK_NOW" >/dev/null
    drop_tables
}

without_server
upgrades
