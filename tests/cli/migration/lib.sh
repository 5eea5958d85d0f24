# lib.sh: several deployers start at once; one is killed half way, or stopped
# for longer than its lease: each migration is applied once and in order, and
# another deployer completes the work.  Tests the C example and the script
# migrate.sh.  Each database has its own script, because they mostly wait.
# shellcheck shell=bash

# shellcheck source=tests/tools/support/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/support/script.sh"
# shellcheck source=tests/tools/support/client.sh
. tests/tools/support/client.sh
PATH=$(dirname "$SQLOCK"):$PATH
deployer=$build/bin/examples/migration
script=src/examples/migration/migrate.sh

forget() { # what was applied, for the next ones
    local table
    for table in migration_log migration_file migrated_customer migrated_note migrated_step; do
        ask "DROP TABLE IF EXISTS $table"
    done
}

# TTL of a deployer's lease in seconds.  The others wait so long for a deployer
# that was killed; a busy machine can renew and connect within it.
TTL=8

# Start a deployer in the background: `start c FOLDER` or `start script FOLDER`.
# Set $pid to its number; its output is in $dir/out.$started.
started=0
start() {
    started=$((started + 1))
    if [ "$1" = c ]; then
        "$deployer" "$url" "$2" $TTL >"$dir/out.$started" 2>&1 9>&- &
    else
        SQLOCK_URL=$url MIGRATE_TTL=$TTL "$script" "$2" "${client[@]}" \
            >"$dir/out.$started" 2>&1 9>&- &
    fi
    pid=$!
    helper "$pid"
}

# Print the token of the last one who had the lock.
token_of_turn() {
    ask "SELECT FENCE FROM INT_LOCK WHERE LOCK_NAME = 'migration'"
}

# Print how many migrations are recorded as done.
count_done() {
    ask "SELECT COUNT(*) FROM migration_log WHERE state = 2"
}

# Wait until a deployer has begun the step with the gate.  Return 1 after 60 s.
until_begun() {
    local end=$((SECONDS + 60))
    until [ "$(ask "SELECT state FROM migration_log WHERE version = $GATE" \
        2>/dev/null)" = 1 ]; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
}

# Write migrations that the database itself refuses out of order, or a second
# time: a constraint compares each step's number with the count of steps before
# it.  The step GATE waits at a gate, which is a lock of the database, and may
# run again.
STEPS=7
GATE=4
write_steps() { # FOLDER
    local i file
    mkdir -p "$1"
    cat >"$1/001_steps.sql" <<END
CREATE TABLE IF NOT EXISTS migrated_step (n INTEGER PRIMARY KEY,
    seen INTEGER NOT NULL, CHECK (seen = CASE WHEN n < $GATE THEN n - 2
    ELSE n - 3 END));
END
    for ((i = 2; i <= STEPS; i++)); do
        file=$(printf '%s/%03d_step.sql' "$1" "$i")
        if [ "$i" = "$GATE" ]; then
            echo "-- outside a transaction"
            wait_for_gate
        else
            echo "-- in a transaction"
            echo "INSERT INTO migrated_step (n, seen)"
            echo "    SELECT $i, COUNT(*) FROM migrated_step;"
        fi >"$file"
    done
}
wait_for_gate() {
    case $kind in
    postgres)
        cat <<END
DO \$\$ BEGIN PERFORM pg_advisory_lock(4711); END \$\$;
DO \$\$ BEGIN PERFORM pg_advisory_unlock(4711); END \$\$;
END
        ;;
    mysql)
        echo "DO GET_LOCK('migration gate', 600);"
        echo "DO RELEASE_LOCK('migration gate');"
        ;;
    sqlite)
        # The write waits while the file is locked.  Without a file the gate is
        # open.
        cat <<END
ATTACH '$dir/gate.db' AS gate;
CREATE TABLE IF NOT EXISTS gate.passed (n INTEGER);
DETACH gate;
END
        ;;
    esac
}
# Shut the gate by a session that keeps it locked until open_gate; or keep a
# lock that such a STATEMENT takes.
shut_gate() { # [STATEMENT]
    local lock keeper=("${client[@]}")
    case $kind in
    postgres) lock="SELECT pg_advisory_lock(4711);" ;;
    mysql) lock="SELECT GET_LOCK('migration gate', 600);" ;;
    sqlite)
        lock="BEGIN EXCLUSIVE;"
        keeper=(sqlite3 "$dir/gate.db")
        ;;
    esac
    lock=${1:-$lock}
    rm -f "$dir/gate" "$dir/gate.out" # which must not be the last one's
    mkfifo "$dir/gate"
    "${keeper[@]}" <"$dir/gate" >"$dir/gate.out" 2>&1 &
    helper "$!"
    exec 9>"$dir/gate"
    echo "$lock SELECT 'shut';" >&9
    until grep -qs shut "$dir/gate.out"; do
        sleep 0.02
    done
}
open_gate() {
    exec 9>&-
}
# Print how many steps were made, and the last of them.
steps_made() {
    ask 'SELECT COUNT(*), MAX(n) FROM migrated_step' | tr '\t' '|'
}
ALL_STEPS="$((STEPS - 2))|$STEPS"

