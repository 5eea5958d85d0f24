#!/usr/bin/env bash
# acquire.sh: `sqlock acquire`, for a holder that is not a child of sqlock, such
# as a script: the script takes a lock and then, by the id of the lease, renews
# it, guards changes by it and releases it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
preload granted
preload silent

taken() { # WHAT OPTION...: the id is left in $lease
    local what=$1
    shift
    run acquire "$@"
    lease=$out
    is "$what" "$status" 0
}

by_id() { # LAYOUT
    local token client
    taken "$1: acquire" --ttl 20.125 script
    like "$1: the id is one word" "$lease" "????????-*:*[0-9]:20125:*"
    is "$1: and one line" "$(wc -l <<<"$lease")" 1
    run show script --json
    is "$1: the lock is held when the command has ended" \
        "$(json state <<<"$out")" held
    client=$(json client_id <<<"$out")
    is "$1: by the client id of the lease" "${lease%%:*}" "$client"
    run acquire -n script
    is "$1: nobody else gets it" "$status/$out" "75/"
    is_one_line "$1: and it is said by whom it is held"
    run renew "$lease" --ttl 40 --json
    token=$(json remaining_ms <<<"$out")
    is "$1: renew: exit status" "$status" 0
    [ "$token" -gt 20125 ] && [ "$token" -le 40000 ]
    is "$1: renew --ttl: the time left" "$?" 0
    run renew "$lease"
    is "$1: renew prints nothing" "$status/$out/$err" "0//"
    token=$(sq show script --json | json remaining_ms)
    [ "$token" -le 20125 ]
    is "$1: without --ttl it is that of the id" "$?" 0
    run release "$lease"
    is "$1: release" "$status/$out/$err" "0//"
    run run -n script true
    is "$1: then the lock is free" "$status" 0
    run release "$lease"
    is "$1: release again: lost" "$status" 76
    is_one_line "$1: release again: it is said"
    run renew "$lease"
    is "$1: renew afterwards: lost" "$status" 76
    is_one_line "$1: renew afterwards: it is said"

    run acquire --json script
    is "$1: acquire --json" "$(json <<<"$out")" \
        "lease:string name:string region:string key:string token:integer client_id:string"
    is "$1: its key" "$(json key <<<"$out")" "$(sq key script)"
    run release "$(json lease <<<"$out")" --json
    is "$1: release --json" "$(json released <<<"$out")" true
}

ran_out() {
    taken "a lease of a second" --ttl 1 short
    until_true is_expired short
    run renew "$lease"
    is "a lease that has run out is not renewed" "$status" 76
    has "and it is said" "$err" "expired"
    run release "$lease"
    is "its release tells that, too" "$status" 76
    has "in its own words" "$err" "had expired before the release"
    taken "another one of a second" --ttl 1 short
    until_true is_expired short
    run run -n short true
    is "the next one gets the lock" "$status" 0
    run release "$lease"
    is "and the first one is told that it lost it" "$status" 76
}
is_expired() { # NAME
    [ "$(sq show "$1" --json | json state)" = expired ]
}

# A signal that comes with the grant, also to the helper, leaves nothing held.
told_at_the_grant() {
    local options token
    run run told true
    for options in "--for $$" ""; do
        token=$(sq show told --json | json token)
        # shellcheck disable=SC2086 # none, or two words
        LD_PRELOAD=$dir/granted.so sq acquire $options --ttl 1h told \
            >"$dir/out" 2>"$dir/err"
        is "acquire $options: it is told to end as it gets the lock" \
            "$?/$(cat "$dir/out")" 143/
        [ "$(sq show told --json | json token)" -gt "$token" ]
        is "acquire $options: to which it was granted" "$?" 0
        run run -n told true
        is "acquire $options: the lock is free at once" "$status" 0
    done
}

# Tell whether the lease of the lock `long` ends later than $expires_at.
is_renewed() {
    [ "$(sq show long --json | json expires_at)" != "$expires_at" ]
}

