#!/usr/bin/env bash
# list.sh: locks and waiters that `ls` and `show` print, the order and choice of
# locks in `ls`, and `top`, which prints them again and again.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty
export TERM=xterm

leases=()
take() { # NAME TTL [OPTION...]
    local name=$1 ttl=$2
    shift 2
    leases+=("$(sq "$@" acquire -n --ttl "$ttl" "$name" 2>>"$dir/err")")
}
names() { # OPTION...: of `ls`, in its order
    sq ls "$@" 2>"$dir/err" | awk 'NR > 1 { print $1 }' | paste -sd ' '
}
give_all() {
    local one
    for one in "${leases[@]}"; do
        sq release "$one" 2>/dev/null || sq --region "$region.2" release "$one"
    done
    leases=()
} 2>/dev/null
is_expired() { # NAME
    [ "$(sq show "$1" --json | json state)" = expired ]
}

chosen() {
    run run free_one true
    take beta 600
    take "alpha" 30
    take gamma 7500
    take al_ha 40
    take other 60 --region "$region.2"
    is "by name, free ones are not there" "$(names)" "al_ha alpha beta gamma"
    is "--all has them" "$(names --all --sort name)" \
        "al_ha alpha beta free_one gamma"
    is "--all alone, too" "$(names --all | wc -w)" 5
    is "--sort held: for longest first" "$(names --sort held)" \
        "beta alpha gamma al_ha"
    is "--sort ttl: least time left first" "$(names --sort ttl)" \
        "alpha al_ha beta gamma"
    is "--sort token: latest first" "$(names --sort token)" \
        "al_ha gamma alpha beta"
    is "--limit" "$(names --limit 2)" "al_ha alpha"
    is "--limit and --sort" "$(names --sort held --limit 1)" beta
    is "a pattern" "$(names 'al*')" "al_ha alpha"
    is "of one character" "$(names 'al?ha')" "al_ha alpha"
    is "LIKE's own characters mean themselves" "$(names 'al_ha')" al_ha
    is "and so do these" "$(names '%')" ""
    is "and those of the escape" "$(names '!al?ha')" ""
    is "a pattern is the whole name" "$(names 'alph')" ""
    is "a quote is no end of it" "$(names "a'b")" ""
    is "--all and a pattern" "$(names --all 'free*')" free_one
    run ls --regions --json
    has "--regions has those of others" "$out" "\"region\": \"$region.2\""
    has "and our own" "$out" "\"region\": \"$region\""
    run ls --regions other
    like "and a column for them" "$out" "*REGION*other*$region.2*"
    run ls --json beta
    is "JSON names the region of each" "$(json locks.0.region <<<"$out")" \
        "$region"
    is "JSON tells how long" "$(json locks.0.held_ms <<<"$out" |
        grep -c '^[0-9]*$')" 1
    run ls
    like "and ls in minutes how long to go" "$out" \
        "*beta  *held * [5-9]m[0-5][0-9]s *"
    like "or in hours" "$out" "*gamma  *held * 2h0[0-4]m *"
    run ls beta
    like "a holder is told by its note, then its command" "$out" \
        "*for bash $$: sqlock *acquire*beta, *@* *"
    out=$("$dir/pty" 80 "$SQLOCK" --table-prefix "$prefix" ls beta)
    like "which is what 80 columns show" "$out" "*for bash $$*"
    long=a-name-that-begins-as-the-other-one-does
    take "$long/1" 60
    take "$long/2" 60
    out=$("$dir/pty" 80 "$SQLOCK" --table-prefix "$prefix" ls "$long*")
    like "where names are whole as long as others can be cut" "$out" \
        "*$long/1 *…*$long/2 *"
    out=$(COLUMNS=60 sq ls "$long*")
    is "COLUMNS is the width elsewhere" "$(too_long 61 <<<"$out")" ""
    has "of names, too" "$out" "$long/2"
    give_all
    is "nothing is held" "$(names)" ""
    run ls --all --sort name free_one
    like "a free one has no time" "$out" "*free_one  free *-  *-  *"
}

