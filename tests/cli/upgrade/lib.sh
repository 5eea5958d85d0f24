# lib.sh: functions that the scripts of this folder share.  tests/run.sh runs
# each script.  By hand, SQLOCK may name the command, and SQLOCK_TEST_*_URL the
# databases.
# shellcheck shell=bash
#
# A script sets `database`, exports SQLOCK_URL, and defines
#     query SQL               run a statement and print its result
#     $past $expired          values of a time column, long ago and 10 s later

database='' past='' expired='' layout=''
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/support/script.sh"

# Export VARIABLE, the URL of the database, as SQLOCK_URL; skip all tests if it
# is not set.
needs() { # VARIABLE
    [ -n "${!1:-}" ] || skip_all "$database: $1 is not set"
    export SQLOCK_URL=${!1}
}

sq() {
    "$SQLOCK" --table-prefix "$prefix" --peer-ttl "${ttl}s" "$@"
}

status_of() { # COMMAND...
    "$@" >"$dir/out" 2>"$dir/status.err"
    echo $?
}

await() { # FILE
    local end=$((SECONDS + 60))
    until [ -e "$1" ] || [ "$SECONDS" -ge "$end" ]; do
        sleep 0.05
    done
    [ -e "$1" ]
}

# Run the upgrade script of sql/ on the table of this test.
upgrade() {
    upgrade_with $((ttl * 1000))
}
upgrade_with() { # TTL_MS [on]
    bash "$root/tests/tools/support/upgrade.sh" "$database" "$layout" "$prefix" \
        "$@" >"$dir/shell.err" 2>&1
}

# Run the script by a client that goes on after an error: where it cannot do all,
# it does nothing, and says so.
changes_nothing() { # WHAT TTL_MS
    upgrade_with "$2" on
    is "$1: changes nothing" "$(status_of grep 'nothing was changed' \
        "$dir/shell.err")" 0
}

# Drop the tables of this test; not each one has been made on each database.
drop_tables() {
    local table
    for table in LOCK LOCK_SERVER LOCK_MARK; do
        query "DROP TABLE IF EXISTS ${prefix}$table" >/dev/null 2>&1
    done
}

# Without the tables a crash would not be noticed.
refuses_fast() {
    [ "$database" = postgres ] || return 0
    is "takes no fast locks" \
        "$(status_of sq --url "$SQLOCK_URL?durability=fast" run -n job \
            -- true)" 64
    is "as a message says" "$(grep -c 'LOCK_MARK' "$dir/status.err")" 1
}

# Without the mark, which the script adds alone, too.
needs_mark() {
    [ "$database" = postgres ] || return 0
    query "DROP TABLE ${prefix}LOCK_MARK" >/dev/null
    is "is not used without the mark" "$(status_of sq run -n job -- true)" 69
    is "as a message says, too" \
        "$(grep -c 'upgrade-server.sql' "$dir/status.err")" 1
    is "gets it" "$(status_of upgrade_with '')" 0
    is "and takes fast locks" \
        "$(status_of sq --url "$SQLOCK_URL?durability=fast" run -n job \
            -- true)" 0
    is "as doctor says" "$(sq --url "$SQLOCK_URL?durability=fast" doctor \
        2>/dev/null | grep -c 'do not wait for the disk')" 1
}

