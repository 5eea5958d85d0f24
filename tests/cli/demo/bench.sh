#!/usr/bin/env bash
# bench.sh: the benchmark sells one item in every way, with threads and with
# processes, and what it writes can be drawn.  Judges no figure.  Charts are
# drawn where gnuplot and jq are there, which only `make chart` installs.
set -u
cd "$(dirname "$0")/../../.." || exit 1
bench=${SQLOCK_BUILD:-build}/tests/bench
dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/bench.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
status=0

ok() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        echo "ok - $what"
    else
        sed 's/^/# /' "$dir/out"
        echo "not ok - $what"
        status=1
    fi
}

fails() { # COMMAND...
    ! "$@"
}

# How many results there are of so many clients.
results() { # CLIENTS PROCESSES
    grep -A 1 "\"clients\": $1," "$dir/bench.json" |
        grep -c "\"processes\": $2,"
}

measure() { # OPTION...
    "$bench" --sqlite "$dir/bench.db" --seconds 0.02 --repeats 1 "$@"
}

ok "every way to sell is measured, what is left is right" measure \
    --cases stock --clients 1,2,4,2p --json "$dir/bench.json"
ok "with threads" test "$(results 4 false)" -eq 12
ok "and with processes" test "$(results 2 true)" -eq 12
ok "and how a lock goes from one to the next, and who waits for it" measure \
    --cases handoff,idle --clients 2,2p --json "$dir/waiting.json"
idle=$(grep -A 9 '"case": "idle",' "$dir/waiting.json" |
    sed -n 's/.*"ops_per_s": \(.*\),/\1/p' | tr '\n' ' ')
ok "idle clients send nothing: $idle" test "$idle" = "0.0 0.0 "
ok "a case that is none is refused" fails measure --cases nothing
ok "more clients than can be are refused" fails measure --clients 257

if command -v gnuplot >/dev/null && command -v jq >/dev/null; then
    ok "charts are drawn" \
        bash tests/tools/bench/chart.sh "$dir/chart" "$dir/bench.json"
    ok "a curve" grep -q '>coalesced<' "$dir/chart/stock-curve-sqlite.svg"
    ok "and bars" grep -q '>2 processes<' "$dir/chart/stock-ways-sqlite.svg"
    ok "bars of callers with order rows, too" \
        grep -q '>4 threads<' "$dir/chart/stock-matrix-sqlite.svg"
    ok "legible on a dark screen" \
        grep -q 'prefers-color-scheme: dark' "$dir/chart/stock-curve-sqlite.svg"
    ok "none of a database without results" \
        test ! -e "$dir/chart/stock-curve-mysql.svg"
    echo '{"results": [], "servers": []}' >"$dir/empty.json"
    ok "nothing to draw is an error" \
        fails bash tests/tools/bench/chart.sh "$dir/none" "$dir/empty.json"
fi
exit $status
