#!/usr/bin/env bash
# sharers.sh: what an operator sees of locks that several share, breaks, and
# changes: `ls`, `show`, `top`, `metrics`, `break`, `permits`, `reap`, `doctor`.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty

me="$(id -un 2>/dev/null || id -u)@$(hostname)"
unset SUDO_USER

take() { # OPTION... NAME: prints the id of the lease
    sq acquire -n --ttl 60 "$@" 2>>"$dir/err"
}
token_of() { # NAME NUMBER: of that sharer, from 0
    sq show "$1" --json | json "sharer_names.$2" | sed 's/.*, token \([0-9]*\),.*/\1/'
}
value() { # METRIC
    /usr/bin/python3 "$here/metrics.py" "$1" "region=$region" <<<"$out"
}

shown() {
    local one two three readers
    one=$(take --slots 5 pool)
    two=$(take --slots 5 pool)
    three=$(take --shared readers)
    run ls
    like "ls tells how many permits are taken" "$out" "* shared 2/5 *"
    like "and how many readers there are" "$out" "*readers *shared 1 *"
    like "and one of them" "$out" "*pool *for bash $$: *acquire*"
    out=$(NO_COLOR=1 "$dir/pty" 80 "$SQLOCK" --table-prefix "$prefix" ls)
    has "also in 80 columns" "$out" "shared 2/5"
    is "which are not exceeded" "$(too_long 81 <<<"$out")" ""
    run show pool
    like "show names each" "$out" \
        "*permits    2 of 5 taken*shared by  $me *acquire*, token *, for * s, * s left
           $me *, token *"
    run show pool --json
    is "JSON has the mode" "$(json mode <<<"$out")" shared
    is "the state is held" "$(json state <<<"$out")" held
    is "the permits" "$(json permits <<<"$out")" 5
    is "those that are taken" "$(json taken <<<"$out")" 2
    is "the sharers" "$(json sharers <<<"$out")" 2
    like "by name" "$(json sharer_names.1 <<<"$out")" \
        "$me *\(for bash $$\), token *, for * s, * s left"
    run top -n 1
    like "top tells it" "$out" "*held 2 *shared 2/5 *"
    run top -n 1 --json
    is "and its JSON" "$(json locks.0.mode <<<"$out")" shared
    run metrics --region "$region"
    is "metrics counts shared locks" "$(value sqlock_shared_locks)" 2
    is "and the sharers" "$(value sqlock_sharers)" 3
    run doctor --json
    has "doctor takes none of them for a Spring service's" "$out" \
        "all 2 locks of region $region, 2 of them held, belong to sqlock"
    sq release "$one"
    run ls pool
    like "one leaves" "$out" "* shared 1/5 *"
    sq release "$two"
    sq release "$three"
    run show pool
    like "the number stays in a free row" "$out" \
        "*state      free*permits    0 of 5 taken*holder     -*"
    run show readers --json
    is "a reader's lock has none" "$(json permits <<<"$out")" 0
    is "and is nobody's" "$(json mode <<<"$out")" exclusive
}

waits_to_share() {
    sq ls --waiters queue | grep -q ', to share, for '
}
waiting() {
    local waiter
    hold queue --ttl 60
    "$SQLOCK" --table-prefix "$prefix" run --shared queue true 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true waits_to_share
    is "ls --waiters tells who waits to share" "$?" 0
    run show queue
    like "and show" "$out" "*waiting    $me *, to share, for * s*"
    let_go
    wait "$waiter"
    is "it gets the lock" "$?" 0
}

