#!/usr/bin/env bash
# commands.sh: init, ls, show, break, run and reap on every database and layout;
# and key.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

members='key:string name:NAME state:string holder:string client_id:string'
members+=' token:TOKEN acquired_at:string expires_at:string'
members+=' remaining_ms:integer held_ms:integer'
members+=' waiters:null waiter_names:null last_holder:null region:string'
members+=' mode:string permits:integer taken:integer sharers:integer'
members+=' sharer_names:array text:null ended:null'

init_commands() { # LAYOUT
    local other=spring7
    [ "$1" != spring7 ] || other=spring6
    run init --layout "$1"
    is "$1: init may be repeated" "$status" 0
    is "$1: init prints no data" "$out" ""
    run init --layout "$other"
    is "$1: init refuses another layout" "$status" 1
    is_one_line "$1: and says so"
    has "$1: and which it has" "$err" "with the layout $1, not $other"
    run init --layout "$1" --json
    is "$1: init --json" "$(json layout <<<"$out")" "$1"
    is "$1: init: it was there" "$(json created <<<"$out")" false
    has "$1: init: it says so" "$err" "the lock table was there"
    case $1:$err in
    spring7:*"Spring Integration before 7"*) ok "$1: init warns of old Springs" ;;
    spring7:*) not_ok "$1: init warns of old Springs" "$err" ;;
    *) is_one_line "$1: init warns of nothing that is not there" ;;
    esac

    run init --layout "$1" --longest-ttl 2m
    case $SQLOCK_URL,$1 in
    sqlite:*,* | *,spring*)
        is "$1: init --longest-ttl, without a row of the server" "$status" 64
        has "$1: says that there is none" "$err" "LOCK_SERVER"
        ;;
    *)
        is "$1: init --longest-ttl" "$status" 0
        is "$1: and leases become as short again" "$(client \
            <<<"SELECT LEAST_MS FROM ${prefix}LOCK_SERVER;")" 120000
        ;;
    esac
    run init --print --longest-ttl 2m
    is "$1: init --longest-ttl prints nothing" "$status" 64
    run init --print --layout "$1"
    is "$1: init --print" "$status" 0
    like "$1: prints SQL" "$out" "*CREATE TABLE*${prefix}LOCK*LOCK_KEY*"
    run init --print --layout "$1" --json
    like "$1: init --print --json" "$(json sql <<<"$out")" '*CREATE TABLE*'
}

look_commands() { # LAYOUT
    local expected name_type=null token_type=null token
    # Only sqlock's layout has names and waiters; the four columns of Spring 6
    # have no token.
    [ "$1" != sqlock ] || name_type=string
    [ "$1" = spring6 ] || token_type=integer
    expected=${members/NAME/$name_type}
    [ "$1" != sqlock ] ||
        expected=${expected/waiters:null waiter_names:null/waiters:integer waiter_names:array}
    expected=${expected/TOKEN/$token_type}
    [ "$1" = sqlock ] || expected=${expected/holder:string/holder:HOLDER}

    run ls --json
    is "$1: ls of nothing" "$(json locks <<<"$out")" 0
    is "$1: ls names the layout" "$(json layout <<<"$out")" "$1"
    is "$1: ls names the region" "$(json region <<<"$out")" "$region"
    run ls
    is "$1: ls of nothing prints the heads" \
        "$(tr -s ' ' <<<"$out")" "NAME STATE HELD FOR TTL WAITING HOLDER TOKEN"
    run show nothing
    is "$1: show of an unknown lock" "$status" 1
    is "$1: prints no data" "$out" ""
    is_one_line "$1: and says so"

    hold "a lock" --ttl 8
    run show "a lock" --json
    is "$1: show --json" "$status" 0
    token=$(json <<<"$out")
    [ "$1" = sqlock ] || token=$(sed 's/holder:[a-z]*/holder:HOLDER/' <<<"$token")
    is "$1: its members" "$token" "$expected"
    is "$1: its key" "$(json key <<<"$out")" "$(sq key "a lock")"
    is "$1: its state" "$(json state <<<"$out")" held
    client_id=$(json client_id <<<"$out")
    token=$(json token <<<"$out")
    like "$1: its client id" "$client_id" "????????-????-????-????-????????????"
    if [ "$1" = sqlock ]; then
        like "$1: its holder" "$(json holder <<<"$out")" "*sleep*"
        is "$1: its name" "$(json name <<<"$out")" "a lock"
    fi
    like "$1: its time" "$(json expires_at <<<"$out")" \
        "????-??-??T??:??:??.??????Z"
    is_now "$(json acquired_at <<<"$out")"
    is "$1: since when" "$?" 0
    run show "$(sq key "a lock")"
    like "$1: show by LOCK_KEY" "$out" "*state      held*"
    run ls --json
    is "$1: ls --json" "$(json locks.0.client_id <<<"$out")" "$client_id"
    run ls
    like "$1: ls" "$out" $'NAME*\n*held*s*'

    break_commands "$1" "$token" "$client_id"
}

