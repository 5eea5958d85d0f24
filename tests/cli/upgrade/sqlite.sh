#!/usr/bin/env bash
# sqlite.sh: upgrades from Spring's layouts to sqlock's while locks are held, on
# SQLite.
# shellcheck source=tests/cli/upgrade/lib.sh
. "$(dirname "$0")/lib.sh"
database=sqlite
command -v sqlite3 >/dev/null || skip_all "$database: no sqlite3"
export SQLOCK_URL=sqlite:$dir/test.db
past=1577836800000000 expired=1577836810000000

query() { # SQL
    sqlite3 -bail -cmd '.timeout 10000' "$dir/test.db" "$1"
}

upgrades
