#!/usr/bin/env bash
# doctor.sh: doctor finds and reports what is wrong with a database; after
# --after-restore no lock is held, and tokens rise (F62).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Print the result of a check in $out, which is the JSON of doctor: of the first
# check of that name whose text contains PART; "none" without one.
result_of() { # CHECK [PART]
    local i
    for ((i = 0; i < $(json checks <<<"$out"); i++)); do
        if [ "$(json "checks.$i.check" <<<"$out")" = "$1" ] &&
            [[ $(json "checks.$i.found" <<<"$out") == *"${2-}"* ]]; then
            json "checks.$i.result" <<<"$out"
            return
        fi
    done
    echo none
}
members() { # the types of all checks' members, each once
    local i
    for ((i = 0; i < $(json checks <<<"$out"); i++)); do
        json "checks.$i" <<<"$out"
    done | sort -u | paste -sd '|'
}

# Check what doctor finds on a database without faults.  Commits on PostgreSQL's test
# server do not wait for the disk, unless SQLOCK_TEST_DURABLE is 1: that is a
# failure, and the exit status is 1.
found() { # DATABASE LAYOUT
    local expected=1 wakeups=full check
    { [ "$1" = postgres ] && [ "${SQLOCK_TEST_DURABLE:-}" != 1 ]; } || expected=0
    run doctor --json
    is "$2: doctor" "$status" "$expected"
    is "$2: its members" "$(json <<<"$out")" \
        "result:string region:string checks:array capabilities:object"
    expected=full
    [ "$2" = sqlock ] || expected=weaker
    is "$2: leases" "$(json capabilities.leases <<<"$out")" "$expected"
    for check in row_locks guards; do
        is "$2: $check" "$(json "capabilities.$check" <<<"$out")" full
    done
    [ "$2" = sqlock ] || wakeups=refused
    is "$2: wakeups" "$(json capabilities.wakeups <<<"$out")" "$wakeups"
    is "$2: those of checks" "$(members | tr '|' '\n' |
        sed 's/advice:.*/advice/' | sort -u)" \
        "check:string result:string found:string advice"
    is "$2: nothing else is said" "$err" ""
    for check in connection clock rights isolation peers; do
        is "$2: $check" "$(result_of "$check")" ok
    done
    [ "$1" = sqlite ] || for check in tls pooler failover timeouts; do
        is "$2: $check" "$(result_of "$check")" ok
    done
    expected=ok
    [ "$2" != spring6 ] || expected=warning
    is "$2: layout" "$(result_of layout)" "$expected"
    run ls --region sqlock-doctor --json
    is "$2: no lock of the doctor's is left" "$(json locks <<<"$out")" 0

    run doctor
    has "$2: as text" "$out" $'\nok       rights '
    is "$2: every line is a check, or advice, or what it gives" \
        "$(grep -vcE '^(ok      |warning |failure |gives |                      (  )?[^ ])' \
            <<<"$out")" 0
    has "$2: what it gives" "$out" "row locks full, guards full, wake-ups $wakeups"
}

durability() { # DATABASE
    [ "$1" = postgres ] && [ "${SQLOCK_TEST_DURABLE:-}" != 1 ] || return 0
    run doctor --json
    is "F61: durability" "$(result_of durability fsync)" failure
    is "the worst of it is told" "$(json result <<<"$out")" failure
}

# Settings of sqlock's own sessions, which come from the URL.
of_sessions() {
    local url=$SQLOCK_URL with
    case $url in
    *\?*) with="$url&options=" ;;
    *) with="$url?options=" ;;
    esac
    SQLOCK_URL="${with}-c%20synchronous_commit%3Doff" run doctor --json
    is "F61: synchronous_commit = off is raised for our sessions" \
        "$(result_of durability "synchronous_commit = on")" ok
    SQLOCK_URL="${with}-c%20default_transaction_read_only%3Don" run doctor --json
    is "F59: a server that is read-only" \
        "$(result_of failover default_transaction)" failure
    is "is a failure" "$status" 1
    SQLOCK_URL="${with}-c%20idle_session_timeout%3D5s" run doctor --json
    is "idle_session_timeout" "$(result_of timeouts idle_session)" warning
}

# The command sees this machine's clock 90.5 s ahead, by libfaketime: doctor
# warns and says by how much.
clocks() {
    local library
    library=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1')
    if [ -z "$library" ]; then
        skip "clock" "libfaketime is not installed"
        return
    fi
    # AddressSanitizer's runtime hangs when libfaketime is loaded, too.
    if ldd "$SQLOCK" | grep -q libasan; then
        skip "clock" "not with AddressSanitizer"
        return
    fi
    LD_PRELOAD=$library FAKETIME=+90.5s FAKETIME_DONT_FAKE_MONOTONIC=1 \
        run doctor --json
    is "a clock that is off" "$(result_of clock)" warning
    is "by how much" "$(result_of clock ' -90.')" warning
}