# A table of before: nothing is asked about the server until the script has run.
without_server() {
    local column
    layout=server about="$database: without a table of the server: "
    prefix=UP${$}_server_
    is "is made" "$(status_of sq init)" 0
    query "DROP TABLE ${prefix}LOCK_SERVER" >/dev/null
    is "has locks" "$(status_of sq run -n job -- true)" 0
    is "is told by doctor" \
        "$(sq doctor 2>/dev/null | grep -c 'upgrade-server.sql')" 1
    is "has nothing to break" \
        "$(status_of sq break --grace --reason moved)" 64
    refuses_fast
    is "gets one" "$(status_of upgrade_with '')" 0
    is "which doctor finds" \
        "$(sq doctor 2>/dev/null | grep -c 'upgrade-server.sql')" 0
    is "grants as before" "$(status_of sq run -n job -- true)" 0
    query "UPDATE ${prefix}LOCK_SERVER SET EPOCH = 'another'" >/dev/null
    is "grants nothing on another server" \
        "$(status_of sq run -n job -- true)" 75
    is "as ls says" "$(sq ls 2>&1 | grep -c 'grants nothing')" 1
    is "and metrics" "$(sq metrics | grep -c '^sqlock_grace_seconds [1-9]')" 1
    is "until an operator lets it" \
        "$(status_of sq break --grace --reason moved)" 0
    is "and grants then" "$(status_of sq run -n job -- true)" 0
    is "which keeps why" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK_SERVER
        WHERE NOTE LIKE '%: moved'")" 1
    is "once" "$(status_of sq break --grace --reason moved)" 1
    for column in ALLOWED_MS LEAST_MS CHANGED; do
        query "ALTER TABLE ${prefix}LOCK_SERVER DROP COLUMN $column" >/dev/null
    done
    query "UPDATE ${prefix}LOCK_SERVER SET LONGEST_MS = 70000" >/dev/null
    is "is not used without the newer columns" \
        "$(status_of sq run -n job -- true)" 69
    is "as a message says" "$(grep -c 'upgrade-server.sql' "$dir/status.err")" 1
    is "gets them" "$(status_of upgrade_with '')" 0
    is "which allow as long leases as before" \
        "$(query "SELECT ALLOWED_MS FROM ${prefix}LOCK_SERVER")" 70000
    is "and are not lowered by reap" \
        "$(query "SELECT LEAST_MS FROM ${prefix}LOCK_SERVER")" 70000
    query "UPDATE ${prefix}LOCK_SERVER SET LEAST_MS = 60000" >/dev/null
    is "and may be added again" "$(status_of upgrade_with '')" 0
    is "to no effect" \
        "$(query "SELECT LEAST_MS FROM ${prefix}LOCK_SERVER")" 60000
    is "and grants then, too" "$(status_of sq run -n job -- true)" 0
    needs_mark
    query "DROP VIEW ${prefix}LOCK_NOW" >/dev/null
    drop_tables
}

# Start a process, $holder, that holds and renews the lock "held" until
# $dir/$layout.off exists.  It writes its token to $dir/$layout.token and then
# the number of its command to $dir/$layout.on.  Wait for that file.
hold() {
    # shellcheck disable=SC2016 # for the inner shell
    sq run -t "$ttl" held -- bash -c 'echo "$SQLOCK_TOKEN" >"$1.token"
        echo $$ >"$1.pid"; mv "$1.pid" "$1.on"
        until [ -e "$1.off" ]; do sleep 0.05; done' - "$dir/$layout" \
        2>"$dir/hold.err" &
    holder=$!
    helper "$holder"
    await "$dir/$layout.on"
}

# Add one to the number in $dir/count, which only the lock guards, TIMES times.
# Return 1 if a run fails.
count() { # TIMES
    local i
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2016 # for the inner shell
        sq run -t "$ttl" count -- bash -c 'n=$(<"$1"); sleep 0.02
            echo $((n + 1)) >"$1"' - "$dir/count" 2>>"$dir/count.err" ||
            return 1
    done
}

# Make a table of that layout, with a row of VALUES for the lock "dead", whose
# lease is over, and a holder of the lock "held".
begin() { # LAYOUT COLUMNS VALUES
    layout=$1 about="$database: $1: "
    prefix=UP${$}_${layout}_
    sq init --layout "$layout" >/dev/null 2>&1 || {
        is "the table is made" no yes
        exit 1
    }
    query "INSERT INTO ${prefix}LOCK (LOCK_KEY, REGION, CLIENT_ID, $2)
        VALUES ('$(sq key dead)', 'DEFAULT', 'gone', $3)" >/dev/null
    hold
}