five_at_once() { # HOW
    local pids=() bad=0 i
    forget
    for i in 1 2 3 4 5; do
        start "$1" "src/examples/migration/$kind"
        pids+=("$pid")
    done
    for i in "${pids[@]}"; do
        wait "$i" || bad=$((bad + 1))
    done
    is "$1: five at once: none fails" "$bad" 0
    is "$1: all are applied" "$(count_done)" 4
    is "$1: once" \
        "$(cat "$dir"/out.* | grep ': applied' | sort | uniq -d)" ""
    is "$1: the data is there" \
        "$(ask "SELECT COUNT(*) FROM migrated_customer WHERE mail LIKE '%@example.org'")" 2
    is "$1: the tokens are those of the turns" \
        "$(ask "SELECT COUNT(*) FROM migration_log WHERE token <= 0")" 0
    rm -f "$dir"/out.*
}

# The first of five deployers is killed at the gate: the others complete the
# work.
killed() { # HOW
    local pids=() i first bad=0
    forget
    write_steps "$dir/steps"
    shut_gate
    start "$1" "$dir/steps"
    first=$pid
    until_begun
    for i in 1 2 3 4; do
        start "$1" "$dir/steps"
        pids+=("$pid")
    done
    kill -KILL "$first"
    wait "$first" 2>/dev/null
    is "$1: one is killed half way" "$(count_done)" $((GATE - 1))
    open_gate
    for i in "${pids[@]}"; do
        wait "$i" || bad=$((bad + 1))
    done
    is "$1: the others do not fail" "$bad" 0
    is "$1: they have ended the work" "$(count_done)" "$STEPS"
    is "$1: each step was made once and in order" "$(steps_made)" "$ALL_STEPS"
    is "$1: by two deployers" \
        "$(ask 'SELECT COUNT(DISTINCT token) FROM migration_log')" 2
    rm -f "$dir"/out.*
}

# A deployer is stopped at the gate, its lease is broken, and another one
# starts.  When the first goes on, it writes nothing, and reports the loss of
# its lease.
stopped() {
    local first second number
    forget
    write_steps "$dir/steps"
    shut_gate
    start c "$dir/steps"
    first=$pid
    number=$started
    until_begun
    kill -STOP "$first"
    SQLOCK_URL=$url "$SQLOCK" -q break migration --now --reason test --token \
        "$(token_of_turn)"
    is "stopped: its lease is ended" "$?" 0
    start c "$dir/steps"
    second=$pid
    open_gate
    kill -CONT "$first"
    wait "$first"
    is "stopped: it finds its lease lost" "$?" 1
    is "stopped: and has written nothing since" \
        "$(grep -c ': applied' "$dir/out.$number")" $((GATE - 1))
    wait "$second"
    is "stopped: its successor has ended the work" "$?" 0
    is "stopped: all steps are recorded" "$(count_done)" "$STEPS"
    is "stopped: each was made once and in order" "$(steps_made)" "$ALL_STEPS"
    rm -f "$dir"/out.*
}

children_of() { # PID: its children, and theirs
    local child
    for child in $(ps -o pid= --ppid "$1"); do
        echo "$child"
        children_of "$child"
    done
}
until_over() { # PID...
    local end=$((SECONDS + 60)) pid
    for pid in "$@"; do
        while is_alive "$pid"; do
            [ "$SECONDS" -lt "$end" ] || return 1
            sleep 0.02
        done
    done
}

