#!/usr/bin/env bash
# limping.sh: a test that fails, hangs or is killed fails alone, whatever it
# leaves open: those behind it pass, and soon.  A suite that is ended shows how
# far it has come.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
suite=$build/tests/stock

for database in postgres mysql sqlite; do
    url=SQLOCK_TEST_${database^^}_URL
    if [ -z "${!url:-}" ]; then
        echo "skip - $database: $url is not set"
        continue
    fi
    timeout 60 "$suite" --limp "$database" >"$dir/out" 2>&1
    is "$database: the suite fails" $? 1
    is "$database: what fails is told" \
        "$(grep -c '^\[  FAILED  \] test_fails_in_a_transaction' "$dir/out")" 2
    is "$database: what hangs is ended" \
        "$(grep -c '^\[  FAILED  \] a test hung' "$dir/out")" 1
    is "$database: what is killed is told" \
        "$(grep -c '^\[  FAILED  \] .* ended by signal 9' "$dir/out")" 1
    is "$database: those behind pass" \
        "$(grep -c '^\[       OK \] test_is_behind_them' "$dir/out")" 1
done

# As when the time limit of the runner is over: each of the databases' processes,
# and their lanes', writes into a file of its own.
LIMPING_FILE=$dir/hangs "$suite" --limp -j 2 -t '*hangs' >"$dir/out" 2>&1 &
end=$((SECONDS + 60))
until [ -e "$dir/hangs" ] || [ "$SECONDS" -ge "$end" ]; do
    sleep 0.02
done
kill -TERM $!
wait $!
is "a suite that is ended says so" $? 99
is "and which test was running" \
    "$(grep -c '^\[ RUN      \] test_hangs' "$dir/out" | sed 's/[1-9]/some/')" some
exit $status
