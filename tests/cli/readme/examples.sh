#!/usr/bin/env bash
# examples.sh: the programs in src/examples do what their heads say, on every
# database that the environment names.  The stock demo and the migrations have
# suites of their own.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
bin=$build/bin/examples
# shellcheck source=tests/tools/support/client.sh
. tests/tools/support/client.sh
ends_with() { # STATUS COMMAND...
    local expected=$1 got
    shift
    "$@"
    got=$?
    [ "$got" -eq "$expected" ] || echo "status $got"
    [ "$got" -eq "$expected" ]
}
prints() { # PATTERN COMMAND...: all of its lines, with "|" between
    local pattern=$1 said
    shift
    said=$("$@" | tr '\n' '|')
    echo "$said"
    # shellcheck disable=SC2053 # a pattern
    [[ $said == $pattern ]]
}
until_true() { # COMMAND...
    local i
    for ((i = 0; i < 600; i++)); do
        ! "$@" || return 0
        read -rt 0.05 <> <(:)
    done
    return 1
}
until_line() { # WORD FILE
    until_true grep -q "$1" "$2"
}
count() { # WHAT
    ask "SELECT $1 FROM account WHERE id = 1"
}

# The example `mutex` holds the lock, which others do not get, until its lease
# is broken: it reports the loss.
is_lost() {
    local holder id end
    : >"$dir/held" # not the word of the database before
    "$bin/mutex" "$url" "$lock" 60 >"$dir/held" 2>"$dir/why" &
    holder=$!
    helper "$holder"
    until_line held "$dir/held" || return 1
    ends_with 75 "$bin/try" "$url" "$lock" || return 1
    ends_with 75 "$bin/try" "$url" "$lock" 50 || return 1
    "$bin/try" "$url" "$lock" | grep -q '^held by .* mutex' || return 1
    ! "$bin/many" "$url" "$lock-b" "$lock" >"$dir/many" || return 1
    grep -q "^$lock: the lock was not free" "$dir/many" || return 1
    prints 'taken for *' "$bin/try" "$url" "$lock-b" || return 1
    id=$("$SQLOCK" --url "$url" show "$lock" --json |
        sed -n 's/.*"client_id": "\(.*\)".*/\1/p')
    "$SQLOCK" --url "$url" break "$lock" --client-id "$id" --reason test --now ||
        return 1
    wait "$holder"
    end=$?
    cat "$dir/why"
    [ "$end" -eq 1 ] && grep -q 'mutex: .*lost\|mutex: .*broke' "$dir/why"
}

# Clients that take the same locks in opposite orders all get them.
at_once() {
    local pids=() pid i
    for i in 1 2 3; do
        "$bin/event_loop" "$url" "$lock-a" "$lock-b" "$lock-c" >"$dir/o$i" 2>&1 &
        pids+=($!)
        "$bin/many" "$url" "$lock-c" "$lock-b" "$lock-a" >"$dir/m$i" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        helper "$pid"
        wait "$pid" || {
            cat "$dir"/[om]?
            return 1
        }
    done
    [ "$(cat "$dir"/o? | grep -c 'taken$')" -eq 9 ] &&
        [ "$(cat "$dir"/o? | grep -c 'given back$')" -eq 9 ] &&
        [ "$(cat "$dir"/m? | grep -c 'taken$')" -eq 9 ]
}

transfers() {
    local pids=() pid i
    for i in 1 2 3; do
        "$bin/compare_and_set" "$url" 1 -100 &
        pids+=($!)
        "$bin/compare_and_set" "$url" 2 100 &
        pids+=($!)
        "$bin/row_locks" "$url" 1 2 100 &
        pids+=($!)
        "$bin/row_locks" "$url" 2 1 50 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        helper "$pid"
        wait "$pid" || return 1
    done
    # 1000 - 300 - 300 + 150 = 550 and 1000 + 300 + 300 - 150 = 1450
    ends_with 3 "$bin/row_locks" "$url" 1 2 551 &&
        ends_with 3 "$bin/compare_and_set" "$url" 1 -551 &&
        "$bin/row_locks" "$url" 1 2 550 &&
        ends_with 3 "$bin/row_locks" "$url" 1 2 1 &&
        [ "$(count balance)" = 0 ] && [ "$(count version)" = 10 ] &&
        ends_with 1 "$bin/compare_and_set" "$url" 3 1
}

guard() {
    case $kind in
    sqlite) "$bin/guard_sqlite" "$url" "${url#sqlite:}" ;;
    postgres) "$bin/guard_postgres" "$url" ;;
    mysql)
        local user password host port name
        IFS=' ' read -r user password host port name < <(
            sed -E 's,.*//([^:]*):([^@]*)@([^:]*):([0-9]*)/([^?]*).*,\1 \2 \3 \4 \5,' \
                <<<"$url")
        MYSQL_PWD=$password "$bin/guard_mysql" "$url" "$host" "$port" "$user" \
            "$name"
        ;;
    esac
}