# sqlock, the supervisor and the script below them are stopped at the gate, the
# lease is broken, and another script starts.  Then the first script and its
# client go on, while neither sqlock nor the supervisor can end them: only the
# database keeps the client from writing.
stopped_script() {
    local first second number supervisor rest
    forget
    write_steps "$dir/steps"
    shut_gate
    start script "$dir/steps"
    first=$pid
    number=$started
    until_begun
    supervisor=$(ps -e -o pid= -o ppid= -o comm= |
        awk -v sqlock="$first" '$3 == "lock-watcher" && $2 == sqlock { w = $1 }
            $3 == "lock-supervisor" { of[$2] = $1 }
            END { print of[w] }')
    mapfile -t rest < <(children_of "$supervisor")
    kill -STOP "$first" "$supervisor"
    kill -STOP "${rest[@]}" 2>/dev/null
    helper "$supervisor" "${rest[@]}"
    SQLOCK_URL=$url "$SQLOCK" -q break migration --now --reason test --token \
        "$(token_of_turn)"
    is "stopped script: its lease is ended" "$?" 0
    start script "$dir/steps"
    second=$pid
    open_gate
    kill -CONT "${rest[@]}" 2>/dev/null
    until_over "${rest[@]}"
    is "stopped script: its client ends by itself" "$?" 0
    is "stopped script: and has written nothing since" \
        "$(grep -c ': applied' "$dir/out.$number")" $((GATE - 1))
    kill -CONT "$supervisor" "$first"
    wait "$first"
    is "stopped script: it finds its lease lost" "$?" 76
    wait "$second"
    is "stopped script: its successor has ended the work" "$?" 0
    is "stopped script: all steps are recorded" "$(count_done)" "$STEPS"
    is "stopped script: each was made once and in order" "$(steps_made)" \
        "$ALL_STEPS"
    rm -f "$dir"/out.*
}

# The script runs on with the token of a lease that is over, while the lock is
# free: it fails, and writes nothing.
late() {
    local inside=$dir/late
    forget
    ask "CREATE TABLE migrated_note (n INTEGER)"
    mkdir -p "$inside"
    printf '%s\n' "-- in a transaction" \
        "INSERT INTO migrated_note (n) VALUES (1);" >"$inside/001_inside.sql"
    run_late() {
        MIGRATE_KIND=$kind SQLOCK_REGION=DEFAULT \
            SQLOCK_KEY=$("$SQLOCK" key migration) \
            SQLOCK_TOKEN=$(token_of_turn) \
            "$script" "$inside" "${client[@]}" >"$dir/out.0" 2>&1
    }
    run_late
    is "late script: it fails" $(($? != 0)) 1
    is "late script: nothing is recorded" "$(count_done)" 0
    is "late script: nor done" "$(ask "SELECT COUNT(*) FROM migrated_note")" 0
    ask "INSERT INTO migration_log VALUES (1, '001_inside.sql', 2, 1)"
    run_late
    is "late script: it fails to record a checksum" $(($? != 0)) 1
    is "late script: which is not there" \
        "$(ask "SELECT COUNT(*) FROM migration_file")" 0
    rm -f "$dir"/out.*
}

# The lease is broken while its deployer waits for the session of the one before:
# it takes another turn.
waiting() {
    local session broken end=$((SECONDS + 60))
    case $kind in
    postgres) session="SELECT pg_advisory_lock(hashtext('migration'));" ;;
    mysql) session="SELECT GET_LOCK(LEFT(CONCAT('migration.', DATABASE()), 64), 600);" ;;
    sqlite) return ;;
    esac
    forget
    shut_gate "$session"
    start c "src/examples/migration/$kind"
    until broken=$(token_of_turn) && SQLOCK_URL=$url "$SQLOCK" -q break \
        migration --now --reason test --token "$broken" 2>/dev/null ||
        [ "$SECONDS" -ge "$end" ]; do
        sleep 0.02
    done
    while [ "$(token_of_turn)" = "$broken" ] && is_alive "$pid" &&
        [ "$SECONDS" -lt "$end" ]; do
        sleep 0.02
    done
    is "broken in the wait for a session: it takes another turn" \
        "$([ "$(token_of_turn)" = "$broken" ] || echo yes)" yes
    open_gate
    wait "$pid"
    is "broken in the wait for a session: and ends well" "$?" 0
    is "broken in the wait for a session: all is applied" "$(count_done)" 4
    rm -f "$dir"/out.*
}

# The lease ends while a migration runs, since nothing renews it under a guard:
# its deployer takes another turn, beside one who waits for the lock.
slow() {
    local TTL=1 first slow
    forget
    mkdir -p "$dir/slow"
    case $kind in
    postgres) slow="SELECT pg_sleep(3);" ;;
    mysql) slow="DO SLEEP(3);" ;;
    sqlite) slow="WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1
        FROM n WHERE i < 20000000) SELECT max(i) FROM n;" ;;
    esac
    printf '%s\n' "-- in a transaction" "$slow" | tee "$dir/slow/001_slow.sql" \
        >"$dir/slow/003_slow.sql"
    echo "CREATE TABLE migrated_note (a INTEGER);" >"$dir/slow/002_note.sql"
    start c "$dir/slow"
    first=$pid
    start c "$dir/slow"
    wait "$first"
    is "slow migrations: the first deployer ends well" "$?" 0
    wait "$pid"
    is "slow migrations: and the second" "$?" 0
    is "slow migrations: all are applied" "$(count_done)" 3
    is "slow migrations: once" \
        "$(cat "$dir"/out.* | grep -c ': applied')" 3
    rm -f "$dir"/out.*
}

