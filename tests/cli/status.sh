#!/usr/bin/env bash
# status.sh: exit statuses, by which a script can tell a failure of the command
# from one of sqlock, and messages about wrong usage.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# ---- the command's own

every_status() {
    local i wrong=
    for i in $(seq 0 255); do
        # -q: on a busy machine a wait of a second is told.
        sq -q run status -- sh -c "exit $i" 2>>"$dir/err"
        status=$?
        [ "$status" -eq "$i" ] || wrong+=" $i:$status"
    done
    is "the command's own status, 0 to 255" "$wrong" ""
    is "nothing is said about it" "$(cat "$dir/err")" ""
}

every_signal() {
    local i wrong=
    for i in $(seq 1 64); do
        case $i in
        # those that do not end a process, and the two that libc keeps
        17 | 18 | 19 | 20 | 21 | 22 | 23 | 28 | 32 | 33) continue ;;
        esac
        # A shell that starts this script in the background makes it ignore INT.
        env --default-signal=INT,QUIT "$SQLOCK" --table-prefix "$prefix" \
            run status -- sh -c "kill -$i \$\$" 2>>"$dir/err"
        status=$?
        [ "$status" -eq $((128 + i)) ] || wrong+=" $i:$status"
    done
    is "128+N for every signal that ends the command" "$wrong" ""
}

runnable() {
    run run status -- "$dir/nothing-there"
    is "a command that is not there" "$status" 127
    is_one_line "and says so"
    run run status -- nothing-of-this-name
    is "a command not on PATH" "$status" 127
    : >"$dir/no-program"
    run run status -- "$dir/no-program"
    is "a command that may not be run" "$status" 126
    is_one_line "and says so"
    run run -n status -- true
    is "the lock was given back" "$status" 0
}

# ---- a busy lock

busy() {
    hold busy
    run run -n busy -- echo "it runs"
    is "-n while another holds it" "$status" 75
    is "the command was not run" "$out" ""
    is_one_line "who holds it is said"
    like "with the holder's token" "$err" \
        "*$(sq show busy --json | json token)*"
    run -q run -n busy -- true
    is "--quiet -n" "$status" 75
    is "says nothing" "$err" ""
    run run -n -E 42 busy -- true
    is "-E" "$status" 42
    run run -w 0.3 busy -- true
    is "-w while another holds it" "$status" 75
    run run -w 300ms -E 0 busy -- true
    is "-w and -E" "$status" 0

    rm -f "$dir/waiter.err"
    "$SQLOCK" --table-prefix "$prefix" -v run -w 60 busy -- \
        echo "it runs" >"$dir/out" 2>"$dir/waiter.err" &
    waiter=$!
    helper "$waiter"
    until_true grep -q '^sqlock: waiting.*: "busy" is held by ' \
        "$dir/waiter.err"
    is "-v: a waiter says for whom it waits" "$?" 0
    is "a waiter waits" "$(cat "$dir/out")" ""
    let_go
    is "the holder is ended by a signal" "$status" 143
    wait "$waiter"
    is "the waiter gets the lock" "$?" 0
    is "and runs its command" "$(cat "$dir/out")" "it runs"
}

# ---- usage

usage() {
    local words
    while read -r words; do
        # shellcheck disable=SC2086 # they are words
        run $words
        # guard-sql prints what keeps a transaction from being committed
        if [ "$status" -eq 64 ] && [ -z "${out#'sqlock: no guard;'}" ] &&
            [ "$(grep -c '' <<<"$err")" -eq 1 ]; then
            ok "usage: $words"
        else
            not_ok "usage: $words" "status $status"
        fi
    done <<'END'

--nonsense
nonsense
--url
--json
ls one two
ls --json=1
ls -ax
ls --sort size
ls --sort
ls --limit 0
ls --limit x
top one
top --delay 0
top --count 0
ls --token 1
show
show one two
key
key one two
key one --rule nonsense
ls --rule nonsense
ls --peer-ttl nonsense
ls --peer-ttl -1
reap --older-than nonsense
reap --older-than 10y
reap --older-than 99999999999999999999
reap one
init one
init --layout nonsense
init --layout
break
break one
break one --token 1
break one --reason why
break one --token x --reason why
break one --token 0 --reason why
break one --token 99999999999999999999 --reason why
run
run one
run one --
run -- true
run one postgresql://host/db -- true
run one --nonsense true
run --ttl 0.5 one -- true
run --ttl 8d one -- true
run --ttl x one -- true
run --ttl 10 --grace 6 one -- true
run --wait -1 one -- true
run --wait x one -- true
run --wait 1 --no-wait one -- true
run -E 256 one -- true
run -E -1 one -- true
run -E x one -- true
run -w
ls --url nonsense
ls --url nonsense://host/db
ls --table-prefix a;b
ls --region x#tx
help nonsense
acquire
acquire one two
acquire --ttl 0.5 one
reap --older-than x
reap --older-than 3651d
reap --older-than 106751991167d
acquire --wait x one
acquire --wait 1 -n one
acquire --for x one
acquire --for 0 one
acquire --for 99999999 one
renew
renew nonsense
renew a:1:30000:
renew a:x:30000:key
renew a:1:30000
renew a:1:0:key
renew a:1:30000:key --ttl x
release
release nonsense
release a:99999999999999999999:30000:key
guard-sql
guard-sql nonsense
once
once nonsense
once show
once list one
once forget
permits
permits one
permits one two
permits one -1
permits one 1000000
permits one 4294967299
permits one 18446744073709551617
permits one 2 3
END
    for words in show break key run; do
        run "$words" "" --reason why
        is "usage: $words of an empty name" "$status" 64
    done
    run show ""
    is "an empty name is said to be one" "$err" \
        "sqlock: show: KEY is empty; is a shell variable not set?"
    run run "" true
    is "also where it names a lock" "$err" \
        "sqlock: run: KEY is empty; is a shell variable not set?"
    run once show ""
    is "and where there may be no record of it" "$status/$err" \
        "64/sqlock: once: NAME is empty; is a shell variable not set?"
    run run one true --nonsense -- two
    is "options behind the command are the command's" "$status" 0
}

