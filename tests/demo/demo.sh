#!/usr/bin/env bash
# demo.sh: the demo shows what it claims, notices a worker that dies, and leaves
# nothing behind.  On SQLite, and on the servers that the environment names.
set -u
cd "$(dirname "$0")/../.." || exit 1
demo=${SQLOCK_BUILD:-build}/bin/examples/stock_deduction
dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/demo.XXXXXX") || exit 1
running=
finish() {
    [ -z "$running" ] || kill -KILL "$running" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
status=0

ok() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        echo "ok - $what"
    else
        sed 's/^/# /' "$dir/out" "$dir/err" 2>/dev/null
        echo "not ok - $what"
        status=1
    fi
}

# A row of the table: 1 without the lock, 2 with it.
row() { # NAME COLUMN
    sed -n "s/^  $1 *\([0-9-]*\) *\([0-9-]*\)\$/\\$2/p" "$dir/out"
}

ends_with() { # STATUS COMMAND...
    local expected=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq "$expected" ]
}

leaves_nothing() {
    [ -z "$(ls -A "$TMPDIR")" ] && ! pgrep -g "$running" >/dev/null
}

try_database() { # NAME OPTION...
    local name=$1
    shift
    ok "$name: the demo succeeds" \
        ends_with 0 "$demo" --orders 600 --items 40 --seed 7 "$@"
    ok "$name: without the lock updates are lost" \
        test "$(row 'lost updates' 1)" -gt 0
    ok "$name: with it none are" test "$(row 'lost updates' 2)" = 0
    ok "$name: nothing is oversold" test "$(row 'oversold, units' 2)" = 0
    ok "$name: the stock is right" test "$(row 'stock wrong by, units' 2)" = 0
    ok "$name: every order is sold or refused" test \
        $(($(row sold 2) + $(row 'refused, not enough stock' 2))) -eq 600
}

# Start it in a process group of its own; $running is its id.
start() { # OPTION...
    setsid "$demo" --orders 1000000 "$@" >"$dir/out" 2>"$dir/err" &
    running=$!
}

# Wait for so many children of the running demo.
wait_for_workers() { # COUNT
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(pgrep -cP "$running")" -ne "$1" ] || return 0
        read -rt 0.05 <> <(:)
    done
    return 1
}

try_database SQLite
ok "SQLite: nothing is left behind" test -z "$(ls -A "$TMPDIR")"
[ -z "${SQLOCK_TEST_POSTGRES_URL:-}" ] ||
    try_database PostgreSQL --url "$SQLOCK_TEST_POSTGRES_URL"
[ -z "${SQLOCK_TEST_MYSQL_URL:-}" ] ||
    try_database MySQL --url "$SQLOCK_TEST_MYSQL_URL"

start --processes 3
ok "three workers are at it" wait_for_workers 3
kill -KILL "$(pgrep -P "$running" | tail -n 1)"
wait "$running"
ok "a worker that is killed fails the run" test $? -eq 1
ok "the dead worker is reported" grep -q 'ended by signal 9' "$dir/err"
ok "nothing is left behind" leaves_nothing

start --processes 3
ok "three workers are at it again" wait_for_workers 3
kill -TERM "$running"
wait "$running"
ok "an interrupted run ends with that signal" test $? -eq 143
ok "nothing is left behind again" leaves_nothing
running=

ok "one process is not enough" ends_with 2 "$demo" --processes 1
ok "an unknown option is refused" ends_with 2 "$demo" --nothing
ok "an unknown database is refused" ends_with 1 "$demo" --url nothing:x
ok "--help tells the options" ends_with 0 "$demo" --help
exit $status