# The files are refused for that reason, in each way to look at them.
is_refused() { # WHAT REASON HOW...
    local what=$1 reason=$2 how rest
    shift 2
    for how in "$@"; do
        # shellcheck disable=SC2086 # none, or a word
        said $how "$dir/files" >/dev/null
        is "$how $what is refused" "$rest: $(tail -n 1 "$dir/out.files")" \
            "1: migrate.sh: $reason"
    done
}

# Files that cannot be applied are refused, and none is told to be applied that
# is not.  Called by files().
unfit() {
    local rest
    ln -s nowhere "$dir/files/004_gone.sql"
    is_refused "a file that cannot be read" \
        "$dir/files/004_gone.sql: it cannot be read" "" status
    rm "$dir/files/004_gone.sql"
    case $kind in
    sqlite) rest=.exit ;;
    *) rest='\q' ;;
    esac
    printf '%s\n' "-- in a transaction" "$rest" >"$dir/files/004_ends.sql"
    said "$dir/files" >/dev/null
    is "one that ends its client is not applied" \
        "$rest: $(cat "$dir/out.files")" \
        "1: migrate.sh: 004_ends.sql: it is not recorded as applied"
    rm "$dir/files/004_ends.sql"
    is "and not recorded" "$(count_done)" 3
    echo "-- another" >"$dir/files/003_more.sql"
    is_refused "a number that comes twice" \
        "003_more.sql: its number comes twice" "" --accept status
    rm "$dir/files/003_more.sql"
    printf 'SELECT 1;\n-- the end' >"$dir/files/004_comment.sql"
    printf '%s\nSELECT 1;\n-- the end' "-- outside a transaction" \
        >"$dir/files/005_comment.sql"
    said "$dir/files" >/dev/null
    is "the last line may be a comment" "$rest: $(grep : "$dir/out.files" |
        paste -sd ' ')" "0: 004_comment.sql: applied 005_comment.sql: applied"
    said status "$dir/files" >/dev/null
    is "behind which it is recorded" \
        "$rest: $(tail -n 1 "$dir/out.files")" "0: 005_comment.sql: applied"
}

