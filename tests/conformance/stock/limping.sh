#!/usr/bin/env bash
# limping.sh: a test that fails, hangs or is killed fails alone, whatever it
# leaves open: those behind it pass, and soon.  A suite that is ended shows how
# far it has come.
set -u
cd "$(dirname "$0")/../../.." || exit 1
suite=${SQLOCK_BUILD:-build}/tests/stock
failed=0

is() { # WHAT GOT EXPECTED
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1: got \"$2\", not \"$3\""
        sed 's/^/# /' <<<"$out"
        failed=1
    fi
}

for database in postgres mysql sqlite; do
    url=SQLOCK_TEST_${database^^}_URL
    if [ -z "${!url:-}" ]; then
        echo "skip - $database: $url is not set"
        continue
    fi
    out=$(timeout 60 "$suite" --limp "$database" 2>&1)
    is "$database: the suite fails" $? 1
    is "$database: what fails is told" \
        "$(grep -c '^\[  FAILED  \] test_fails_in_a_transaction' <<<"$out")" 2
    is "$database: what hangs is ended" \
        "$(grep -c '^\[  FAILED  \] a test hung' <<<"$out")" 1
    is "$database: what is killed is told" \
        "$(grep -c '^\[  FAILED  \] .* ended by signal 9' <<<"$out")" 1
    is "$database: those behind pass" \
        "$(grep -c '^\[       OK \] test_is_behind_them' <<<"$out")" 1
done

# As when the time limit of the runner is over: each of the databases' processes,
# and their lanes', writes into a file of its own.
dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/limping.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
LIMPING_FILE=$dir/hangs "$suite" --limp -j 2 -t '*hangs' >"$dir/out" 2>&1 &
end=$((SECONDS + 60))
until [ -e "$dir/hangs" ] || [ "$SECONDS" -ge "$end" ]; do
    sleep 0.02
done
kill -TERM $!
wait $!
is "a suite that is ended says so" $? 99
out=$(cat "$dir/out")
is "and which test was running" \
    "$(grep -c '^\[ RUN      \] test_hangs' <<<"$out" | sed 's/[1-9]/some/')" some
exit $failed
