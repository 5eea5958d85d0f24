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

without_server
upgrades
