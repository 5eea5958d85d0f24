#!/usr/bin/env bash
# encoding.sh: names and notes in a database whose encoding lacks their characters:
# the key of a lock is made of the whole name, and what is shown is escaped.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2154,SC2034 # variables of lib.sh
tool json jansson
[ -n "${SQLOCK_TEST_POSTGRES_ADMIN_URL:-}" ] ||
    skip_all "an administrator of PostgreSQL makes a database for this"
name='job-日本' other='job-日米' long=$(printf '長%.0s' {1..80})
narrow=sqlock_latin1_$$

admin() { # SQL
    bash tests/tools/servers/psql.sh -qX "$SQLOCK_TEST_POSTGRES_ADMIN_URL" -c "$1"
}
drop() {
    admin "DROP DATABASE IF EXISTS $narrow WITH (FORCE)" ||
        admin "DROP DATABASE IF EXISTS $narrow"
}
owner=$(sed -E 's,.*//([^:@]*)[:@].*,\1,' <<<"$SQLOCK_TEST_POSTGRES_URL")
admin "CREATE DATABASE $narrow OWNER $owner
    ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"

database=postgres prefix=INT_
export SQLOCK_REGION=DEFAULT
SQLOCK_URL=$(sed -E "s,/[^/?]*(\?|$),/$narrow\1," <<<"$SQLOCK_TEST_POSTGRES_URL")
export SQLOCK_URL
run init
is "the table of locks is made" "$status" 0
run init --once
is "and that of what is done" "$status" 0

run run -n "$name" -- echo "it runs"
is "a name outside of the encoding is a lock" "$status/$out" "0/it runs"
run run -n "$long" -- echo "it runs"
is "a long one, too" "$status/$out" "0/it runs"
ln -s "$(type -P echo)" "$dir/für-日本"
run run -n plain -- "$dir/für-日本" "it runs"
is "and a note of the holder" "$status/$out" "0/it runs"

hold "$name" -t 60
run run -n "$name" -- echo "it runs"
is "it excludes" "$status" 75
run run -n "$other" -- echo "it runs"
is "and only those of its name" "$status/$out" "0/it runs"
run ls
has "it is shown" "$out" 'job-\u65e5\u672c'
run ls 'job-日*'
has "it is found by a pattern" "$out" 'job-\u65e5\u672c'
run show "$name"
is "it is found by its name" "$status" 0
run --json show "$name"
run break --now "$name" --token "$(json token <<<"$out")" --reason "日本"
is "it is broken for a reason" "$status" 0
let_go

hold "$name" -t 60
"$SQLOCK" run -w 60 "$name" -- echo "it runs" >"$dir/waited" 2>/dev/null &
waiter=$!
helper "$waiter"
waits() {
    run show "$name"
    [[ $out == *waiting*'sqlock run -w 60'* ]]
}
until_true waits
is "who waits is shown" $? 0
let_go
wait "$waiter"
is "and gets the lock" "$?/$(cat "$dir/waited")" "0/it runs"

run run --once -n "$name" -- echo "it runs"
is "it is recorded as done" "$status/$out" "0/it runs"
run run --once -n "$name" -- echo "it runs"
is "and not done again" "$status/$out" "0/"
run once list
has "the record is shown" "$out" 'job-\u65e5\u672c'

run stock init
is "tables of stock are made" "$status" 0
run stock set "$name" 5
is "an item outside of the encoding is refused" "$status" 69
is_one_line "in one line"
has "which says why" "$err" LATIN1
run stock set plain 5
is "others are not" "$status" 0

cat >"$dir/many.py" <<'END'
import os, sqlock
with sqlock.open(os.environ["SQLOCK_URL"]) as registry:
    with registry.acquire_many(["日本", "日米", "plain"]) as leases:
        print(len(list(leases)))
END
is "many are taken in one call" "$(SQLOCK_LIBRARY=$(dirname "$SQLOCK")/../lib/libsqlock.so \
    PYTHONPATH=src/python /usr/bin/python3 "$dir/many.py" 2>"$dir/why")" 3

cat >"$dir/lead.py" <<'END'
import os, sqlock
with sqlock.open(os.environ["SQLOCK_URL"]) as registry:
    with registry.leader("one", wait=5) as leader:
        leader.publish("für 1")
        try:
            leader.publish("日本")
        except sqlock.Error as error:
            print("LATIN1" in str(error), end=" ")
        print(leader.info().text == "für 1")
END
is "a leader publishes what the encoding has, and is told what not" "$(
    SQLOCK_LIBRARY=$(dirname "$SQLOCK")/../lib/libsqlock.so PYTHONPATH=src/python \
        /usr/bin/python3 "$dir/lead.py" 2>"$dir/why")" "True True"

drop
done_testing