# A service manager hands sockets to a process by its number.
sockets() {
    local command
    for command in run lead; do
        # shellcheck disable=SC2016 # for the command
        out=$(LISTEN_FDS=1 LISTEN_PID=1 sq "$command" sockets -- \
            sh -c 'echo "$LISTEN_PID"' 2>"$dir/err")
        is "$command: another process's sockets are its own" "$out" 1
        out=$(export LISTEN_FDS=1
            # shellcheck disable=SC2016 # for the command
            LISTEN_PID=$BASHPID exec "$SQLOCK" --table-prefix "$prefix" \
                "$command" sockets -- \
                sh -c 'echo "$((LISTEN_PID - $$)) $LISTEN_FDS"' 2>"$dir/err")
        is "$command: those of sqlock are the command's" "$out" "0 1"
    done
}

# For a mistyped word there is a suggestion, for an unknown one there is not.
suggestions() {
    local words expected
    while IFS=: read -r words expected; do
        # shellcheck disable=SC2086 # they are words
        run $words
        is "$words: usage" "$status" 64
        is "$words: what is said" "$err" "sqlock: $expected"
    done <<'END'
lst:unknown command "lst": did you mean "ls"?
shwo a:unknown command "shwo": did you mean "show"?
stcok ls:unknown command "stcok": did you mean "stock"?
zzzzzz:unknown command "zzzzzz"; see `sqlock --help`
xz:unknown command "xz"; see `sqlock --help`
bring:unknown command "bring"; see `sqlock --help`
elect:unknown command "elect": see `sqlock lead`
leader:unknown command "leader": see `sqlock lead`
semaphore a 3:unknown command "semaphore": see `sqlock run --slots` and `sqlock permits`
help brake:unknown command "brake": did you mean "break"?
ls --regoin x:unknown option --regoin: did you mean --region?
run --no-wiat one true:unknown option --no-wiat: did you mean --no-wait?
ls --jsno:unknown option --jsno: did you mean --json?
ls --wait 3:unknown option --wait; see `sqlock ls --help`
--zzzzzz ls:unknown option --zzzzzz; see `sqlock ls --help`
stock dedcut a 1:stock: unknown action "dedcut": did you mean "deduct"?
stock zzzzzz:stock: unknown action "zzzzzz"; see `sqlock stock --help`
END
}

# Without "--" the command begins with the first word behind the key that is
# neither an option of sqlock nor the value of one.
without_dashes() {
    run run plain echo one --json -n
    is "run without --" "$status/$out" "0/one --json -n"
    run run plain -w 5 --ttl 10 echo two
    is "options with values behind the key" "$status/$out" "0/two"
    run run -nw5 plain echo three
    is "letters that exclude each other are read" "$status" 64
    run run -w5 plain --grace=1 echo four
    is "values that are not apart" "$status/$out" "0/four"
    run run plain sh -c 'echo "$1"' sh -- --
    is "a -- behind the command is its own" "$status/$out" "0/--"
    run run plain -- -n
    is "behind -- nothing is an option" "$status" 127
    run run --region "$region" plain -c 'echo five'
    is "a string for the shell" "$status/$out" "0/five"
}

help() {
    local command
    for command in init run acquire renew release guard-sql ls top metrics show \
        break permits reap key once doctor; do
        run "$command" --help
        is "$command --help" "$status" 0
        like "$command --help is on stdout" "$out" "Usage: sqlock $command*"
        is "$command --help: at most 80 columns" \
            "$(awk 'length > 80' <<<"$out")" ""
        run --help "$command"
        like "--help $command" "$out" "Usage: sqlock $command*"
        run help "$command"
        like "help $command" "$status/$out" "0/Usage: sqlock $command*"
    done
    run help
    is "help is --help" "$status/$out" "0/$(sq --help)"
    printf 'nonsense\n' >"$dir/config"
    mkdir -p "$dir/bad/sqlock"
    mv "$dir/config" "$dir/bad/sqlock/config"
    XDG_CONFIG_HOME=$dir/bad run help run
    is "help needs no configuration" "$status" 0
    run --help
    is "--help" "$status" 0
    like "--help names the commands" "$out" "*init*run*ls*show*top*break*reap*key*"
    like "--help warns of --url" "$out" "*password out of --url*"
    run --version
    is "--version" "$status" 0
    like "--version names the drivers" "$out" "sqlock ?*.?*.?*
*(*)*"
}