from_spring7() {
    local counters=() pid done=yes
    begin spring7 'CREATED_DATE, EXPIRED_AFTER' "$past, $expired"
    layout=spring6
    changes_nothing "the script for four columns" $((ttl * 1000))
    layout=spring7
    is "has five columns as before" "$(query "SELECT COUNT(*) FROM
        ${prefix}LOCK WHERE CLIENT_ID = 'gone' AND EXPIRED_AFTER = $expired")" 1
    echo 0 >"$dir/count"
    count 8 & counters+=($!)
    count 8 & counters+=($!)
    helper "${counters[@]}"
    sleep 0.2
    is "is upgraded" "$(status_of upgrade)" 0
    is "is the layout of sqlock then" "$(status_of sq init)" 0
    changes_nothing "a second time" $((ttl * 1000))
    is "keeps its rows" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK
        WHERE CLIENT_ID = 'gone'")" 1
    for pid in "${counters[@]}"; do
        wait "$pid" || done=no
    done
    is "is used meanwhile" "$done" yes
    is "is used meanwhile by one at a time" "$(cat "$dir/count")" 16
    sleep "$((ttl + 1))"
    is "leaves the lock to its holder, who renews it" \
        "$(status_of sq run -n held -- true)" 75
    touch "$dir/spring7.off"
    wait "$holder"
    is "does not disturb the holder" $? 0
    # shellcheck disable=SC2016 # for the inner shell
    sq run -n held -- bash -c 'echo "$SQLOCK_TOKEN"' >"$dir/token" \
        2>"$dir/status.err"
    is "goes on with greater tokens" "$(($(<"$dir/token") > \
        $(<"$dir/spring7.token")))" 1
    is "lets an expired lock be taken" "$(status_of sq run -n dead -- true)" 0
    drop_tables
}

from_spring6() {
    begin spring6 CREATED_DATE "$past"
    changes_nothing "without the TTL" ''
    is "without the TTL: still has the layout" \
        "$(status_of sq init --layout spring6)" 0
    is "without the TTL: leaves the lock to its holder" \
        "$(status_of sq run -n held -- true)" 75
    layout=spring7
    changes_nothing "the script for five columns" $((ttl * 1000))
    layout=spring6
    is "is upgraded" "$(status_of upgrade)" 0
    changes_nothing "a second time" $((ttl * 1000))
    is "leaves a lease its length" "$(status_of sq run -n held -- true)" 75
    is "keeps its rows" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK
        WHERE CLIENT_ID = 'gone' AND EXPIRED_AFTER > CREATED_DATE")" 1
    # The old holder could not renew its lease: its command has ended when the
    # next holder's begins.
    # shellcheck disable=SC2016 # for the inner shell
    is "lets nobody in beside the holder" "$(status_of sq run -w 30 held -- \
        bash -c '! kill -0 "$(<"$1.on")" 2>/dev/null' - "$dir/spring6")" 0
    wait "$holder"
    is "tells the holder of the loss" $? 76
    is "refuses a renewal that does not know the new column" \
        "$(query "UPDATE ${prefix}LOCK SET CREATED_DATE = $expired
            WHERE CLIENT_ID = 'gone'" 2>&1 >/dev/null | grep -c 'new layout')" 1
    is "refuses a claim that does not know it" \
        "$(query "INSERT INTO ${prefix}LOCK (LOCK_KEY, REGION,
            CLIENT_ID, CREATED_DATE) VALUES ('k', 'DEFAULT', 'c', $past)" \
            2>&1 >/dev/null | grep -c 'new layout')" 1
    is "lets an expired lock be taken" "$(status_of sq run -n dead -- true)" 0
    shares
    drop_tables
}

await_waiter() {
    local end=$((SECONDS + 60))
    until [ "$(query "SELECT COUNT(*) FROM ${prefix}LOCK
            WHERE QUEUE IS NOT NULL")" = 1 ] || [ "$SECONDS" -ge "$end" ]; do
        sleep 0.05
    done
}