break_commands() { # LAYOUT TOKEN CLIENT_ID
    local wrong=(--token 1) right=(--token "$2")
    if [ "$1" != sqlock ]; then
        wrong=(--client-id 00000000-0000-4000-8000-000000000000)
        right=(--client-id "$3")
    fi
    run break "a lock" "${wrong[@]}" --reason test
    is "$1: break with another's token" "$status" 1
    is_one_line "$1: and says so"
    is "$1: leaves the holder alone" \
        "$(sq show "a lock" --json | json client_id)" "$3"
    run break nothing "${right[@]}" --reason test
    is "$1: break of an unknown lock" "$status" 1
    run break "a lock" "${right[@]}" --reason test --json
    is "$1: break" "$status" 0
    is "$1: break --json" "$(json broken <<<"$out")" true
    run run -n "a lock" -- true
    is "$1: nobody is let in before the lease would have ended" "$status" 75
    ends
    is "$1: the old holder finds out" "$?" 76

    hold "another lock" --ttl 8
    right=(--token "$(sq show "another lock" --json | json token)")
    [ "$1" = sqlock ] || right=(--client-id
        "$(sq show "another lock" --json | json client_id)")
    run break "another lock" "${right[@]}" --reason test --now
    is "$1: break --now" "$status" 0
    like "$1: says that it is unsafe" "$err" "*may not have noticed yet*"
    run run -n "another lock" -- true
    is "$1: the lock is free at once" "$status" 0
    ends
    is "$1: and the old holder finds out" "$?" 76
}

run_command() { # LAYOUT
    local before after
    run run job -- sh -c 'echo "$SQLOCK_TOKEN $SQLOCK_KEY $SQLOCK_NAME" \
        "$SQLOCK_REGION"'
    is "$1: run" "$status" 0
    read -r before after <<<"$out"
    is "$1: the command knows its lock" "$after" "$(sq key job) job $region"
    like "$1: and its token" "$before" "1[0-9][0-9][0-9]*[0-9]"
    run run job -- sh -c 'echo "$SQLOCK_TOKEN"'
    if [ "$out" -gt "$before" ]; then
        ok "$1: tokens rise"
    else
        not_ok "$1: tokens rise" "$out after $before"
    fi
    run show job --json
    if [ "$1" = sqlock ]; then
        is "$1: the row is free" "$(json state <<<"$out")" free
        is "$1: show tells how its lease ended" "$(json ended <<<"$out")" \
            released
        is "$1: nobody holds it" "$(json client_id <<<"$out")" null
    else
        is "$1: the row is gone" "$status" 1
    fi
}

reap_command() { # LAYOUT
    hold survivor --ttl 20
    run reap --older-than 1d --json
    is "$1: reap leaves what is young" "$(json removed <<<"$out")" 0
    run reap --older-than 3650d
    is "the longest time is one" "$status" 0
    run reap --older-than 3651d
    is "a longer one is none" "$status" 64
    run reap --older-than 0
    like "$1: reap prints a number" "$out" "[0-9]*"
    run show survivor
    is "$1: reap leaves what is held" "$status" 0
    let_go
    is "$1: the holder was not disturbed" "$status" 143
    until_true reaps_all ||
        not_ok "$1: reap removes what is free" "$(sq ls --all)"
    ok "$1: reap removes what is free"
}
reaps_all() {
    sq reap --older-than 0 && [ "$(sq ls --all --json | json locks)" = 0 ]
}

for one in $(databases); do
    for layout in sqlock spring7 spring6; do
        use "$one" "$layout" || continue
        init_commands "$layout"
        look_commands "$layout"
        run_command "$layout"
        reap_command "$layout"
    done
done
database=
skip_missing

last_url=$SQLOCK_URL
unset SQLOCK_URL
run key foo
is "key" "$out" acbd18db-4cc2-385c-adef-654fccc4a4d8
run key foo --rule raw
is "key --rule raw" "$out" foo
run key foo --json --rule legacy
is "key --json" "$(json rule <<<"$out")" legacy
run key 'a "name"' --json
is "key --json of a name with quotes" "$(json name <<<"$out")" 'a "name"'
run init --print --url "${last_url%%:*}:"
like "init --print needs no server" "$out" '*CREATE TABLE*'
done_testing
