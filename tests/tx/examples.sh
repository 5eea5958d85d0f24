#!/usr/bin/env bash
# examples.sh: the back-office job and the transfers do what they say, on every
# database that the environment names; money is neither made nor lost.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${SQLOCK_BUILD:-build}/bin/examples
status=0

ok() { # WHAT COMMAND...
    local what=$1 out
    shift
    if out=$("$@" 2>&1); then
        echo "ok - $what"
    else
        printf '%s\n' "$out" | sed 's/^/# /'
        echo "not ok - $what"
        status=1
    fi
}

ends_with() { # STATUS COMMAND...
    local expected=$1 got
    shift
    "$@"
    got=$?
    [ "$got" -eq "$expected" ] || echo "status $got"
    [ "$got" -eq "$expected" ]
}

# Many at once, between the same accounts, in all styles: nothing is lost when
# in the end the first account can give exactly what it must have.
many() { # URL
    local url=$1 style pids=() pid
    "$bin/transfer" "$url" create 2 1000 || return 1
    for style in lock version guard lock version guard; do
        "$bin/transfer" "$url" "$style" 1 2 100 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || return 1
    done
    ends_with 3 "$bin/transfer" "$url" lock 1 2 401 &&
        "$bin/transfer" "$url" guard 1 2 400 &&
        ends_with 3 "$bin/transfer" "$url" version 1 2 1 &&
        ends_with 3 "$bin/transfer" "$url" lock 2 1 2001 &&
        "$bin/transfer" "$url" version 2 1 2000
}

for name in POSTGRES MYSQL SQLITE; do
    variable=SQLOCK_TEST_${name}_URL
    url=${!variable:-}
    if [ -z "$url" ]; then
        echo "skip - $variable is not set"
        continue
    fi
    ok "$name: transfers of all styles at once keep the sum" many "$url"
    ok "$name: wrong use is told" ends_with 2 "$bin/transfer" "$url" lock 1 1 5
    ok "$name: the back-office job books" "$bin/back_office" "$url"
    ok "$name: and does so again" "$bin/back_office" "$url"
done
exit $status