output_failure() {
    local words
    sq acquire --for 99999999 one 2>&-
    is "no message can be written: the status is the same" "$?" 64
    [ -e /dev/full ] || return 0
    sq ls >/dev/full 2>"$dir/err"
    is "output that cannot be written" "$?" 74
    is_one_line "and says so"
    sq ls --json >/dev/full 2>"$dir/err"
    is "JSON that cannot be written" "$?" 74
    for words in "top -n 1" --help; do
        # shellcheck disable=SC2086 # words
        sq $words >/dev/full 2>"$dir/err"
        is "$words: output that cannot be written" "$?" 74
        is_one_line "$words: and says so"
        is "$words: that is no success" "$(grep -c Success "$dir/err")" 0
        # shellcheck disable=SC2086
        sq $words >&- 2>"$dir/err"
        is "$words: output that is closed" "$?" 74
        is "$words: nor is that" "$(grep -c Success "$dir/err")" 0
    done
    sq top -n 1 >/dev/full 2>"$dir/err"
    has "top: why" "$(cat "$dir/err")" "No space left"
}

# ---- the database

unreachable() { # URL STATUS
    SQLOCK_URL=$1 run run --fail-fast key -- echo "it runs"
    is "unreachable: run ($1)" "$status" "$2"
    is "the command was not run" "$out" ""
    is_one_line "and says so"
    SQLOCK_URL=$1 run ls
    is "unreachable: ls" "$status" "$2"
    SQLOCK_URL=$1 run init
    is "unreachable: init" "$status" "$2"
}

# The path of the database is mistyped: no command but `init` makes a file.
no_such_file() {
    local words
    while read -r words; do
        # shellcheck disable=SC2086 # they are words
        SQLOCK_URL=sqlite:$dir/slip.db run $words
        is "no such file: $words" "$status" 69
        [ ! -e "$dir/slip.db" ]
        is "no such file: $words makes none" "$?" 0
    done <<'END'
run key -- true
ls
show key
break key --token 1 --reason why
reap
doctor
doctor --after-restore --yes
END
    SQLOCK_URL=sqlite:$dir/slip.db run run key -- echo "it runs"
    is "no such file: the command was not run" "$out" ""
    is_one_line "no such file: it is said"
    like "no such file: and what to do" "$err" "*$dir/slip.db*sqlock init*"
    SQLOCK_URL=sqlite:$dir/slip.db run init
    is "no such file: init makes it" "$status" 0
    has "no such file: init says that it was created" "$err" \
        "the lock table was created"
}

denied() { # URL
    SQLOCK_URL=$1 run run key -- echo "it runs"
    is "no permission: run" "$status" 77
    is "the command was not run" "$out" ""
    is_one_line "and says so"
    SQLOCK_URL=$1 run ls
    is "no permission: ls" "$status" 77
}

no_table() {
    "$SQLOCK" ls --table-prefix "CLI_NOWHERE_" >"$dir/out" 2>"$dir/err"
    is "without a table" "$?" 69
    is_one_line "it says so"
    like "and what to do" "$(cat "$dir/err")" "*sqlock init*"
}

if ! use "$(databases | head -n 1)"; then
    done_testing
fi
every_status
every_signal
runnable
usage
suggestions
sockets
without_dashes
help
output_failure
for one in $(databases); do
    use "$one" || continue
    no_table
    busy
    run run status -- sh -c 'exit 7'
    is "the command's own status" "$status" 7
done
case " $(databases | tr '\n' ' ')" in
*" sqlite "*)
    database=sqlite
    unreachable "sqlite:$dir/nowhere/x.db" 64 # a mistake in the URL
    no_such_file
    ;;
esac
case " $(databases | tr '\n' ' ')" in
*" postgres "*)
    database=postgres
    unreachable "postgresql://nobody@127.0.0.1:1/none" 69
    denied "$(sed 's,//[^@/]*@,//nosuchuser:wrong@,' \
        <<<"$SQLOCK_TEST_POSTGRES_URL")"
    ;;
esac
case " $(databases | tr '\n' ' ')" in
*" mysql "*)
    database=mysql
    unreachable "mysql://nobody@127.0.0.1:1/none" 69
    denied "$(sed 's,//[^@/]*@,//nosuchuser:wrong@,' \
        <<<"$SQLOCK_TEST_MYSQL_URL")"
    ;;
esac
database=
skip_missing
done_testing
