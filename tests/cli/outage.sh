#!/usr/bin/env bash
# outage.sh: `sqlock run` waits for a database that is away as for a holder,
# until the time of --wait is over; its messages meanwhile, and errors and
# signals that end the wait.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty

# Print a URL at which no server listens.
nowhere() { # DATABASE
    case $1 in
    postgres) echo "postgresql://nobody@127.0.0.1:1/none" ;;
    mysql) echo "mysql://nobody@127.0.0.1:1/none" ;;
    esac
}

away() { # DATABASE
    local began
    SQLOCK_URL=$(nowhere "$1") run run -n key -- echo "it runs"
    is "away, -n: exit status" "$status/$out" 69/
    is_one_line "away, -n: it is said"
    has "away, -n: with advice" "$err" "is the server running"
    SQLOCK_URL=$(nowhere "$1") run run --fail-fast -w 600 key -- echo "it runs"
    is "away, --fail-fast: exit status" "$status/$out" 69/
    is_one_line "away, --fail-fast: it is said"
    began=$(date +%s%N)
    SQLOCK_URL=$(nowhere "$1") run run -w 5 key -- echo "it runs"
    is "away, -w: exit status" "$status/$out" 69/
    [ $(($(date +%s%N) - began)) -ge 4900000000 ]
    is "away, -w: not before its time is over" "$?" 0
    is "away, -w: it is said that it waits, once" \
        "$(grep -c "^sqlock: waiting: " "$dir/err")" 1
    is "away, -w: and at the end why" "$(wc -l <"$dir/err")" 2

    # Without --wait, only a signal ends the wait.
    SQLOCK_URL=$(nowhere "$1") "$SQLOCK" run key -- echo "it runs" \
        >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true grep -q "waiting without a limit (see --wait" "$dir/err"
    is "away: it is said" "$?" 0
    kill -TERM "$holder"
    ends
    is "away: a signal ends the wait" "$?/$(cat "$dir/out")" 143/
}

# A missing table ends the wait, since waiting does not put that right.
not_waited_for() {
    out=$(timeout 60 "$SQLOCK" --table-prefix CLI_NOWHERE_ run -w 600 key -- \
        true 2>"$dir/err")
    is "a table that is missing ends the wait" "$?" 69
    is_one_line "a table that is missing: it is said"
}

# Nor does it put a file right that may not be written.
not_written() {
    local url=sqlite:$dir/readonly.db as=()
    "$SQLOCK" -q --url "$url" init
    chmod 444 "$dir/readonly.db"
    chmod 755 "$dir"
    install -m 755 "$SQLOCK" "$dir/sqlock" # where another user finds it
    [ "$(id -u)" != 0 ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    out=$(timeout 60 "${as[@]}" "$dir/sqlock" --url "$url" run -w 600 key -- true \
        2>"$dir/err")
    is "a file that may not be written ends the wait" "$?/$out" 69/
    is "a file that may not be written: it is said" \
        "$(grep -c -e readonly -e "may not write" "$dir/err")" 1
}

# Where the disk of a SQLite file is full, sqlock waits until there is room, and
# then runs the command.  A mount namespace of its own has a small disk.
room_again() {
    mkdir "$dir/disk"
    unshare -rm mount -t tmpfs none "$dir/disk" 2>"$dir/err" || {
        skip "room on the disk" "$(cat "$dir/err")"
        return
    }
    : >"$dir/err"
    # shellcheck disable=SC2016 # for the shell in the namespace
    unshare -rm sh -c 'mount -t tmpfs -o size=1m none "$0" && cd "$0" || exit
        url=sqlite:$0/late.db
        "$1" -q --url "$url" init
        dd if=/dev/zero of=filler bs=4k status=none 2>/dev/null
        "$1" --url "$url" run -w 600 key -- echo "it runs" &
        holder=$!
        until [ -e ../room ]; do sleep 0.05; done
        rm filler
        wait "$holder"' "$dir/disk" "$SQLOCK" >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true grep -q "waiting: .*No space left" "$dir/err"
    is "no room on the disk: it is said" "$?" 0
    is "no room on the disk: the command does not run" "$(cat "$dir/out")" ""
    : >"$dir/room"
    ends
    is "room on the disk: the command runs" "$?/$(cat "$dir/out")" "0/it runs"
}

# A waiter says for whom it waits, and whether its time is over, on a terminal
# and elsewhere.
a_holder() {
    local held='"terminal" is held'

    hold terminal
    out=$("$dir/pty" 300 -e 'of 1: "terminal" is held by ' -s '^C' \
        "$SQLOCK" --table-prefix "$prefix" run -w 60 terminal -- true)
    is "a holder, on a terminal: it is said" "$?" 130
    run run -w 2 terminal -- true
    is "a holder: exit status" "$status" 75
    is "a holder: it is said that it waits, and at the end why" \
        "$(sed 's/ is held by .*/ is held/' "$dir/err" | paste -sd '|')" \
        "sqlock: waiting, at place 1 of 1: $held|sqlock: $held"
    is "a holder: its lease may be renewed" \
        "$(grep -c "lease ends in .* unless it is renewed" "$dir/err")" 2
    run -q run -w 2 terminal -- true
    is "a holder, --quiet: nothing is said" "$status/$err" 75/
    run run -n terminal -- true
    is "a holder, -n: exit status" "$status" 75
    is_one_line "a holder, -n: it is said"
    let_go
}

for one in $(databases); do
    use "$one" || continue
    [ "$one" = sqlite ] || away "$one"
    not_waited_for
done
if use "$(databases | head -n 1)"; then
    a_holder
fi
database=
[ -z "${SQLOCK_TEST_SQLITE_URL:-}" ] || room_again
[ -z "${SQLOCK_TEST_SQLITE_URL:-}" ] || not_written
skip_missing
done_testing