# A share is broken, then the other one at once, then all.
broken() {
    local one two three last
    one=$(take --slots 3 broken)
    two=$(take --slots 3 broken)
    three=$(take --slots 3 broken)
    run break broken --token "$(token_of broken 2)" --reason "it hangs"
    is "one share is broken" "$status" 0
    run show broken
    like "show tells who and why" "$out" \
        "*shared by  $me *broken by $me: it hangs, token *"
    run renew "$three"
    is "it is lost" "$status" 76
    run renew "$one"
    is "another is not" "$status" 0
    run acquire -n --slots 3 broken
    is "its permit is given to nobody yet" "$status" 75
    run break broken --token "$(token_of broken 0)" --reason "it hangs" --now
    is "another is broken at once" "$status" 0
    run release "$one"
    is "it is lost, too" "$status" 76
    one=$(take --slots 3 broken)
    is "its permit is given" "$?" 0
    last=$(sq show broken --json | json token)
    run release "$one"
    run break broken --token "$last" --reason "it hangs"
    is "the token of one who has left is nobody's" "$status" 1
    run renew "$two"
    is "so no share is broken by it" "$status" 0
    one=$(take --slots 3 broken)
    run break broken --token 1 --reason "it hangs"
    is "no share has the token" "$status" 1
    has "it is said what to do" "$err" "name one by its token"
    run break broken --reason "it hangs" \
        --client-id "$(sq show broken --json | json client_id)"
    is "all are broken by the lock's client id" "$status" 0
    run renew "$two"
    is "so is the third" "$status" 76
    run renew "$one"
    is "and the last" "$status" 76
    run show broken
    like "show tells it" "$out" "*held, but broken*broken by $me: it hangs*"
    run break broken --reason again --now \
        --client-id "$(sq show broken --json | json client_id)"
    is "the lock is freed" "$status" 0
}

changed() {
    local one two
    run permits pools 3
    is "permits of a lock that is not there" "$status" 1
    is_one_line "it is said"
    one=$(take --slots 1 pools)
    run acquire -n --slots 1 pools
    is "there is one" "$status" 75
    run permits pools 2 --json
    is "there are two now" "$status" 0
    is "JSON" "$(json <<<"$out")" "name:string permits:integer"
    two=$(take --slots 1 pools)
    is "who knows one has the other" "$?" 0
    run permits pools 4294967299
    is "a number that is too large" "$status" 64
    is_one_line "is said to be one"
    run permits pools -1
    is "a number below 0" "$status" 64
    run acquire -n --slots 3 pools
    is "there are two as before" "$status" 75
    run permits pools 1
    is "there is one again" "$status/$out$err" 0/
    run ls pools
    like "and both go on" "$out" "* shared 2/1 *"
    run permits pools 0
    is "none" "$status" 0
    run ls pools
    like "they are readers" "$out" "* shared 2 *"
    sq release "$one"
    sq release "$two"
    run permits "" 2
    is "an empty name" "$status" 64
    is_one_line "is said to be one"
}

# One that joins the others is a hand-over, although the row has the same
# CLIENT_ID and a later end, as after a renewal.
joined() {
    local one two
    one=$(take --shared joined)
    rm -f "$dir/top"
    sq top --json -d 3 -n 2 >"$dir/top" 2>"$dir/err" &
    helper "$!"
    until_true test -s "$dir/top"
    two=$(take --shared joined)
    wait "$!"
    out=$(tail -n 1 "$dir/top")
    is "top takes who joins for a hand-over" "$(json handovers <<<"$out")" 1
    is "and not for a renewal" "$(json renewals <<<"$out")" 0
    sq release "$one"
    sq release "$two"
}

is_expired() { # NAME
    [ "$(sq show "$1" --json | json state)" = expired ]
}
is_shared_by() { # NAME COUNT
    [ "$(sq show "$1" --json | json sharers)" = "$2" ]
}
# A row is expired when its last sharer is.
over() {
    local one
    take --ttl 1 --slots 2 over >/dev/null
    one=$(take --slots 2 over)
    until_true is_shared_by over 1
    is "who is dead is no sharer" "$?" 0
    run reap --older-than 0
    run renew "$one" --ttl 1
    is "and reap leaves the lock of the others" "$status" 0
    until_true is_expired over
    is "then the last one is over" "$?" 0
    run show over
    like "show tells who has not released it" "$out" \
        "*state      expired*shared by  $me *, expired*ended      expired, not released*"
    run metrics --region "$region"
    is "metrics counts it no more" \
        "$(value sqlock_shared_locks)/$(value sqlock_sharers)" 0/0
    run ls over
    like "and ls" "$out" "*over  expired *for bash $$: *"
    run reap --older-than 0
    run show over
    is "reap takes the row, and the number with it" "$status" 1
}

for one in $(databases); do
    use "$one" || continue
    shown
    waiting
    broken
    changed
    joined
    over
    use "$one" spring7 || continue
    run permits one 2
    is "spring7: there are no permits" "$status" 64
    is_one_line "spring7: it is said"
    has "spring7: with the reason" "$err" "layout of Spring's"
done
database=
skip_missing
done_testing