# The records of applied files, and the output of `status` about them.
files() {
    local rest
    forget
    mkdir -p "$dir/files" "$dir/empty"
    echo "CREATE TABLE migrated_note (a INTEGER);" >"$dir/files/001_note.sql"
    echo "CREATE TABLE migrated_step (a INTEGER);" >"$dir/files/002_step.sql"
    said() { # ARGUMENT...: of the script; its exit status is in $rest
        SQLOCK_URL=$url MIGRATE_TTL=$TTL "$script" "$@" "${client[@]}" \
            >"$dir/out.files" 2>&1 9>&-
        rest=$?
        cat "$dir/out.files"
    }
    said status "$dir/files" >/dev/null
    is "status: before anything is applied" "$rest: $(paste -sd ' ' "$dir/out.files")" \
        "1: 001_note.sql: pending 002_step.sql: pending"
    is "status: makes no table" \
        "$(ask 'SELECT COUNT(*) FROM migration_log' | wc -l)" 0
    said "$dir/files" >/dev/null
    is "files: all is applied" "$rest" 0
    said status "$dir/files" >/dev/null
    is "status: all is applied" "$rest: $(paste -sd ' ' "$dir/out.files")" \
        "0: 001_note.sql: applied 002_step.sql: applied"
    echo "-- changed" >>"$dir/files/001_note.sql"
    said status "$dir/files" >/dev/null
    is "status: a changed file" "$rest: $(head -n 1 "$dir/out.files")" \
        "1: 001_note.sql: changed since it was applied"
    echo "DROP TABLE migrated_note;" >"$dir/files/003_drop.sql"
    said "$dir/files" >/dev/null
    is "a changed file is refused" "$rest: $(cat "$dir/out.files")" \
        "1: migrate.sh: 001_note.sql: it has changed since it was applied; --accept takes it as it is"
    is "and nothing behind it is applied" "$(count_done)" 2
    said --accept "$dir/files" >/dev/null
    is "--accept takes it" "$rest: $(paste -sd ' ' "$dir/out.files")" \
        "0: 001_note.sql: accepted as it is now 003_drop.sql: applied"
    said "$dir/files" >/dev/null
    is "and then it is as ever" "$rest: $(cat "$dir/out.files")" "0: "
    ask "UPDATE migration_log SET state = 1 WHERE version = 2"
    said status "$dir/files" >/dev/null
    is "status: one that was begun" "$(sed -n 2p "$dir/out.files")" \
        "002_step.sql: begun by $(id -un)@$(uname -n), not done"
    echo "DROP TABLE migrated_step; CREATE TABLE migrated_step (a INTEGER);" \
        >"$dir/files/002_step.sql"
    MIGRATE_DEPLOYER=somebody@else said "$dir/files" >/dev/null
    is "one that another has begun" "$(head -n 1 "$dir/out.files")" \
        "002_step.sql: begun by $(id -un)@$(uname -n) and not done, running it again"
    ask "UPDATE migration_log SET state = 1 WHERE version = 2"
    MIGRATE_DEPLOYER=somebody@else said "$dir/files" >/dev/null
    is "one that we have begun ourselves" "$(head -n 1 "$dir/out.files")" \
        "002_step.sql: begun before and not done, running it again"
    ask "DELETE FROM migration_file"
    said "$dir/files" >/dev/null
    is "files that were applied without a checksum are taken as they are" \
        "$rest: $(cat "$dir/out.files")" "0: "
    is "and have one now" "$(ask 'SELECT COUNT(*) FROM migration_file')" 3
    unfit
    said "$dir/empty" >/dev/null
    is "an empty folder is said to be one" "$rest: $(cat "$dir/out.files")" \
        "1: migrate.sh: $dir/empty: there is no file NNN_name.sql in it"
    said "$dir/nowhere" >/dev/null
    is "and one that is not there" "$rest: $(cat "$dir/out.files")" \
        "1: migrate.sh: $dir/nowhere: there is no such folder"
    said --nonsense "$dir/files" >/dev/null
    is "an option that there is not" "$rest" 64
    rm -f "$dir"/out.*
}

mistakes() {
    forget
    mkdir -p "$dir/wrong" "$dir/none"
    echo "CREATE TABLE migrated_note (a INTEGER);" >"$dir/wrong/001_good.sql"
    echo "NONSENSE;" >"$dir/wrong/002_bad.sql"
    echo "CREATE TABLE migrated_step (a INTEGER);" >"$dir/wrong/003_good.sql"
    start c "$dir/wrong"
    wait "$pid"
    is "a wrong migration: exit status" "$?" 1
    is "a wrong migration: what comes before is applied" "$(count_done)" 1
    is "a wrong migration: it is named" \
        "$(grep -c '^migration: 002_bad.sql: not applied' "$dir/out.$started")" 1
    start script "$dir/wrong"
    wait "$pid"
    is "the script fails, too" $(($? != 0)) 1
    is "and applies nothing behind it" "$(count_done)" 1
    start c "$dir/none"
    wait "$pid"
    is "no migrations: exit status" "$?" 1
    printf 'SELECT 1;\0NONSENSE;\n' >"$dir/none/001_nul.sql"
    start c "$dir/none"
    wait "$pid"
    is "a file with a NUL, of which only a part would be read" "$?" 1
    rm "$dir/none/001_nul.sql"
    cp "$dir/wrong/001_good.sql" "$dir/none/001_one.sql"
    cp "$dir/wrong/001_good.sql" "$dir/none/001_two.sql"
    start c "$dir/none"
    wait "$pid"
    is "a number that comes twice: exit status" "$?" 1
    rm -f "$dir"/out.*
}

migrations_on() { # VARIABLE
    local how
    url=SQLOCK_TEST_$1_URL
    url=${!url:-}
    if [ -z "$url" ]; then
        echo "skip - $1: there is no such database here"
        exit 0
    fi
    # The tables have fixed names: use a SQLite file of this script's own.
    [ "$1" != SQLITE ] || url=sqlite:$dir/shop.db
    use_client "$url"
    about="$kind: "
    if ! command -v "${client[0]}" >/dev/null; then
        echo "skip - $1: there is no ${client[0]} here"
        exit 0
    fi
    SQLOCK_URL=$url "$SQLOCK" -q init
    for how in c script; do
        five_at_once "$how"
        killed "$how"
    done
    stopped
    stopped_script
    late
    waiting
    slow
    files
    mistakes
    forget
    [ "$status" -eq 0 ]
}
