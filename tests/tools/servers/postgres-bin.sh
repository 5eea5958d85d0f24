#!/usr/bin/env bash
# postgres-bin.sh: print the folder of PostgreSQL's server programs; end with
# status 1 if there is none.  The folder is the first of:
# SQLOCK_TEST_POSTGRES_BIN if set, without a search; that of PATH; the newest of
# the distribution; the newest that fetch-postgres.sh has unpacked.
set -u
cd "$(dirname "$0")/../../.." || exit 1

usable() {
    [ -x "$1/initdb" ] && [ -x "$1/postgres" ] && [ -x "$1/psql" ]
}

if [ -n "${SQLOCK_TEST_POSTGRES_BIN:-}" ]; then
    usable "$SQLOCK_TEST_POSTGRES_BIN" && echo "$SQLOCK_TEST_POSTGRES_BIN"
    exit
fi
if found=$(command -v initdb); then
    found=$(dirname "$(readlink -f "$found")")
    usable "$found" && echo "$found" && exit 0
fi
for root in /usr build/servers/postgres/usr; do
    found=$(printf '%s\n' "$root"/lib/postgresql/*/bin "$root"/pgsql-*/bin |
        sort -V | while read -r bin; do
        ! usable "$bin" || echo "$bin"
    done | tail -n 1)
    [ -n "$found" ] && readlink -f "$found" && exit 0
done
exit 1