# acquire --for PROCESS: a helper process renews the lease until PROCESS ends,
# and then releases the lock.  The helper also ends when the lease is released,
# and releases the lock when it gets TERM.
for_process() {
    local process helper expires_at
    sleep 600 &
    process=$!
    helper "$process"
    taken "acquire --for" --ttl 4 --for "$process" long
    is "nothing is said" "$err" ""
    for _ in 1 2; do
        expires_at=$(sq show long --json | json expires_at)
        until_true is_renewed
    done
    is "the lease ends later and later" "$?" 0
    run show long --json
    is "the lease is renewed behind the command's back" \
        "$(json state <<<"$out")" held
    is "it is the same" "$(json client_id <<<"$out")" "${lease%%:*}"
    helper=$(helper_of long)
    is "by a process of that name" "$(cat "/proc/$helper/comm")" lock-helper
    is "which shows no URL" "$(tr -d ' \0' <"/proc/$helper/cmdline")" \
        lock-helper
    kill -KILL "$process"
    wait "$process" 2>/dev/null
    run run -w 30 long true
    is "the process ends: the lock is free" "$status" 0
    until_true is_gone "$helper"
    is "its helper has given it back" "$?" 0

    sleep 600 &
    process=$!
    helper "$process"
    taken "acquire --for once more" --for "$process" --ttl 4 long
    helper=$(helper_of long)
    run release "$lease"
    is "release before the process's end" "$status" 0
    until_true is_gone "$helper"
    is "the helper ends with the lease" "$?" 0
    taken "acquire a third time" --for "$process" --ttl 20 long
    kill -TERM "$(helper_of long)"
    run run -w 15 long true
    is "a helper that is told to end gives the lock back" "$status" 0
    kill "$process"

    run acquire --for $$ -n --url sqlite:/nowhere/at/all long
    is "an error of the helper's is the command's" "$status" 64
    is_one_line "and said once"

    hold busy
    out=$(trap '' CHLD
        sq acquire --for $$ -n busy 2>"$dir/err")
    is "where SIGCHLD is ignored, the helper's status is known" "$?/$out" 75/
    let_go
    lease=$(trap '' CHLD INT HUP PIPE
        sq acquire --for $$ busy <&- 2>&-)
    is "and with signals ignored and files closed it is acquired" \
        "$?/$(sq show busy --json | json state)" 0/held
    run release "$lease"
    is "and released" "$status" 0
}
helper_of() { # NAME: HOLDER is "user@host pid command line (note)"
    sq show "$1" --json | json holder | awk '{ print $2 }'
}

