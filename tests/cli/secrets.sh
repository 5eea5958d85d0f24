#!/usr/bin/env bash
# secrets.sh: passwords are neither in the process list, nor in the command's
# environment, nor in messages and core files (F83).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Do not export the variables of the tests: they hold passwords, too.
for variable in $(compgen -e SQLOCK_TEST_); do
    export -n "${variable?}"
done

# Print the arguments of a process.
cmdline_of() { # PID
    tr '\0' ' ' <"/proc/$1/cmdline"
}
# Check that there is a text and that CANARY, a password, is not in it.
without() { # WHAT TEXT CANARY
    if [ -z "$2" ]; then
        not_ok "$1" "there is nothing to look at"
    elif grep -qF -e "$3" <<<"$2"; then
        not_ok "$1" "the canary is in it"
    else
        ok "$1"
    fi
}

# Return whether a process has executed sleep(1).  During execve(2) its
# environment is empty for a moment.
is_sleep() { # PID
    grep -qx sleep "/proc/$1/comm" && grep -qaz . "/proc/$1/environ"
}

# Hold the lock "secret" in the background.  Set $holder to the number of the
# sqlock process, and $child to that of its command, which prints its
# environment into $dir/out.  Return 1 if the command does not run.
hold_secret() { # COMMAND...: sqlock, and options of it
    rm -f "$dir/pid"
    "$@" --table-prefix "$prefix" run secret -- \
        sh -c 'echo $$ >"$1"; env; exec sleep 600' sh "$dir/pid" \
        >"$dir/out" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true test -s "$dir/pid" && child=$(cat "$dir/pid") &&
        until_true is_sleep "$child"
}

watch_run() { # URL CANARY OPTION...: with the URL in the arguments
    local url=$1 canary=$2
    shift 2
    hold_secret env -u SQLOCK_URL "$SQLOCK" "$@"
    without "not in the arguments of sqlock" "$(cmdline_of "$holder")" "$canary"
    without "nor of the command" "$(cmdline_of "$child")" "$canary"
    without "nor in the command's environment" \
        "$(tr '\0' '\n' <"/proc/$child/environ")" "$canary"
    like "although the lock is there" \
        "$(tr '\0' '\n' <"/proc/$child/environ")" "*SQLOCK_TOKEN=*"
    without "nor in the row" "$(SQLOCK_URL=$url sq show secret)" "$canary"
    kill -TERM "$holder"
    ends
    without "nor in what is printed" "$(cat "$dir/out" "$dir/err")" "$canary"
}

in_variable() { # URL CANARY
    SQLOCK_URL=$1 hold_secret "$SQLOCK"
    without "SQLOCK_URL: not in the command's environment" \
        "$(tr '\0' '\n' <"/proc/$child/environ")" "$2"
    kill -TERM "$holder"
    ends
}

# The password is in a variable that the URL names.
by_name() { # URL CANARY NAME: as the URL has it
    local url
    url=$(sed 's,//\([^:@/]*\):[^@/]*@,//\1@,' <<<"$1")
    case $url in
    *\?*) url+="&password_env=$3" ;;
    *) url+="?password_env=$3" ;;
    esac
    if ! SQLOCK_URL=$url CLI_CANARY=$2 hold_secret "$SQLOCK"; then
        not_ok "password_env=$3: it connects"
        return
    fi
    ok "password_env=$3: it connects"
    without "password_env=$3: not in the command's environment" \
        "$(tr '\0' '\n' <"/proc/$child/environ")" "$2"
    kill -TERM "$holder"
    ends
}

of_all() { # WHAT PID...
    local what=$1 pid
    shift
    for pid in "$@"; do
        tr '\0' '\n' <"/proc/$pid/$what"
    done
}

# Print the process that sqlock has in the group of its command.  It is forked
# when the command runs, and wipes its environment then.
anchor_of() {
    pgrep -x -g "$child" sqlock
}
has_anchor() {
    local pid
    pid=$(anchor_of) && ! tr -d '\0' <"/proc/$pid/environ" 2>&1 | grep -q "="
}

# F83: sqlock, the watcher, the supervisor and the process that sqlock has in the
# group of its command show no password in their arguments, the latter three none
# in their environments.
processes() { # URL CANARY
    local all
    SQLOCK_URL=$1 hold_secret "$SQLOCK"
    # The processes between sqlock and the command.
    all=("$(watcher_of "$holder")" "$(supervisor_of "$holder")")
    is "F83: sqlock has a supervisor and a watcher" \
        "$(of_all comm "${all[@]}" | tr '\n' ' ')" \
        "lock-watcher lock-supervisor "
    is "F83: and a process in the group of its command" \
        "$(until_true has_anchor && echo yes)" yes
    all+=("$(anchor_of)")
    # Only root may look into that: for others the refusal is the text.
    without "F83: not in the environment of sqlock's processes" \
        "$(of_all environ "${all[@]}" 2>&1)" "$2"
    without "F83: nor in their arguments" \
        "$(of_all cmdline "$holder" "${all[@]}")" "$2"
    kill -TERM "$holder"
    ends
}

