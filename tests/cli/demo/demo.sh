#!/usr/bin/env bash
# demo.sh: the demo shows what it claims, notices a worker that dies, and leaves
# nothing behind.  On SQLite, and on the servers that the environment names.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
demo=$build/bin/examples/stock_deduction
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"

# As check(), but commands write their output to $dir/out and $dir/err
# themselves.
ok() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        passed "$what"
    else
        failed "$what"
    fi
}

# Print a number of the demo's table, from the row of WAY.
cell() { # WAY COLUMN-NUMBER
    sed -n "s/^  $1  *\([0-9]\)/\1/p" "$dir/out" | head -n 1 |
        awk -v column="$2" '{ print $column }'
}
done=1 refused=2 speed=3 oversold=7 doubled=8 off=9

ends_with() { # STATUS COMMAND...
    local expected=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq "$expected" ]
}

leaves_nothing() {
    [ -z "$(ls -A "$TMPDIR")" ] && ! grep -q 'clearing up' "$dir/err" && ! pgrep -g "$running" >/dev/null
}

# Every order that came in counts once, and nothing else does.
is_exact() { # WAY
    [ "$(cell "$1" $oversold)" = 0 ] && [ "$(cell "$1" $doubled)" = 0 ] &&
        [ "$(cell "$1" $off)" = 0 ] && [ "$(cell "$1" $speed)" -gt 0 ] &&
        [ "$(cell "$1" $refused)" -gt 0 ] &&
        [ $(($(cell "$1" $done) + $(cell "$1" $refused))) -eq \
            $(($(cell conditional $done) + $(cell conditional $refused))) ]
}

try_database() { # NAME OPTION...
    local name=$1 way
    shift
    ok "$name: the demo succeeds" ends_with 0 "$demo" --orders 600 --items 20 \
        --processes 3 --threads 6 --seed 7 "$@"
    ok "$name: with nothing the stock is wrong" test "$(cell nothing $off)" -gt 0
    ok "$name: and orders are doubled" test "$(cell nothing $doubled)" -gt 0
    for way in "${ways[@]}"; do
        ok "$name: $way: every order counts once" is_exact "$way"
    done
    ok "$name: a bar for each" test \
        "$(grep -c '^  [a-z ]* #* [0-9]*$' "$dir/out")" -eq \
        $((${#ways[@]} + 1))
}
ways=("a lock around" pessimistic optimistic conditional coalesced)

# Start it in a process group of its own; $running is its id.
start() { # OPTION...
    setsid "$demo" --orders 1000000 "$@" >"$dir/out" 2>"$dir/err" &
    running=$!
    helper "$running"
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
[ -z "${SQLOCK_TEST_MYSQL_URL:-}" ] ||
    try_database MySQL --url "$SQLOCK_TEST_MYSQL_URL"
[ -z "${SQLOCK_TEST_POSTGRES_URL:-}" ] ||
    try_database PostgreSQL --url "$SQLOCK_TEST_POSTGRES_URL"

start --processes 3
ok "three workers are at it" wait_for_workers 3
kill -KILL "$(pgrep -P "$running" | tail -n 1)"
wait "$running"
ok "a worker that is killed fails the run" test $? -eq 1
ok "the dead worker is reported" grep -q 'ended by signal 9' "$dir/err"
ok "nothing is left behind" leaves_nothing

start --processes 3 --threads 8
ok "three workers begin" wait_for_workers 3
for file in "$TMPDIR"/*/shop.db; do
    head -c 200000 /dev/zero >"$file"
done
wait "$running"
ok "a database that breaks fails the run" test $? -eq 1
ok "it is told once, whatever met it" test "$(wc -l <"$dir/err")" -eq 2
ok "nothing is left behind by it" leaves_nothing

start --processes 3
ok "three workers are at it again" wait_for_workers 3
kill -TERM "$running"
wait "$running"
ok "an interrupted run ends with that signal" test $? -eq 143
ok "nothing is left behind again" leaves_nothing

ok "one process is not enough" ends_with 2 "$demo" --processes 1
ok "no thread is not enough" ends_with 2 "$demo" --threads 0
ok "an unknown option is refused" ends_with 2 "$demo" --nothing
ok "an unknown database is refused" ends_with 1 "$demo" --url nothing:x
ok "with one line" test "$(wc -l <"$dir/err")" -eq 1
ok "--help tells the options" ends_with 0 "$demo" --help
exit $status
