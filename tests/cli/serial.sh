#!/usr/bin/env bash
# serial.sh: ten processes run a job of one second under one lock, one after
# another; with -n, nine of ten are refused; and CREATE INDEX CONCURRENTLY works
# while a lock is held.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# A job that prints when it begins and ends, by the host's monotonic clock.
job='read -r at _ </proc/uptime; echo "$at in"; sleep 1
    read -r at _ </proc/uptime; echo "$at out"'

ten() { # DATABASE
    local i pids=() failed=0
    for i in 1 2 3 4 5 6 7 8 9 10; do
        sq run -w 300 ten -- sh -c "$job" >>"$dir/$1.log" \
            2>"$dir/$1.err.$i" &
        pids+=($!)
    done
    for i in 1 2 3 4 5 6 7 8 9 10; do
        wait "${pids[i - 1]}" && continue
        failed=$((failed + 1))
        echo "# exit status $?, number $i says: $(cat "$dir/$1.err.$i")"
    done
    echo "$failed" >"$dir/$1.failed"
}

nine() { # DATABASE
    local i pids=() statuses=()
    for i in 1 2 3 4 5 6 7 8 9 10; do
        sq -q run -n nine -- sh -c 'echo in; until [ -e "$1" ]; do
            sleep 0.05; done' sh "$dir/$1.end" >>"$dir/$1.ran" &
        pids+=($!)
    done
    # The nine end while the tenth still runs, however slow the machine is.
    until_true nine_have_ended "${pids[@]}" || statuses+=(late)
    : >"$dir/$1.end"
    for i in "${pids[@]}"; do
        wait "$i"
        statuses+=("$?")
    done
    printf '%s\n' "${statuses[@]}" | sort -n | uniq -c | tr -s ' \n' ' ' \
        >"$dir/$1.statuses"
}
nine_have_ended() {
    local pid alive=0
    for pid in "$@"; do
        ! is_alive "$pid" || alive=$((alive + 1))
    done
    [ "$alive" -le 1 ]
}

for one in $(databases); do
    (
        trap - EXIT
        use "$one" || exit
        ten "$one"
        nine "$one"
    ) &
done
wait
for database in $(databases); do
    is "ten at once all run" "$(cat "$dir/$database.failed")" 0
    # No overlap: sorted by time, each "in" is followed by its "out".
    is "one after another, ten times" \
        "$(sort -s -n -k1,1 "$dir/$database.log" | awk '{ print $2 }' |
            tr -d '\n' | sed 's/inout/1/g')" 1111111111
    is "as they were written, too" "$(awk '{ print $2 }' "$dir/$database.log" |
        tr -d '\n' | sed 's/inout/1/g')" 1111111111
    is "with -n nine are refused" "$(cat "$dir/$database.statuses")" \
        " 1 0 9 75 "
    is "and one runs" "$(wc -l <"$dir/$database.ran")" 1
done

# CREATE INDEX CONCURRENTLY waits for the end of open transactions: neither the
# holder nor a waiter has one while the command runs.
concurrently() {
    local psql=$here/../tools/servers/psql.sh
    bash "$psql" -qX "$SQLOCK_URL" -c "CREATE TABLE cli_$$ (n int)" >/dev/null
    run run -t 20 index -- timeout 60 bash "$psql" -qX "$SQLOCK_URL" \
        -c "CREATE INDEX CONCURRENTLY ON cli_$$ (n)"
    is "CREATE INDEX CONCURRENTLY under the lock" "$status" 0
    (
        until [ -e "$dir/begun" ]; do sleep 0.1; done
        exec "$SQLOCK" --table-prefix "$prefix" -v run -w 300 index -- true
    ) 2>"$dir/waiter" &
    run run -t 20 index -- timeout 200 sh -c ': >"$5"
        until grep -q waiting "$1"; do sleep 0.1; done
        timeout 60 bash "$4" -qX "$2" -c "$3"' sh "$dir/waiter" "$SQLOCK_URL" \
        "CREATE INDEX CONCURRENTLY ON cli_$$ (n)" "$psql" "$dir/begun"
    is "while another waits for it" "$status" 0
    wait "$!"
    bash "$psql" -qX "$SQLOCK_URL" -c "DROP TABLE cli_$$" >/dev/null
}
if [ -n "${SQLOCK_TEST_POSTGRES_URL:-}" ] && use postgres; then
    concurrently
fi
database=
skip_missing
done_testing