# Crash sqlock or its command.  The core file is in $dir/cores, if the system
# writes it into the working directory.
crash() { # URL WHOM: "sqlock" or "command"
    local victim
    rm -rf "$dir/cores" "$dir/pid"
    mkdir "$dir/cores"
    (
        cd "$dir/cores" || exit
        ulimit -c unlimited
        SQLOCK_URL=$1 exec "$SQLOCK" --table-prefix "$prefix" run -t 2 \
            "crash-$2" -- sh -c 'echo $$ >"$1"; while :; do sleep 0.1; done' sh "$dir/pid"
    ) 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true test -s "$dir/pid"
    case $2 in
    sqlock) victim=$holder ;;
    command) victim=$(cat "$dir/pid") ;;
    esac
    kill -SEGV "$victim"
    ends
    until_true is_gone "$(cat "$dir/pid")"
}
cores() { # URL CANARY
    ulimit -H -c | grep -qx unlimited || {
        skip "core files" "they are not allowed here"
        return
    }
    crash "$1" command
    if ! compgen -G "$dir/cores/*" >/dev/null; then
        skip "core files" "the system writes none into the working directory"
        return
    fi
    ok "F83: a command that crashes leaves a core file"
    is "F83: without the password" \
        "$(grep -lF -e "$2" "$dir"/cores/* 2>/dev/null)" ""
    crash "$1" sqlock
    is "F83: sqlock crashes: no core file" "$(ls "$dir/cores")" ""
}

# URLs that are wrong, or lead to no server: no message has the password in it.
failures() { # SCHEME
    local canary=c4n4ry url command
    for url in "$1://user:$canary@:bad port/db" \
        "$1://user:$canary@127.0.0.1:1/db?nonsense=$canary" \
        "$1://user:$canary%zz@127.0.0.1:1/db"; do
        for command in "ls" "init" "show x" "run x -- true"; do
            failure "$1" "$url" "$command"
        done
    done
    failure "$1" "$1://user:$canary@127.0.0.1:1/db" "run -n x -- true"
    failure "$1" "$1://user:$canary@host.invalid/db" "ls"
}
failure() { # SCHEME URL COMMAND
    # shellcheck disable=SC2086 # words
    SQLOCK_URL=$2 run -v $3
    without "$1: $3: the password is not in what is said" "$out$err" c4n4ry
    is_one_line "$1: $3: one line"
    # shellcheck disable=SC2086 # words
    SQLOCK_URL='' run -v --url "$2" $3
    without "$1: $3, URL as an argument: likewise" "$out$err" c4n4ry
}

misplaced() {
    local canary=c4n4ry words
    while read -r words; do
        # shellcheck disable=SC2086 # words
        run $words
        is "misplaced URL: usage" "$status" 64
        without "misplaced URL: not in what is said" "$err" "$canary"
    done <<END
--ulr=postgresql://user:$canary@host/db ls
postgresql://user:$canary@host/db
ls postgresql://user:$canary@host/db
ls --ulr postgresql://user:$canary@host/db
run k postgresql://user:$canary@host/db -- true
END
    # A name may be like a URL, and is not refused.
    sq -q init --once
    sq -q stock init
    while read -r words; do
        # shellcheck disable=SC2086 # words
        run $words
        is "a URL as a name: $words" "$status" 1
        without "a URL as a name: $words: not in what is said" "$err" "$canary"
        like "a URL as a name: $words: but what follows it" "$err" \
            '@(*"*" *|*://\*\*\*)'
    done <<END
show postgresql://user:$canary@host/db
show postgresql://user:"$canary@host/db
show postgresql://host/db?password=$canary
break postgresql://user:$canary@host/db --token 1 --reason why
permits postgresql://user:$canary@host/db 2
once show postgresql://user:$canary@host/db
once forget postgresql://user:$canary@host/db
stock show postgresql://user:$canary@host/db
stock claim postgresql://user:$canary@host/db
END
    hold postgresql://user:$canary@host/db
    run wait -w 0 postgresql://user:$canary@host/db
    without "the name of a lock that is held" "$err" "$canary"
    let_go
    run show https://host/job:1
    has "another name is said" "$err" '"https://host/job:1"'
}

for one in $(databases); do
    use "$one" || continue
    url=$SQLOCK_URL
    case $url in
    *://*:*@*)
        canary=${url#*://*:}
        canary=${canary%%@*}
        watch_run "$url" "$canary" --url "$url"
        watch_run "$url" "$canary" --url="$url"
        in_variable "$url" "$canary"
        by_name "$url" "$canary" CLI_CANARY
        by_name "$url" "$canary" CLI%5FCANARY
        processes "$url" "$canary"
        cores "$url" "$canary"
        denied=${url/:$canary@/:c4n4ry@}
        SQLOCK_URL=$denied run ls
        without "a wrong password is not in what is said" "$out$err" c4n4ry
        is "a wrong password" "$status" 77
        ;;
    sqlite:*) ;;
    *) skip "passwords" "the URL of the test database has none" ;;
    esac
done
database=
if use "$(databases | head -n 1)"; then
    database=
    misplaced
fi
for one in $(databases | grep -v sqlite); do
    failures "$(url_of "$one" | sed 's/:.*//')"
done
skip_missing
done_testing