# Of two who share a lock, the one whose lease is shorter leaves while somebody
# waits: the row's end stays, as if by a program of before.
shares() {
    local longer shorter waiter
    longer=$(sq acquire --slots 2 --ttl 60 pool 2>>"$dir/status.err")
    shorter=$(sq acquire --slots 2 --ttl 30 pool 2>>"$dir/status.err")
    "$SQLOCK" --table-prefix "$prefix" --peer-ttl "${ttl}s" \
        run -w 60 pool -- true 2>"$dir/waiter.err" &
    waiter=$!
    helper "$waiter"
    await_waiter
    is "lets one leave who shares a lock" "$(status_of sq release "$shorter")" 0
    for _ in 1 2; do
        is "lets the number of permits be changed, or left" \
            "$(status_of sq permits pool 3)" 0
    done
    is "lets the other one leave" "$(status_of sq release "$longer")" 0
    wait "$waiter"
    is "then lets in who waits" $? 0
}

# A table of an earlier sqlock, which lacks COLUMNs, is refused with the name of the
# script that adds them, while a lock is held in it.
from_earlier() { # LAYOUT COLUMN...
    local column
    layout=$1 about="$database: $1: "
    prefix=UP${$}_${layout}_
    sq init >/dev/null 2>&1
    hold
    query "DROP VIEW ${prefix}LOCK_NOW" >/dev/null
    for column in "${@:2}"; do
        query "ALTER TABLE ${prefix}LOCK DROP COLUMN $column" >/dev/null
    done
    is "is not opened" "$(status_of sq run -n key -- true)" 69
    is "is said to need the script" \
        "$(grep -c "upgrade-$layout.sql" "$dir/status.err")" 1
    is "is upgraded" "$(status_of upgrade)" 0
    is "is the layout of sqlock then" "$(status_of sq init)" 0
    changes_nothing "a second time" ''
    is "leaves the lock to its holder" "$(status_of sq run -n held -- true)" 75
    is "lets a leader publish" \
        "$(status_of sq lead -n --publish here service -- true)" 0
    touch "$dir/$layout.off"
    wait "$holder"
    is "does not disturb the holder" $? 0
    drop_tables
}

# A table of before has no view: doctor says so, and a script makes it, while a
# lock is held.
without_view() {
    local ttl=20 # several commands in a row keep SQLite's file locked
    layout=now about="$database: without the view: "
    prefix=UP${$}_now_
    is "is made" "$(status_of sq init)" 0
    hold
    is "which init does" "$(query "SELECT HOLDER LIKE '% sqlock %held%'
        FROM ${prefix}LOCK_NOW WHERE NAME = 'held'" | grep -cE '^(1|t)$')" 1
    query "DROP VIEW ${prefix}LOCK_NOW" >/dev/null
    is "has locks" "$(status_of sq run -n job -- true)" 0
    is "init finds nothing amiss" "$(status_of sq init)" 0
    is "doctor says so" \
        "$(sq doctor 2>/dev/null | grep -c '^ok       view .*there is no view')" 1
    is "and names the script" "$(sq doctor 2>/dev/null | grep -c 'now.sql')" 1
    is "gets one" "$(status_of upgrade_with '')" 0
    is "and may get it again" "$(status_of upgrade_with '')" 0
    is "which doctor finds" \
        "$(sq doctor 2>/dev/null | grep -c '^ok       view .*shows')" 1
    is "and which has the lock" \
        "$(query "SELECT COUNT(*) FROM ${prefix}LOCK_NOW")" 1
    touch "$dir/now.off"
    wait "$holder"
    is "does not disturb the holder" $? 0
    is "has no lock then" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK_NOW")" 0
    query "DROP VIEW ${prefix}LOCK_NOW" >/dev/null
    drop_tables
}

# The TTL in seconds, long enough for a renewal on a busy machine.
ttl=4
upgrades() {
    from_spring7
    from_spring6
    from_earlier queue QUEUE SHARERS LEADER
    from_earlier leader LEADER
    without_view
    exit $status
}
