#!/usr/bin/env bash
# shared.sh: locks that several commands have at a time: `sqlock run --shared`
# and `--slots`, the same of `acquire`, and `sqlock wait`.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Hold a lock as hold() does, but as one of several: share KEY NUMBER OPTION...
# The process is in ${sharers[NUMBER]}.
share() {
    local key=$1 number=$2
    shift 2
    rm -f "$dir/shared.$number"
    "$SQLOCK" --table-prefix "$prefix" run -w 60 "$@" "$key" -- \
        sh -c "echo > '$dir/shared.$number'; exec sleep 600" 2>"$dir/share.err" &
    sharers[number]=$!
    helper "$!"
    until_true test -e "$dir/shared.$number" ||
        not_ok "share $key" "it does not get the lock"
}
leave() { # NUMBER
    holder=${sharers[$1]}
    let_go
}

readers() {
    share readers 1 --shared
    share readers 2 -s
    ok "two commands share a lock"
    run run -n readers -- echo in
    is "--shared: who wants it alone is kept out" "$status/$out" 75/
    is_one_line "--shared: and it is said"
    has "--shared: by how many" "$err" '"readers" is shared by 2, for longest by '
    has "--shared: and by whom" "$err" " ${sharers[1]} "
    leave 1
    run run -n readers -- echo in
    is "--shared: until the last one has left" "$status/$out" 75/
    leave 2
    run run -n readers -- echo in
    is "--shared: then it is to be had" "$status/$out" 0/in
    hold readers
    run run -n --shared readers -- echo in
    is "--shared: who has it alone keeps them out" "$status/$out" 75/
    let_go
}

slots() {
    share slots 1 --slots 2
    share slots 2 --slots 2
    run run -n --slots 2 slots -- echo in
    is "--slots 2: a third is kept out" "$status/$out" 75/
    is_one_line "--slots 2: and it is said"
    leave 1
    run run -n --slots 2 slots -- echo in
    is "--slots 2: until one has left" "$status/$out" 0/in
    run run -n --slots 3 slots -- echo in
    is "--slots 3: a number is for a lock that has none" "$status/$out" 0/in
    run run -n --slots slots -- echo in
    is "--slots: as the lock has" "$status/$out" 0/in
    share slots 1 --slots
    run run -n --slots slots -- echo in
    is "--slots: no more" "$status/$out" 75/
    run run -n --slots=3 slots -- echo in
    is "--slots=3: nor so" "$status/$out" 75/
    leave 1
    leave 2
    run run --slots slotless -- echo in
    is "--slots: of a lock without a number" "$status/$out" 64/
    is_one_line "--slots: and it is said"
    has "--slots: and what to do" "$err" "--slots=3"
    run run -n slotless -- true
    run run --slots slotless -- echo in
    is "--slots: nor of one that has been used" "$status/$out" 64/
    run acquire --slots slotless
    is "acquire --slots: of a lock without a number" "$status/$out" 64/
    run run --slots= slots -- echo in
    is "--slots=: no number" "$status/$out" 64/
    run run --slots=x slots -- echo in
    is "--slots=x: none, either" "$status/$out" 64/
    run run --slots 5 -- echo in
    is "--slots 5: and no key" "$status/$out" 64/
    "$SQLOCK" --table-prefix "$prefix" run --slots 1 last -- \
        sh -c "until [ -e '$dir/last.begun' ]; do sleep 0.05; done" &
    holder=$!
    helper "$holder"
    until_true is_held last
    "$SQLOCK" --table-prefix "$prefix" run -w 60 --slots 1 last -- echo in \
        >"$dir/last" 2>"$dir/err" &
    touch "$dir/last.begun"
    wait "$!"
    is "--slots 1: one that waits gets the slot" "$?/$(cat "$dir/last")" 0/in
    ends
}

# The guard of a record needs a lease that has the lock alone.
refused() {
    run run --shared --slots 2 refused -- echo in
    is "both options are refused" "$status/$out" 64/
    is_one_line "and it is said"
    run run --slots 2 --once refused -- echo in
    is "--once is refused" "$status/$out" 64/
    is_one_line "and it is said"
    run run --slots 0 refused -- echo in
    is "no slots are refused" "$status/$out" 64/
    run acquire --shared --slots 2 refused
    is "acquire: both are refused" "$status/$out" 64/
}

acquired() {
    local first
    run acquire --slots 2 script
    is "acquire --slots: acquired" "$status" 0
    first=$out
    run acquire --slots 2 script
    is "acquire --slots: twice" "$status" 0
    run acquire -n --slots 2 script
    is "acquire --slots: not thrice" "$status/$out" 75/
    run renew "$first"
    is "renew by the id" "$status/$err" 0/
    run release "$first"
    is "release by the id" "$status/$err" 0/
    run acquire -n --slots 2 script
    is "then another one gets the slot" "$status" 0
    run renew "$first"
    is "and the id is of no use any more" "$status" 76
}

# ------------------------------------------------------------------- wait ----

waited() {
    run wait never.held
    is "wait: a lock that nobody has had" "$status/$out/$err" 0//
    run wait --json never.held
    is "wait: as JSON" "$status/$(json free <<<"$out")" 0/true
    is "wait: with the name" "$(json name <<<"$out")" never.held
    hold busy
    run wait --json -w 0.1 busy
    is "wait -w: in vain, as JSON" "$status/$(json free <<<"$out")" 75/false
    run wait -w 0.1 busy
    is "wait -w: in vain" "$status/$out" 75/
    is_one_line "wait -w: it is said who has it"
    [[ $layout != sqlock ]] || has "wait -w: by the process" "$err" " $holder "
    "$SQLOCK" --table-prefix "$prefix" wait busy 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    is_alive "$waiter"
    is "wait: it waits" "$?" 0
    let_go
    wait "$waiter"
    is "wait: until the lock is free" "$?" 0
    run run -n busy -- echo in
    is "wait: which it has not taken" "$status/$out" 0/in
}

recorded() {
    sq init --once 2>"$dir/err"
    run wait --once -w 0.1 work
    is "wait --once: in vain" "$status/$out" 75/
    is_one_line "wait --once: it is said"
    has "wait --once: what is missing" "$err" '"work" is not recorded'
    "$SQLOCK" --table-prefix "$prefix" -v wait --once work 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true grep -q waiting "$dir/err"
    has "wait --once: what it waits for" "$(cat "$dir/err")" \
        'waiting until "work" is recorded as done'
    sq run --once work -- true
    wait "$waiter"
    is "wait --once: until the work is done" "$?" 0
    run wait --once work
    is "wait --once: afterwards at once" "$status/$err" 0/
    run wait --once --json work
    is "wait --once: as JSON" "$status/$(json "done" <<<"$out")" 0/true
    SQLOCK_URL=postgresql://nobody@127.0.0.1:1/none "$SQLOCK" -v wait work \
        2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true grep -q waiting "$dir/err"
    has "wait: its own option is named" "$(cat "$dir/err")" "(see --wait): "
    kill -TERM "$waiter"
    wait "$waiter"
}

layout=spring7
for one in $(databases); do
    use "$one" spring7 || continue
    waited
    run run --shared one -- true
    is "Spring's table is refused" "$status" 64
    is_one_line "and it is said"
done
layout=sqlock
for one in $(databases); do
    use "$one" || continue
    readers
    slots
    refused
    acquired
    waited
    recorded
done
database=
skip_missing
done_testing
