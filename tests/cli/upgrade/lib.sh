# lib.sh: what the scripts of this folder share.  Each is run by tests/run.sh,
# or by hand with SQLOCK naming the command and SQLOCK_TEST_*_URL the databases.
# shellcheck shell=bash
#
# A script sets `database`, exports SQLOCK_URL, and defines
#     query SQL               print what a statement gives
#     $past $expired          values of a time column, long ago and 10 s later

database='' past='' expired='' layout=''
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/support/script.sh"

# The URL of the database is that variable's.
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

# The script of sql/ for this test's table.
upgrade() {
    bash "$root/tests/tools/support/upgrade.sh" "$database" "$layout" "$prefix" \
        $((ttl * 1000)) >"$dir/shell.err" 2>&1
}

# A process that holds the lock "held", and renews it, until $dir/$layout.off is
# there; it leaves its token and its number.
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

# Add one to a number that only the lock guards, again and again.
count() { # TIMES
    local i
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2016 # for the inner shell
        sq run -t "$ttl" count -- bash -c 'n=$(<"$1"); sleep 0.02
            echo $((n + 1)) >"$1"' - "$dir/count" 2>>"$dir/count.err" ||
            return 1
    done
}

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
    echo 0 >"$dir/count"
    count 8 & counters+=($!)
    count 8 & counters+=($!)
    helper "${counters[@]}"
    sleep 0.2
    is "is upgraded" "$(status_of upgrade)" 0
    is "is the layout of sqlock then" "$(status_of sq init)" 0
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
    query "DROP TABLE ${prefix}LOCK" >/dev/null
}

from_spring6() {
    begin spring6 CREATED_DATE "$past"
    is "is upgraded" "$(status_of upgrade)" 0
    is "leaves a lease its length" "$(status_of sq run -n held -- true)" 75
    is "keeps its rows" "$(query "SELECT COUNT(*) FROM ${prefix}LOCK
        WHERE CLIENT_ID = 'gone' AND EXPIRED_AFTER > CREATED_DATE")" 1
    # The next holder finds the old one, which could not renew, gone.
    # shellcheck disable=SC2016 # for the inner shell
    is "lets nobody in beside the holder" "$(status_of sq run -w 30 held -- \
        bash -c '! kill -0 "$(<"$1.on")" 2>/dev/null' - "$dir/spring6")" 0
    wait "$holder"
    is "tells the holder of the loss" $? 76
    is "refuses a renewal that does not know the new column" \
        "$(query "UPDATE ${prefix}LOCK SET CREATED_DATE = $expired
            WHERE CLIENT_ID = 'gone'" 2>&1 >/dev/null | grep -c 'new layout')" 1
    is "refuses a claim that does not know it" \
        "$(status_of query "INSERT INTO ${prefix}LOCK (LOCK_KEY, REGION,
            CLIENT_ID, CREATED_DATE) VALUES ('k', 'DEFAULT', 'c', $past)" |
            sed 's/[1-9][0-9]*/refused/')" refused
    is "lets an expired lock be taken" "$(status_of sq run -n dead -- true)" 0
    query "DROP TABLE ${prefix}LOCK" >/dev/null
}

# Long enough for a renewal on a busy machine.
ttl=4
upgrades() {
    from_spring7
    from_spring6
    exit $status
}
