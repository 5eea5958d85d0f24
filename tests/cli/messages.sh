#!/usr/bin/env bash
# messages.sh: messages name the true cause: a file that may not grow, a closed
# output, a configuration file that may not be read, a lease that an operator has
# broken, a driver that is missing.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# With a limit on the size of files SQLite cannot make the file beside the
# database that processes share.
small_files() {
    local word url=sqlite:$dir/small.db
    "$SQLOCK" -q --url "$url" init
    for word in "ls" "run -n small -- true" "doctor"; do
        # shellcheck disable=SC2086 # words
        out=$(
            trap '' XFSZ
            ulimit -f 16
            "$SQLOCK" --url "$url" $word 2>"$dir/err"
        )
        is "small files: $word: exit status" "$?" 71
        out+=$(cat "$dir/err")
        has "small files: $word: it is said" "$out" "File too large"
        is "small files: $word: no word of a server" \
            "$(grep -c -e "in time" -e "server runs" <<<"$out")" 0
    done
}

# A file that another program keeps to itself is said to be locked, once, and no
# holder of the lock is made up.
locked_file() {
    local word url=sqlite:$dir/locked.db
    "$SQLOCK" -q --url "$url" init
    "$SQLOCK" -q --url "$url" init --once
    mkfifo "$dir/end"
    "$dir/hold_sqlite" "$dir/locked.db" alone <"$dir/end" >"$dir/held" &
    helper "$!"
    exec 9>"$dir/end"
    until_true grep -q held "$dir/held"
    for word in "run -n key -- true" "run --once -n key -- true" \
        "lead -n key -- true" "acquire -n key" "acquire --for $$ -n key" \
        "wait -w 0 key" "wait --once -w 0 key" "ls"; do
        # shellcheck disable=SC2086 # words
        run --url "$url" $word
        is "a locked file: $word: exit status" "$status/$out" 75/
        is_one_line "a locked file: $word: it is said"
        has "a locked file: $word: why" "$err" "database is locked"
    done
    exec 9>&-
}

# Options and words that would do nothing are refused.
useless() {
    local word
    for word in "run --json key -- true" "lead --json key -- true" \
        "metrics --json" "-q -v ls" "help run extra" \
        "help ls extra" "help stock -q deduct"; do
        # shellcheck disable=SC2086 # words
        run $word
        is "$word: exit status" "$status/$out" 64/
        is_one_line "$word: it is said"
    done
    run help ls
    like "help ls" "$status/$out" "0/Usage: sqlock *ls *"
}

closed_output() {
    sq ls >&- 2>"$dir/err"
    is "ls with its output closed: exit status" "$?" 74
    is_one_line "ls with its output closed: it is said"
    sq ls --json >&- 2>"$dir/err"
    is "ls --json with its output closed: exit status" "$?" 74
    sq run output -- true >&- 2>"$dir/err"
    is "a command that prints nothing needs no output" "$?" 0
}

# Run a command as a user without rights, since root may read everything.
as_another() {
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
foreign_home() {
    local url=sqlite:$dir/open/foreign.db as=as_another
    mkdir -m 777 "$dir/open"
    mkdir -p "$dir/home/.config/sqlock"
    echo "region = secret" >"$dir/home/.config/sqlock/config"
    chmod 711 "$dir"
    chmod 700 "$dir/home"
    install -m 755 "$SQLOCK" "$dir/sqlock" # where another user finds it
    local SQLOCK=$dir/sqlock
    if [ "$(id -u)" -ne 0 ]; then
        chmod 000 "$dir/home"
        as=
    elif ! as_another "$SQLOCK" --version >/dev/null 2>&1; then
        skip "a home that may not be read" "no other user can run the command"
        return
    fi
    out=$(unset XDG_CONFIG_HOME SQLOCK_REGION SQLOCK_URL
        HOME=$dir/home $as "$SQLOCK" -q --url "$url" init 2>"$dir/err")
    is "a home that may not be read, --url: exit status" "$?" 0
    is "a home that may not be read, --url -q: nothing is said" \
        "$(cat "$dir/err")" ""
    out=$(unset XDG_CONFIG_HOME SQLOCK_REGION
        HOME=$dir/home SQLOCK_URL=$url $as "$SQLOCK" ls --json 2>"$dir/err")
    is "a home that may not be read, SQLOCK_URL: exit status" "$?" 0
    is "a home that may not be read: its region is not used" \
        "$(json region <<<"$out")" DEFAULT
    is_one_line "a home that may not be read: it is said"
    out=$(unset XDG_CONFIG_HOME SQLOCK_REGION SQLOCK_URL
        HOME=$dir/home $as "$SQLOCK" ls 2>"$dir/err")
    is "a home that may not be read, no URL: exit status" "$?" 64
    has "a home that may not be read, no URL: it is said" \
        "$(cat "$dir/err")" "Permission denied"
    chmod 700 "$dir/home"
}

ended_by_an_operator() {
    local token
    hold ended -t 60
    token=$(sq show ended --json | json token)
    sq -q break ended --token "$token" --reason "it hangs"
    is "broken: exit status" "$?" 0
    run show ended
    has "broken: show tells" "$out" "held, but broken"
    run run -n ended -- true
    is "broken: it is held until the lease's end" "$status" 75
    has "broken: it is said" "$err" "broken by "
    has "broken: with the reason" "$err" ": it hangs"
    is "broken: not as if that were the holder's name" \
        "$(grep -c "by broken" <<<"$err")" 0
    run break ended --token "$token" --reason "again"
    is "broken again: exit status" "$status" 1
    is "broken again: not as if that were the holder's name" \
        "$(grep -c "by broken" <<<"$err")" 0
    ends
}

no_driver() {
    run --url nosuch://host/db ls
    is "no driver: exit status" "$status" 64
    is_one_line "no driver: it is said"
    has "no driver: there are others" "$err" "there are drivers for "
    has "no driver: SQLite" "$err" " sqlite"
}

if use "$(databases | head -n 1)"; then
    no_driver
    useless
    closed_output
    foreign_home
    ended_by_an_operator
fi
database=
if [ -n "${SQLOCK_TEST_SQLITE_URL:-}" ]; then
    tool hold_sqlite sqlite3
    small_files
    locked_file
fi
skip_missing
done_testing
