#!/usr/bin/env bash
# stock.sh: `sqlock stock` on every database, and what reap does for it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Items and orders stay in the tables after a run: their names are not used
# again.
made() {
    local prefix=CLI_STOCK_$$_
    sq -q init
    run stock ls
    is "without its tables" "$status" 69
    has "it says which command makes them" "$err" "\`sqlock stock init\`"
    run stock init
    is "tables that were not there" "$status" 0
    has "it says that they were created" "$err" "were created"
}

quantities() {
    local item=hat.$$ other=shoe.$$ order=order.$$
    run stock init
    is "init" "$status/$out" 0/
    run stock init
    is "may be repeated" "$status" 0
    has "and says that the tables were there" "$err" "were there"
    run stock init --print --json
    like "its SQL" "$(json sql <<<"$out")" "*CREATE TABLE*${prefix}STOCK*"
    run stock show "$item"
    is "an unknown item" "$status/$out" 1/
    is_one_line "is said"

    run stock set "$item" 10
    is "set" "$status/$out" 0/10
    run stock set "$other" 3
    run stock deduct "$item" 4 --order "$order"
    is "deduct" "$status/$out" 0/6
    run stock deduct "$item" 4 --order "$order" --json
    is "the same order again" "$status/$(json duplicate <<<"$out")" 0/true
    is "gets the first answer" "$(json items.0.left <<<"$out")" 6
    run stock deduct "$item" 5 --order "$order"
    is "and is no other one" "$status" 1
    run stock deduct "$item" 1 "$other" 4
    is "all or nothing" "$status/$out" 1/
    has "with a reason" "$err" "of $other there are 3"
    run stock deduct "$item" 1 "$other" 2
    is "several at once" "$status/$out" $'0/5\n1'
    run stock restore "$item" 1
    is "restore" "$status/$out" 0/6
    run stock show "$item" --json
    is "show" "$(json quantity <<<"$out")" 6
    run stock ls
    like "ls" "$status/$out" $'0/ITEM*QUANTITY*\n'"*$item *6*"
    run stock ls --json
    like "ls --json" "$(json items.0.item <<<"$out")" "*?.[0-9]*"
}

reservations() {
    local item=coat.$$ order=hold.$$
    run stock set "$item" 10
    run stock reserve "$item" 4 --order "$order.1" --for 10m
    is "reserve" "$status/$out" 0/6
    run stock look "$order.1"
    like "look" "$status/$out" '0/reserved [1-9]*m[0-5][0-9]s'
    run stock look "$order.1" --json
    out=$(json remaining_ms <<<"$out")
    is "look --json" "$((out > 300000 && out <= 600000))" 1
    run stock claim "$order.1"
    is "claim" "$status/$out$err" 0/
    run stock claim "$order.1" --json
    is "claim again" "$(json duplicate <<<"$out")" true
    has "says that it was claimed" "$err" "already"
    run stock cancel "$order.1"
    is "what was claimed is not cancelled" "$status" 1
    run stock reserve "$item" 2 --order "$order.2" --for 10m
    run stock cancel "$order.2"
    run stock show "$item"
    is "cancel gives back" "$out" 6
    run stock look "$order.2" --json
    is "and is seen" "$(json state <<<"$out")" cancelled

    run stock reserve "$item" 1 --order "$order.3" --for 1ms
    run stock reserve "$item" 2 --order "$order.4" --for 1ms
    until_true over "$order.3" && until_true over "$order.4"
    run stock claim "$order.3"
    is "too late" "$status" 1
    run reap --json
    is "reap expires" "$status/$(json expired <<<"$out")" 0/2
    has "and says so" "$err" "2 reservations of stock have expired"
    run stock show "$item"
    is "what was reserved is back" "$out" 6
    run stock expire
    is "once" "$status/$out" 0/0
}
# Entries must have ended an hour ago to be removed: none of these has.
retention() {
    run stock reap --dry-run --json
    is "reap --dry-run" \
        "$status/$(json entries <<<"$out")/$(json dry_run <<<"$out")" 0/0/true
    has "says that nothing is removed" "$err" \
        "dry run: 0 rows would be removed"
    run stock reap --older-than 1h
    is "reap" "$status/$out" 0/0
    run stock reap --older-than 59m
    is "too young to be forgotten" "$status/$out" 64/
    has "with the limit" "$err" "at least 1h"
}