in_a_script() {
    out=$(sh -c 'lease=$("$1" --table-prefix "$2" acquire -w 60 --for $$ body) ||
            exit 1
        "$1" --table-prefix "$2" show body --json
        "$1" --table-prefix "$2" release "$lease"' \
        sh "$SQLOCK" "$prefix" 2>"$dir/err")
    is "the body of a script" "$?/$(json state <<<"$out")" "0/held"
    sh -c '"$1" --table-prefix "$2" acquire -w 60 --for $$ body >/dev/null
        exit 3' sh "$SQLOCK" "$prefix"
    is "a script that ends without releasing" "$?" 3
    run run -w 20 body true
    is "leaves the lock to the next one" "$status" 0
    out=$(sq acquire body >/dev/full 2>"$dir/err")
    is "an id that cannot be told" "$?" 74
    run run -n body true
    is "is no lease" "$status" 0
    (
        exec 3> >(:)
        wait "$!"
        sq acquire body >&3
    ) 2>"$dir/err"
    is "an id whose reader has ended" "$?" 74
    run run -n body true
    is "is no lease either" "$status" 0
    "$SQLOCK" --table-prefix "$prefix" acquire --for $$ body >/dev/full \
        2>"$dir/err"
    is "nor is it with a helper" "$?" 74
    run run -w 20 body true
    is "which gives the lock back" "$status" 0
    (
        trap '' TERM
        sq acquire --for $$ body >/dev/full
    ) 2>"$dir/err"
    is "nor where TERM is ignored" "$?" 74
    run run -w 20 body true
    is "so that the helper hears it anyway" "$status" 0
}

# A command that waits for the reader of its output is killed: nobody has got
# the id, so the helper gives the lock back.
untold() {
    local command
    mkfifo "$dir/full.$database"
    exec 8<>"$dir/full.$database"
    dd if=/dev/zero of="$dir/full.$database" oflag=nonblock bs=4096 2>/dev/null
    "$SQLOCK" --table-prefix "$prefix" acquire --for $$ untold >&8 \
        2>"$dir/err" &
    command=$!
    helper "$command"
    until_true is_held untold
    is "its pipe is full: the lock is held" "$?" 0
    kill -KILL "$command"
    wait "$command" 2>/dev/null
    run run -w 20 untold true
    is "its id was told to nobody: the lock is given back" "$status" 0
    exec 8>&-
}

# The process of --for ends before the lock is free.
ends_before() {
    local process waiter
    hold late
    sleep 600 &
    process=$!
    helper "$process"
    "$SQLOCK" --table-prefix "$prefix" acquire --for "$process" late \
        >"$dir/out" 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true so_many_wait 1 late
    is "it waits for a process" "$?" 0
    kill -KILL "$process"
    wait "$process" 2>/dev/null
    until_true so_many_wait 0 late
    is "the process ends: so does the wait" "$?" 0
    let_go
    wait "$waiter"
    is "it has printed nothing" "$?/$(cat "$dir/out")" 64/
    has "but why" "$(cat "$dir/err")" "--for $process: No such process"
}

# A waiting `acquire --for` is killed, then the holder releases the lock: no
# process that the waiter has started takes the lock.  A statement that it has
# sent may take it for a TTL of 30 s.
waiting() {
    local waiter
    hold patience
    "$SQLOCK" --table-prefix "$prefix" -v acquire --for $$ patience \
        >"$dir/out" 2>"$dir/waiting" &
    waiter=$!
    helper "$waiter"
    until_true grep -q waiting "$dir/waiting"
    is "a waiter waits" "$?" 0
    kill -KILL "$waiter"
    wait "$waiter" 2>/dev/null
    let_go
    run run -w 60 patience true
    is "a waiter that is killed gets no lock" "$status" 0
    is "nor has it printed one" "$(cat "$dir/out")" ""
}

# A signal that ends a waiter, or it and its helper, which are one process group,
# takes its ticket out of the queue.
told_while_waiting() {
    local waiter child
    hold told-waiter
    setsid "$SQLOCK" --table-prefix "$prefix" acquire --for $$ told-waiter \
        >"$dir/out" 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true so_many_wait 1
    is "with --for it waits" "$?" 0
    child=$(pgrep -P "$waiter")
    helper "$child"
    kill -TERM -- "-$waiter"
    wait "$waiter" 2>/dev/null
    is "it ends by the signal to its group" "$?" 143
    until_true is_gone "$child"
    so_many_wait 0
    is "the helper has left the queue" "$?" 0

    "$SQLOCK" --table-prefix "$prefix" acquire --for $$ told-waiter \
        >"$dir/out" 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true so_many_wait 1
    kill -TERM "$(pgrep -P "$waiter")"
    wait "$waiter" 2>/dev/null
    is "a helper's signal is told by the exit status" "$?" 143

    "$SQLOCK" --table-prefix "$prefix" acquire told-waiter \
        >"$dir/out" 2>"$dir/err" &
    waiter=$!
    helper "$waiter"
    until_true so_many_wait 1
    is "without --for it waits" "$?" 0
    kill -TERM "$waiter"
    wait "$waiter" 2>/dev/null
    is "it ends by the signal" "$?" 143
    so_many_wait 0
    is "and has left the queue" "$?" 0
    let_go
}
so_many_wait() { # COUNT [NAME]
    [ "$(sq show "${2:-told-waiter}" --json | json waiters)" = "$1" ]
}

# A signal ends a waiter whose statement never ends.
silent() {
    local options waiter child
    for options in "" "--for $$"; do
        rm -f "$dir/err"
        # shellcheck disable=SC2086 # none, or two words
        LD_PRELOAD=$dir/silent.so "$SQLOCK" --table-prefix "$prefix" acquire \
            $options mute >"$dir/out" 2>"$dir/err" &
        waiter=$!
        helper "$waiter"
        until_true grep -q silent "$dir/err"
        is "acquire $options: the disk does not answer" "$?" 0
        child=$(pgrep -P "$waiter")
        is "acquire $options: with a helper or without" \
            "${child:+helper}" "${options:+helper}"
        [ -z "$child" ] || helper "$child"
        kill -TERM "$waiter"
        holder=$waiter
        ends
        is "acquire $options: it ends by the signal" "$?/$(cat "$dir/out")" 143/
        [ -z "$child" ] || until_true is_gone "$child"
        is "acquire $options: and so does its helper" "$?" 0
    done
}

guarded() { # LAYOUT
    local table=cli_guarded_$$
    taken "$1: a lease to guard" --ttl 60 guarded
    run guard-sql "$lease"
    is "$1: guard-sql" "$status" 0
    is "$1: is one statement" "$(grep -c ';$' <<<"$out")" 1
    echo "DROP TABLE IF EXISTS $table; CREATE TABLE $table (n integer);" | client
    { echo "BEGIN;"; sq guard-sql "$lease"
        echo "INSERT INTO $table VALUES (1); COMMIT;"; } | client >/dev/null
    is "$1: a transaction with the guard" "$?" 0
    is "$1: is committed" "$(echo "SELECT count(*) FROM $table;" | client)" 1
    is "$1: and the lease is as it was" \
        "$(sq show guarded --json | json client_id)" "${lease%%:*}"
    run release "$lease"
    { echo "BEGIN;"; sq guard-sql "$lease"
        echo "INSERT INTO $table VALUES (2); COMMIT;"; } | client >/dev/null
    isnt_zero "$1: after the release it is an error" "$?"
    has "$1: that says why" "$(cat "$dir/err")" "sqlock: the lease is over"
    is "$1: and nothing is committed" \
        "$(echo "SELECT count(*) FROM $table;" | client)" 1
    taken "$1: a short lease" --ttl 1 guarded
    until_true is_expired guarded
    { echo "BEGIN;"; sq guard-sql "$lease"
        echo "INSERT INTO $table VALUES (3); COMMIT;"; } | client >/dev/null
    isnt_zero "$1: nor is a lease that has run out good" "$?"
    is "$1: to commit anything" \
        "$(echo "SELECT count(*) FROM $table;" | client)" 1
    commits_nothing "$1: without an id" ""
    commits_nothing "$1: with one that is none" nonsense
    commits_nothing "$1: with one too many" "$lease" "$lease"
    commits_nothing "$1: with an unknown option" "$lease" --nonsense
    commits_nothing "$1: without a database" "$lease" --url sqlite:/no/where
    if [ "$1" = sqlock ]; then
        taken "$1: a share" --shared --ttl 60 shared
        commits_nothing "$1: for a share" "$lease"
        run release "$lease"
    fi
    run guard-sql nonsense --json
    is "$1: guard-sql --json fails without a word of JSON" "$status/$out" 64/
    echo "DROP TABLE $table;" | client
    run run -w 20 guarded sh -c 'echo "$SQLOCK_LEASE $SQLOCK_CLIENT_ID"'
    is "$1: the command of run has an id, too" "${out%%:*}" "${out##* }"
    run guard-sql "${out%% *}"
    is "$1: that can be guarded" "$status" 0
    run guard-sql "a:1:30000:it's"
    has "$1: quotes are doubled" "$out" "'it''s'"
    run guard-sql 'a:1:30000:back\slash'
    is "$1: a backslash is refused" "$status" 64
    is_one_line "$1: and it is said"
}
# Where there is no guard, a program that does not look at the exit status of
# guard-sql must not commit without one.
commits_nothing() { # WHAT ARGUMENT...
    local what="$1 there is no guard"
    shift
    run guard-sql "$@"
    isnt_zero "$what" "$status"
    is "$what: it is said once" "$(grep -c '^sqlock: ' "$dir/err")" 1
    { echo "BEGIN;"; sq guard-sql "$@" 2>/dev/null
        echo "INSERT INTO $table VALUES (4); COMMIT;"; } | client >/dev/null
    isnt_zero "$what: a transaction fails" "$?"
    is "$what: it commits nothing" \
        "$(echo "SELECT count(*) FROM $table;" | client)" 1
}
isnt_zero() { # WHAT GOT
    if [ "$2" -ne 0 ]; then
        ok "$1"
    else
        not_ok "$1" "it is 0"
    fi
}

# A lease expires while a transaction that guards it is open: nobody else gets
# the lock before the commit.
until_commit() {
    local pid
    taken "a lease that runs out under its transaction" --ttl 8 open
    mkfifo "$dir/sql.$database"
    client <"$dir/sql.$database" >"$dir/out" &
    pid=$!
    helper "$pid"
    exec 9>"$dir/sql.$database"
    { echo "BEGIN;"; sq guard-sql "$lease"; echo "SELECT 'here';"; } >&9
    until_true grep -q here "$dir/out"
    is "its client is in a transaction" "$?" 0
    run run -w 12 open true
    isnt_zero "the lock does not pass on" "$status"
    echo "COMMIT;" >&9
    exec 9>&-
    wait "$pid"
    run run -w 20 open true
    is "before the commit" "$status" 0
}

for one in $(databases); do
    for layout in sqlock spring7 spring6; do
        use "$one" "$layout" || continue
        [ "$layout" != spring6 ] || export SQLOCK_PEER_TTL=30
        by_id "$layout"
        guarded "$layout"
        unset SQLOCK_PEER_TTL
    done
    use "$one" || continue
    ran_out
    for_process
    told_at_the_grant
    told_while_waiting
    in_a_script
    untold
    ends_before
    waiting
    case $one in
    # until_commit waits for output that MySQL's client prints only at its end.
    postgres | sqlite) until_commit ;;
    esac
    [ "$one" != sqlite ] || silent
done
database=
skip_missing
done_testing