# A transaction that was guarded and has committed is done, whatever the release
# says.
commits_unreleased() {
    local before
    [ "$kind" = sqlite ] || return 0
    before=$(count balance)
    ask "DELETE FROM INT_LOCK"
    ask "CREATE TRIGGER KEPT BEFORE UPDATE ON INT_LOCK
        WHEN NEW.CLIENT_ID IS NULL BEGIN SELECT RAISE(ABORT, 'kept'); END"
    guard || return 1
    ask "DROP TRIGGER KEPT"
    [ "$(count balance)" -eq $((before + 1)) ]
}

guards() {
    local before holder
    before=$(count balance)
    guard && guard || return 1
    : >"$dir/day" # not the word of the database before
    "$bin/mutex" "$url" day-end 60 >"$dir/day" 2>&1 &
    holder=$!
    helper "$holder"
    until_line held "$dir/day" || return 1
    ends_with 75 guard || return 1
    kill -KILL "$holder"
    wait "$holder" 2>/dev/null
    [ "$(count balance)" -eq $((before + 2)) ] && commits_unreleased
}

tell() { # SOCKET LINE: prints the answer
    python3 -c 'import socket, sys
link = socket.socket(socket.AF_UNIX)
link.settimeout(60)
link.connect(sys.argv[1])
link.sendall(sys.argv[2].encode() + b"\n")
print(link.makefile().readline(), end="")' "$@"
}

sells() {
    local item=shoe-$$
    "$SQLOCK" --url "$url" stock init && "$SQLOCK" --url "$url" stock set "$item" 5 &&
        prints 'sold, 3 left|' "$bin/stock" "$url" "$item" 2 "$item/1" &&
        prints 'sold before, 3 left|' "$bin/stock" "$url" "$item" 2 "$item/1" &&
        ends_with 3 "$bin/stock" "$url" "$item" 4 "$item/2" &&
        prints 'sold, 0 left|' "$bin/stock" "$url" "$item" 3 "$item/3" &&
        ends_with 1 "$bin/stock" "$url" "no $item" 1 "$item/4"
}

# Eight processes buy from one seller.  It is killed, and the next one at that
# socket knows the orders.
sells_for_all() {
    local item=coat-$$ place=$dir/seller seller said sold first
    "$SQLOCK" --url "$url" stock set "$item" 1000000 || return 1
    for _ in 1 2; do
        rm -f "$place"
        "$bin/stock_seller" "$url" "$place" 2>"$dir/why" &
        seller=$!
        helper "$seller"
        until_true tell "$place" "no order" || return 1
        if [ -z "${sold:-}" ]; then
            said=$(python3 tests/tools/bench/buyers.py "$place" "$item" 8 0.5) ||
                return 1
            sold=${said%% *}
            first=$(tell "$place" "$item/mine $item 3")
        else
            [ "$(tell "$place" "$item/mine $item 3")" = "$first" ] || return 1
            [ "$(tell "$place" "$item/other $item 9000000")" = "-22 $((999997 - sold))" ] ||
                return 1
            [ "$(tell "$place" "$item/wrong $item 5x")" = "-9 -1" ] || return 1
        fi
        kill -KILL "$seller"
        wait "$seller" 2>/dev/null
    done
    [ "$first" = "0 $((999997 - sold))" ]
}

usage() {
    local name
    for name in mutex try many event_loop compare_and_set row_locks stock stock_seller \
        "guard_$kind"; do
        ends_with 2 "$bin/$name" || return 1
    done
}

lock=example-$$
for name in POSTGRES MYSQL SQLITE; do
    variable=SQLOCK_TEST_${name}_URL
    url=${!variable:-}
    if [ -z "$url" ]; then
        echo "skip - $variable is not set"
        continue
    fi
    use_client "$url"
    about="$kind: "
    check "the table of locks is made" "$SQLOCK" --url "$url" init
    check "wrong use is told" usage
    check "a lock is held in steps" prints \
        'held, token *|1 of 1, * ms left|' "$bin/mutex" "$url" "$lock-m" 1
    check "a lost lock is noticed, and who has it is told" is_lost
    check "many locks, by thread and by event loop, in any order" at_once
    ask "DROP TABLE IF EXISTS account"
    ask "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL, \
version BIGINT NOT NULL)"
    ask "INSERT INTO account VALUES (1, 1000, 0), (2, 1000, 0)"
    check "transfers at once keep the sum" transfers
    check "a guarded job runs alone" guards
    check "stock is sold once for each order" sells
    check "one process sells for all, and orders outlive it" sells_for_all
    ask "DROP TABLE account"
done
exit $status
