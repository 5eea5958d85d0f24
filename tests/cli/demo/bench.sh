#!/usr/bin/env bash
# bench.sh: the benchmark sells one item in every way, with threads and with
# processes, and charts can be drawn of its results.  No figure is judged.
# Charts need gnuplot and jq, which only `make chart` installs.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
bench=$build/tests/bench

fails() { # COMMAND...
    ! "$@"
}

# Print how many results there are with so many clients, which are processes
# (true) or threads (false).
results() { # CLIENTS PROCESSES
    grep -A 1 "\"clients\": $1," "$dir/bench.json" |
        grep -c "\"processes\": $2,"
}

measure() { # OPTION...
    "$bench" --sqlite "$dir/bench.db" --seconds 0.02 --repeats 1 "$@"
}

check "every way to sell is measured, what is left is right" measure \
    --cases stock --clients 1,2,4,2p --json "$dir/bench.json"
check "with threads" test "$(results 4 false)" -eq 10
check "and with processes" test "$(results 2 true)" -eq 10
PATH=$build/bin/examples:$PATH check "one program sells for all" measure \
    --cases seller+order --clients 2,2p --json "$dir/seller.json"
check "and how a lock goes from one to the next" measure \
    --cases handoff,crowded --clients 2,2p --hold 0.1 --json "$dir/waiting.json"
# Print that member of the results of a case, on one line.
of_case() { # FILE CASE MEMBER
    grep -A 28 "\"case\": \"$2\"," "$dir/$1.json" |
        sed -n "s/.*\"$3\": \([^,]*\),*$/\1/p" | head -n 1
}
check "and what a pair writes" measure --cases pair --clients 1 \
    --json "$dir/traffic.json"
check "to SQLite's files, at least a page for each commit" awk \
    'BEGIN { exit !(ARGV[1] + 0 >= 2 * 4096) }' \
    "$(of_case traffic pair log_bytes)"
check "while nothing is sent" test "$(of_case traffic pair requests)" = null
# Of so many pairs that the statements which are sent once do not count: after a
# stall of the machine there may be few.
sends_two() {
    local attempt
    for attempt in 1 2 3; do
        measure "--$database" "${!url}" --cases pair --clients 1 \
            --seconds 0.5 --json "$dir/$database.json" || return
        [ "$(printf '%.0f' "$(of_case "$database" pair requests)")" != 2 ] ||
            return 0
        echo "# attempt $attempt did not send two requests a pair"
    done
    return 1
}
for database in postgres mysql; do
    url=SQLOCK_TEST_${database^^}_URL
    [ -n "${!url:-}" ] || continue
    check "what a pair sends to $database is two requests" sends_two
    check "with an answer each, and a record in the log" awk \
        'BEGIN { exit !(ARGV[1] + 0 > 100 && ARGV[2] + 0 > 100) }' \
        "$(of_case "$database" pair wire_bytes)" \
        "$(of_case "$database" pair log_bytes)"
done
check "how long a lock is held" measure --cases handoff,pair --clients 2 \
    --hold 0,5 --json "$dir/holds.json"
holds=$(sed -n 's/.*"hold_ms": \(.*\),/\1/p' "$dir/holds.json" | tr '\n' ' ')
check "is a row each, other cases one: $holds" test "$holds" = "0.0 null 5.0 "
if command -v redis-server >/dev/null; then
    check "Redis is measured beside it" measure --clients 1,2p \
        --cases redis-always,redis-everysec
else
    measure --clients 1 --cases redis-always >"$dir/said" 2>&1
    check "without Redis its cases are refused" \
        grep -q 'redis-always needs redis-server' "$dir/said"
fi
install -m 755 /dev/null "$dir/stock_seller"
PATH=$dir measure --clients 64 --cases seller+order,floor \
    --json "$dir/failed.json" >"$dir/said" 2>&1
check "a case that fails fails the run" test $? -eq 1
check "which says why" grep -q '^bench: .*setpriv: No such' "$dir/said"
check "and reports the others" test \
    "$(grep -c '"case": "floor"' "$dir/failed.json")" -eq 1
check "processes change one table, and hold leases of their own" measure \
    --cases guarded,adopted,shared,row-queue --clients 2p
check "no round is begun after the limit" measure --cases floor --clients 1 \
    --repeats 3 --limit 0 --json "$dir/limit.json"
check "but the first" test "$(grep -A 1 '"ratios"' "$dir/limit.json" |
    grep -c '[0-9],$')" -eq 0
check "more holds than can be are refused" fails measure \
    --hold 1,2,3,4,5,6,7,8,9
if [ -n "${SQLOCK_TEST_POSTGRES_URL:-}" ]; then
    check "more connections than the server has are not wanted at a time" \
        measure --postgres "$SQLOCK_TEST_POSTGRES_URL" --clients 64 \
        --cases floor,pair,pooled,fresh,shared,permit,readers,guarded
fi
check "a case that is none is refused" fails measure --cases nothing
check "more clients than can be are refused" fails measure --clients 257

if command -v gnuplot >/dev/null && command -v jq >/dev/null; then
    check "charts are drawn" \
        bash tests/tools/bench/chart.sh "$dir/chart" "$dir/bench.json" \
        "$dir/traffic.json"
    check "a curve" grep -q '>coalesced<' "$dir/chart/stock-curve-sqlite.svg"
    check "and bars" grep -q '>2 processes<' "$dir/chart/stock-ways-sqlite.svg"
    check "bars of callers with order rows, too" \
        grep -q '>4 threads<' "$dir/chart/stock-matrix-sqlite.svg"
    check "and pairs" grep -q '>sqlock<' "$dir/chart/pairs-sqlite.svg"
    check "legible on a dark screen" \
        grep -q 'prefers-color-scheme: dark' "$dir/chart/stock-curve-sqlite.svg"
    check "none of a database without results" \
        test ! -e "$dir/chart/stock-curve-mysql.svg"
    echo '{"results": [], "servers": []}' >"$dir/empty.json"
    check "nothing to draw is an error" \
        fails bash tests/tools/bench/chart.sh "$dir/none" "$dir/empty.json"
fi
exit $status