states() {
    take short 1
    take long 60
    until_true is_expired short
    run ls
    like "an expired lock is shown" "$out" "*short  expired *"
    like "and how long it was held, not since when" "$out" \
        "*short  expired * [01].[0-9]s *"
    is "it is not among those that are held for longest" \
        "$(names --sort held)" "long short"
    is "nor with a limit" "$(names --sort held --limit 2)" "long short"
    is "nor in top" "$(sq top -n 1 | awk '/^NAME/ { n = NR + 1 }
        NR == n { print $1 }')" long
    out=$("$dir/pty" 120 "$SQLOCK" --table-prefix "$prefix" ls)
    has "red on a terminal" "$out" $'\033[31mexpired\033[0m'
    has "and a held one green" "$out" $'\033[32mheld\033[0m'
    run show short
    like "show tells that it was not released" "$out" \
        "*ended      expired, not released*"
    run show long
    like "and how long one is held" "$out" "*held for   *s*"
    like "and by whom" "$out" "*holder     *@* sqlock *acquire* long*"
    out=$("$dir/pty" 50 "$SQLOCK" --table-prefix "$prefix" show long)
    is "show breaks lines between words at a terminal's end" \
        "$(too_long 51 <<<"$out")" ""
    like "and indents what follows" "$out" $'*holder     *\n           [! ]*'
    run run given -- true --password=hunter2
    run show given
    like "show tells who has released a free one" "$out" \
        "*ended      released*last       *@* sqlock *run given -- true --password=...*\(true\)*"
    is "without a secret" "$(grep -c hunter2 <<<"$out")" 0
    client <<<"UPDATE ${prefix}LOCK SET HOLDER = NULL
        WHERE LOCK_NAME = 'given' AND REGION = '$region';"
    run show given
    like "or that it does not know" "$out" "*ended      unknown *last       unknown *"
    sq -q break long --token "$(sq show long --json | json token)" \
        --reason "a test" --now 2>/dev/null
    run show long
    like "show tells of a break" "$out" "*ended      broken*"
    like "and by whom, and why" "$out" "*broken by *: a test*"
    give_all
}

waiting() {
    local waiter=() command first
    hold queue --ttl 60
    for command in env nice true; do
        "$SQLOCK" --table-prefix "$prefix" run queue "$command" true \
            2>"$dir/$command.err" &
        waiter+=("$!")
        helper "$!"
        until_true so_many_wait "${#waiter[@]}"
        is "$command waits" "$?" 0
    done
    until_true grep -q "^sqlock: waiting, at place 2 of [23]: .queue. is held" \
        "$dir/nice.err"
    is "it tells its place and the holder" "$?" 0
    take idle 60
    is "for one lock" "$(sq ls --json idle | json locks.0.waiters)" 0
    is "top counts those of all" "$(sq top -n 1 --json | json waiting)" 3
    give_all
    first="*@* ${waiter[0]} *\(env\), for * s*"
    run ls --waiters queue
    like "--waiters: who, and for how long" "$out" "$first"
    like "in order" "$out" "*\(env\)*;*\(nice\)*;*\(true\)*"
    run ls --json queue
    like "JSON tells it, too" "$(json locks.0.waiter_names.0 <<<"$out")" \
        "$first"
    like "in the same order" "$(json locks.0.waiter_names.2 <<<"$out")" \
        "*\(true\), for *"
    run show queue
    like "and show" "$out" "*waiting    $first*\(nice\)*\(true\)*"
    kill -TERM "${waiter[0]}"
    wait "${waiter[0]}" 2>/dev/null
    until_true so_many_wait 2
    is "one that is ended waits no longer" "$?" 0
    run show queue
    like "the next is first" "$out" "*waiting    *\(nice\), for *\(true\)*"
    kill -TERM "${waiter[@]:1}"
    wait "${waiter[@]:1}" 2>/dev/null
    until_true so_many_wait 0
    is "nor do the others" "$?" 0
    until_true shows "*waiting    none*"
    is "show tells it" "$?" 0
    let_go
}
so_many_wait() { # COUNT
    [ "$(sq ls --json queue | json locks.0.waiters)" = "$1" ]
}
shows() { # PATTERN
    # shellcheck disable=SC2053 # it is a pattern
    [[ $(sq show queue) == $1 ]]
}

