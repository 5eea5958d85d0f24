#!/usr/bin/env bash
# limping.sh: run a suite (limping.c) in which a test fails, a test hangs, and a
# test is killed.  Each fails alone, whatever it leaves open, and the test after
# them passes soon.  A suite that is ended by SIGTERM shows which test was
# running.
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
        "$(grep -c '^\[  FAILED  \] a test hung: test_hangs' "$dir/out")" 1
    is "$database: what is killed is told" \
        "$(grep -c '^\[  FAILED  \] .* ended by signal 9' "$dir/out")" 1
    is "$database: those behind pass" \
        "$(grep -c '^\[       OK \] test_is_behind_them' "$dir/out")" 1
done

# End the suite as the runner does after its time limit.  Each database's
# process and each lane writes its output into a file of its own.
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
