#!/usr/bin/env bash
# runner.sh: tests/run.sh itself counts what scripts say and how they end.  A
# skip is no failure, unless SKIPS_FAIL=1 says so; nothing hides a failure.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d /tmp/sqlock-runner.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tests"
cp tests/run.sh "$work/tests"
status=0

# A suite of scripts, each of which is one line; "install" needs no servers.
counts() { # WHAT EXPECTED-STATUS EXPECTED-TOTALS SCRIPT...
    local what=$1 expected="$2 $3" i=0 got
    shift 3
    rm -rf "$work/tests/install"
    mkdir "$work/tests/install"
    for script in "$@"; do
        i=$((i + 1))
        echo "$script" >"$work/tests/install/$i.sh"
    done
    SQLOCK_BUILD=$work/build bash "$work/tests/run.sh" install >"$work/out" 2>&1
    got="$? $(tail -n 1 "$work/out")"
    if [ "$got" = "$expected" ]; then
        echo "ok - $what"
    else
        sed 's/^/# /' "$work/out"
        echo "not ok - $what: got \"$got\", not \"$expected\""
        status=1
    fi
}

unset SKIPS_FAIL
counts "what passes" 0 "1 passed, 0 failed, 0 skipped" "echo ok - it"
counts "a skip that is said, with 77, is no failure" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it; exit 77"
counts "nor is one that is not said" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "exit 77"
counts "nor one that is said with 0" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it"
SKIPS_FAIL=1 counts "SKIPS_FAIL=1 makes it one" \
    1 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it; exit 77"
counts "nothing but skips is no success" \
    1 "0 passed, 0 failed, 1 skipped" "echo skip - it; exit 77"
counts "a failure is one" \
    1 "0 passed, 1 failed, 1 skipped" "echo not ok - it; echo skip - it; exit 77"
counts "an exit status is a failure that nothing was said of" \
    1 "1 passed, 1 failed, 0 skipped" "echo ok - it; exit 1"
exit $status