tops() {
    local top
    take first 60
    take second 60
    run top -n 2 -d 0.1
    is "top ends after its looks" "$status" 0
    is "each is a block of lines" "$(grep -c '^sqlock top' <<<"$out")" 2
    like "with what is held" "$out" "*held 2  expired 0  *first *held*"
    has "the first has no rates yet" "$out" "hand-overs -"
    has "the second has" "$out" "hand-overs 0.0/s  renewals 0.0/s  lost 0"
    is "no colour and no cursor in a pipe" "$(grep -c $'\033' <<<"$out")" 0
    run top -n 1 --json
    is "JSON: a line for each look" "$(json held <<<"$out")" 2
    is "with the locks" "$(json locks <<<"$out")" 2
    run top -n 2 -d 0.1 --json
    is "and seconds to the millisecond" \
        "$(grep -Ec '"seconds": [0-9]+\.[0-9]{1,3}[,}]' <<<"$out")" 2

    "$SQLOCK" --table-prefix "$prefix" top --json -d 0.2 >"$dir/top" \
        2>"$dir/err" &
    top=$!
    helper "$top"
    until_true test -s "$dir/top"
    sq renew "${leases[0]}"
    sq release "${leases[1]}"
    take second 60
    until_true grep -q '"renewals": 1' "$dir/top"
    is "a renewal is seen" "$?" 0
    until_true grep -q '"handovers": 1' "$dir/top"
    is "and a lock that changes hands" "$?" 0
    sq -q break first --client-id "$(sq show first --json | json client_id)" \
        --reason test 2>/dev/null
    until_true grep -q '"lost": 1' "$dir/top"
    is "and a lease that is lost" "$?" 0
    take broken 8
    until_true grep -q '"name": "broken", "state": "held"' "$dir/top"
    sq -q break broken --client-id "$(sq show broken --json | json client_id)" \
        --reason test 2>/dev/null
    is "a short lease is broken in time" "$?" 0
    until_true grep -q '"name": "broken", "state": "expired"' "$dir/top"
    is "a lease that is broken is lost once, and not again when it ends" \
        "$(sum_of lost)" 2
    is "a lock that was free changes hands when it is taken" \
        "$(sum_of handovers)" 2
    kill -TERM "$top"
    wait "$top"
    is "TERM ends it cleanly" "$?" 0

    sq --table-prefix "${prefix}gone_" -q init
    sq --table-prefix "${prefix}gone_" top -n 2 -d 2 >"$dir/gone" 2>"$dir/err" &
    top=$!
    helper "$top"
    until_true test -s "$dir/gone"
    stop "$top"
    client <<<"DROP VIEW ${prefix}gone_LOCK_NOW;
        DROP TABLE ${prefix}gone_LOCK;"
    kill -CONT "$top"
    wait "$top"
    is "-n tells in its status that the last look failed" "$?" 69

    out=$("$dir/pty" 80 -e "held 2" -s 'q' "$SQLOCK" \
        --table-prefix "$prefix" top)
    is "q quits" "$?" 0
    has "the screen of before comes back" "$out" $'\033[?1049l'
    has "and the cursor" "$out" $'\033[?25h'
    out=$(tr -d '\r' <<<"$out" | sed 's/\x1b\[[0-9?]*[a-zA-Z]//g')
    is "at most 80 columns" "$(too_long 80 <<<"$out")" ""
    out=$("$dir/pty" 80 -e "held 2" -s '^C' "$SQLOCK" \
        --table-prefix "$prefix" top)
    is "^C quits, too" "$?" 0
    SQLOCK_URL=sqlite:/nowhere/at/all.db run top
    is "no database" "$status" 64
    is_one_line "is said"
    give_all
}

sum_of() { # MEMBER: in all looks of $dir/top
    while read -r out; do json "$1" <<<"$out"; done <"$dir/top" |
        awk '{ sum += $1 } END { print sum }'
}

# While the server may have forgotten leases, top says for how long.
graces() {
    [ "$database" != sqlite ] || return 0
    client <<<"UPDATE ${prefix}LOCK_SERVER SET GRANTS_FROM = '2100-01-01';"
    run top -n 1
    like "top tells that nothing is granted" "$out" \
        "*waiting -  grants nothing for 2????????? s  hand-overs*"
    run top -n 1 --json
    is "also in JSON" "$(grep -c '"grace": 2[0-9]\{9\}[.,]' <<<"$out")" 1
    run metrics
    like "and metrics, in seconds" "$out" "*sqlock_grace_seconds 2?????????.???"
    run ls
    like "and a note of ls" "$err" "*grants nothing for another 2?????????.??? s"
    client <<<"UPDATE ${prefix}LOCK_SERVER SET GRANTS_FROM = SINCE;"
    run top -n 1
    is "and no more when it is over" "$(grep -c "grants" <<<"$out")" 0
}

for one in $(databases); do
    use "$one" || continue
    graces
    chosen
    states
    tops
    waiting
done

# Spring's layouts have no names: `ls` prints keys.
for one in $(databases); do
    for layout in spring7 spring6; do
        use "$one" "$layout" || continue
        database=$one/$layout
        [ "$layout" = spring7 ] || export SQLOCK_PEER_TTL=30
        take name 30
        is "ls has the key" "$(names)" "$(sq key name)"
        is "and a pattern finds it" "$(names "$(sq key name | cut -c 1-8)*")" \
            "$(sq key name)"
        is "where there is no queue, who waits is not known" \
            "$(sq ls --json | json locks.0.waiters)" null
        for order in held ttl token; do
            is "--sort $order" "$(names --sort "$order")" "$(sq key name)"
        done
        give_all
        is "released is gone" "$(names --all --sort name)" ""
        run show name
        is "and not told of" "$status" 1
        unset SQLOCK_PEER_TTL
    done
done
database=
skip_missing
done_testing
