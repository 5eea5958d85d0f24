#!/usr/bin/env bash
# postgres-bin.sh: print the folder of PostgreSQL's server programs, the newest
# where there are several; exit status 1 when there is none.  Order: PATH, the
# distribution's folders, what fetch-postgres.sh has unpacked.
# SQLOCK_TEST_POSTGRES_BIN=DIR says so instead.
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
