#!/usr/bin/env bash
# fuzz.sh: run the fuzz targets, one after the other, and print a table
# fuzz.h says what they are.  `make fuzz` builds them and calls this.
#
#     FUZZ          names of targets (all)
#     FUZZ_SECONDS  how long each runs (30)
#     FUZZ_SEED     of its random numbers (0: another one each time)
#
# Inputs that reach something new are kept in $SQLOCK_BUILD/corpus/NAME, with
# which the next run begins; one that fails, in $SQLOCK_BUILD/found/NAME-*.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
targets=$root/tests/fuzz
: "${FUZZ:=}" "${FUZZ_SECONDS:=30}" "${FUZZ_SEED:=0}"
[ -n "$FUZZ" ] || FUZZ=$(cd "$targets" && printf '%s\n' *.c | sed 's/\.c$//')
# Each mistake is told at once; a program of the user's may set other options.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1

# Make a file of each line of NAME.seeds; \n and \xHH stand for what they say.
sow() { # NAME FOLDER
    local line number=0
    mkdir -p "$2"
    while IFS= read -r line; do
        number=$((number + 1))
        printf '%b' "$line" >"$2/$number"
    done <"$targets/$1.seeds"
}

# Print a figure of libFuzzer's, from its last line with it.
figure() { # NAME-OF-FIGURE FILE
    sed -nE "s/.*$1: *([0-9]+).*/\\1/p" "$2" | tail -n 1
}

rows=()
run() { # NAME
    local name=$1 log=$dir/log kept=$build/corpus/$1 begun=$SECONDS found=-
    if [ ! -x "$build/fuzz/$name" ] || [ ! -e "$targets/$name.seeds" ]; then
        failed "$name: there is no such target"
        return
    fi
    mkdir -p "$kept" "$build/found"
    sow "$name" "$dir/$name"
    if "$build/fuzz/$name" -seed="$FUZZ_SEED" \
        -max_total_time="$FUZZ_SECONDS" -timeout=60 \
        -rss_limit_mb=2048 -use_value_profile=1 -close_fd_mask=3 \
        -print_final_stats=1 -artifact_prefix="$build/found/$name-" \
        "$kept" "$dir/$name" >"$log" 2>&1; then
        passed "$name"
    else
        found=$(grep -oE "$build/found/[^' ;]+" "$log" | tail -n 1)
        # what the sanitizer says, without its map of the memory
        sed -nE '/^Shadow bytes/q; /ERROR|runtime error/,$p' "$log" |
            head -n 40 >"$dir/out.$name"
        failed "$name: $found"
        rm -f "$dir/out.$name"
    fi
    rows+=("$(printf '# %-14s %10s %8s %8s %6ss  %s' "$name" \
        "$(figure 'number_of_executed_units' "$log")" \
        "$(figure cov "$log")" "$(find "$kept" -type f | wc -l)" \
        $((SECONDS - begun)) "$found")")
}

for name in $FUZZ; do
    run "$name"
done
printf '# %-14s %10s %8s %8s %7s  %s\n' target inputs edges kept time found
printf '%s\n' "${rows[@]}"
exit $status