over() { # ORDER
    [ "$(sq stock look "$1" --json | json remaining_ms)" = 0 ]
}

# An application's table may hold less than nothing; only null is unknown.
negative() {
    local item=debt.$$ of=(--table cli_debts --item-column item
        --quantity-column quantity)
    client <<END
DROP TABLE IF EXISTS cli_debts;
CREATE TABLE cli_debts (item VARCHAR(100) PRIMARY KEY, quantity BIGINT);
INSERT INTO cli_debts VALUES ('$item', -5), ('none', NULL);
END
    is "a table of an application" "$?" 0
    run stock ls "${of[@]}"
    like "ls: a quantity below 0" "$status/$out" $'0/*\n'"$item *-5"*
    run stock ls "${of[@]}" --json
    is "ls --json" "$(json items.0.quantity <<<"$out")" -5
    is "ls --json of null" "$(json items.1.quantity <<<"$out")" null
    run stock restore "$item" 2 "${of[@]}"
    is "restore: what is left is below 0" "$status/$out" 0/-3
    run stock restore "$item" 1 "${of[@]}" --json
    is "restore --json" "$(json items.0.left <<<"$out")" -2
    client <<<"DROP TABLE cli_debts"
}

# An option that belongs to another action is refused, and changes nothing.
options_of_others() {
    local item=glove.$$ words
    run stock set "$item" 10
    while read -r words; do
        # shellcheck disable=SC2086 # words
        run stock ${words/ITEM/$item}
        is "stock $words: exit status" "$status/$out" 64/
        has "stock $words: it is said" "$err" "it takes no --"
    done <<'END'
deduct ITEM 3 --dry-run
set ITEM 3 --print
restore ITEM 3 --for 1m
reserve ITEM 3 --order o --for 1m --older-than 2h
expire --dry-run
ls --order o
reap --item-column a --for 1m
init --table other
END
    run stock show "$item"
    is "and nothing was changed" "$out" 10
}

misuse() {
    local words
    while read -r words; do
        # shellcheck disable=SC2086 # words
        run stock $words
        is "stock $words: exit status" "$status/$out" 64/
        is_one_line "stock $words: one line"
    done <<'END'

steal hat
ls hat
deduct
deduct hat
deduct hat 1 cap
deduct hat many
deduct hat 0
deduct hat 9223372036854775808
set hat
reserve hat 1 --for 1m
reserve hat 1 --order x --for soon
claim
expire now
reap now
reap --older-than soon
show hat --table goods
END
    run --table-prefix NONE_ stock show hat
    is "without tables" "$status/$out" 69/
    is_one_line "without tables: one line"
}

# A change whose answer is lost may be there: that is told by a status of its
# own, whichever command it is.
unanswered() {
    local item=glove.$$ order=glove.order.$$
    [ "$one" != sqlite ] || return 0
    run stock set "$item" 5
    unheard "$item" stock deduct "$item" 1
    is "no answer: exit status" "$status/$out" 2/
    until_true so_many 4 "$item"
    is "no answer: it was carried out" "$?" 0
    hold silent.$$ --ttl 1h
    unheard "a silent server" break silent.$$ --now --reason "a silent server" \
        --token "$(sq show silent.$$ --json | json token)"
    is "break without an answer" "$status/$out" 2/
    ends
    if [ "$one" = mysql ]; then
        unheard "$(sq key silent.$$)" run -n --ttl 1 silent.$$ true
        is "run, whose statuses are those of its command" "$status/$out" 69/
        return
    fi
    run stock reserve "$item" 1 --order "$order" --for 1ms
    until_true over "$order"
    unheard 'COMMIT$' stock expire
    is "expire without an answer" "$status/$out" 2/
    run stock reserve "$item" 1 --order "$order.2" --for 1ms
    until_true over "$order.2"
    unheard 'COMMIT$' reap
    is "reap without an answer" "$status/$out" 2/
}
unheard() { # WORD COMMAND...: nothing is heard once that word is sent
    UNANSWERED=$1 LD_PRELOAD=$dir/unanswered.so run "${@:2}"
}
so_many() { # QUANTITY ITEM
    [ "$(sq stock show "$2")" = "$1" ]
}

preload unanswered
for one in $(databases); do
    use "$one" || continue
    quantities
    unanswered
    reservations
    retention
    negative
done
if use "$(databases | head -n 1)"; then
    made
    misuse
    options_of_others
fi
skip_missing
done_testing