broken() { # DATABASE
    local code=69
    prefix=CLI_NONE_ run doctor --json
    is "no table: a failure" "$status" 1
    is "of the layout" "$(result_of layout CLI_NONE_LOCK)" failure
    is "nothing more is looked at" "$(result_of rights)" none
    is "nor is it known what it gives" "$(json capabilities <<<"$out")" null
    if [ "$1" = sqlite ]; then
        SQLOCK_URL=sqlite:/nowhere/at/all run doctor
        code=64
    else
        SQLOCK_URL=$(sed 's,@[^/]*,@127.0.0.1:1,' <<<"$SQLOCK_URL") run doctor
    fi
    is "no database" "$status" "$code"
    like "is told" "$out" "failure  connection *"
    is "by this alone" "$err" ""
    case $SQLOCK_URL in
    *://*:*@*)
        SQLOCK_URL=$(sed 's,:[^:@/]*@,:c4n4ry@,' <<<"$SQLOCK_URL") run doctor
        is "a wrong password" "$status" 77
        is "is not shown" "$(grep -c c4n4ry <<<"$out$err")" 0
        ;;
    esac
}

after_restore() { # LAYOUT
    local before after waiter
    hold kept -t 8
    before=$(sq show kept --json | json token)
    if [ "$1" = sqlock ]; then # a process that died while it waited
        "$SQLOCK" --table-prefix "$prefix" run kept -- true 2>"$dir/waits" &
        waiter=$!
        until_true one_waits
        kill -KILL "$waiter"
        wait "$waiter" 2>/dev/null
    fi
    run doctor --after-restore
    is "$1: has to be confirmed" "$status" 64
    is_one_line "$1: this is said"
    is "$1: nothing was done" "$(sq show kept --json | json state)" held
    run doctor --after-restore --yes --json
    is "$1: after a restore" "$status" 0
    is "$1: JSON" "$(json <<<"$out")" "rows:integer"
    run show kept --json
    if [ "$1" = sqlock ]; then
        is "$1: nobody holds it" "$(json state <<<"$out")" free
        after=$(json token <<<"$out")
        is "$1: the token has risen" "$((after > before))" 1
        is "$1: nobody waits" "$(json waiters <<<"$out")" 0
        run run -n kept -- true
        is "$1: it can be had at once" "$status" 0
    else
        is "$1: nobody holds it" "$status" 1
    fi
    ends
    is "$1: the holder of before is told" "$?" 76
    out=$(sq run kept -- sh -c 'echo $SQLOCK_TOKEN')
    [ "$1" = spring6 ] ||
        is "$1: the next one has a greater token" "$((out > before))" 1
    run doctor --yes
    is "$1: --yes alone is refused" "$status" 64
}

one_waits() {
    [ "$(sq show kept --json | json waiters)" = 1 ]
}

# --after-restore changes all rows of a large table, which takes longer than the
# default limit for a statement, 1.25 s, and succeeds.  Here, a trigger that
# sleeps for 3 s stands for the many rows.
slow_restore() {
    prefix=CLI_DOCTOR_slow_
    run -q init
    sq run kept -- true
    client <<'EOF'
CREATE OR REPLACE FUNCTION cli_doctor_slow() RETURNS trigger LANGUAGE plpgsql
AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END';
DROP TRIGGER IF EXISTS slow ON CLI_DOCTOR_slow_LOCK;
CREATE TRIGGER slow BEFORE UPDATE ON CLI_DOCTOR_slow_LOCK
    FOR EACH STATEMENT EXECUTE FUNCTION cli_doctor_slow();
EOF
    is "a slow table" "$?" 0
    run doctor --after-restore --yes
    is "a slow table: after a restore" "$status" 0
    is "a slow table: its row was changed" "$out" 1
    client <<<'DROP FUNCTION cli_doctor_slow CASCADE'
    is "a slow table: the trigger is gone" "$?" 0
}

# A doctor of an earlier version was killed, and has left what it tried, which
# had the same name always.
socket_left() {
    local left prefix=CLI_DOCTOR_sqlock_
    left=$(dirname "${SQLOCK_URL#sqlite:}")/.sqlock-0d0c70b
    python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1])' "$left"
    run doctor
    has "a socket is left: a release wakes" "$out" "wakes the next waiter"
    is "a socket is left: it is removed" "$([ -e "$left" ] && echo there)" ""
}

for one in $(databases); do
    for layout in sqlock spring7 spring6; do
        # This script has a table of its own, since --after-restore frees all
        # locks of a table.
        use "$one" "$layout" || continue
        prefix=CLI_DOCTOR_${layout}_
        run -q init --layout "$layout"
        found "$one" "$layout"
        after_restore "$layout"
    done
    durability "$one"
    [ "$one" != sqlite ] || socket_left
    broken "$one"
    [ "$one" = sqlite ] || clocks
    [ "$one" != postgres ] || of_sessions
    [ "$one" != postgres ] || slow_restore
done
database=
skip_missing
done_testing
