#!/usr/bin/env bash
# lead.sh: `sqlock lead` keeps one copy of a service running, and starts it
# elsewhere when it has failed or lost its lease.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty
tool fill

# Start a candidate for the lock "service".  Each copy of its service writes
# NAME and its own number to $dir/terms, and goes on until it is killed.
candidate() { # NAME OPTION...
    local name=$1
    shift
    env --default-signal=HUP,INT,QUIT,USR1,USR2 "$SQLOCK" \
        --table-prefix "$prefix" lead "$@" service -- \
        sh -c "echo $name \$\$ >>'$dir/terms'; exec sleep 600" \
        2>"$dir/$name.err" &
    candidates[$name]=$!
    helper "$!"
}
terms() { # NUMBER: wait until so many copies were started
    until_true has_terms "$1" || not_ok "term $1" "no copy is started"
}
has_terms() {
    [ "$(grep -c '' "$dir/terms")" -ge "$1" ]
}
leader() {
    tail -n 1 "$dir/terms" | cut -d ' ' -f 1
}
copy() {
    tail -n 1 "$dir/terms" | cut -d ' ' -f 2
}
resign() { # NAME
    holder=${candidates[$1]}
    kill -TERM "$holder"
    ends
}
declare -A candidates

passes_on() {
    local first second
    : >"$dir/terms"
    candidate one
    terms 1
    candidate two
    candidate three
    until_true waits 2
    is "one leads" "$(leader)" one
    first=$(copy)
    kill -KILL "$first"
    terms 2
    second=$(leader)
    [ "$second" != one ]
    is "when its service dies, another begins" "$?" 0
    until_true grep -q "SIGKILL" "$dir/one.err"
    is "and it is said why" "$?" 0
    resign "$second"
    is "a signal ends a candidate, and its service" "$?" 143
    terms 3
    [ "$(leader)" != one ] && [ "$(leader)" != "$second" ]
    is "the one that waited longest follows" "$?" 0
    resign "$(leader)"
    terms 4
    is "and the first one again, behind all" "$(leader)" one
    resign one
    is "each of its services has ended" "$(alive_copies)" 0
    run run -n service -- true
    is "and the lock is free" "$status" 0
}
waits() { # NUMBER: so many processes wait
    [ "$(sq show service --json | json waiters)" = "$1" ]
}
alive_copies() {
    local count=0 pid
    while read -r _ pid; do
        ! is_alive "$pid" || count=$((count + 1))
    done <"$dir/terms"
    echo "$count"
}

# A candidate whose lease is lost ends its service, and goes on as a candidate.
loses() {
    : >"$dir/terms"
    candidate one
    terms 1
    first=$(copy)
    sq break --token "$(sq show service --json | json token)" --now \
        --reason test service >"$dir/out" 2>"$dir/err"
    terms 2
    is_gone "$first"
    is "after a loss no earlier copy is left when the next begins" "$?" 0
    resign one
    is "a signal ends it" "$?" 143
}

# With --keep-daemons a daemon of an earlier term goes on, and leaves nothing
# behind when it has ended.
outlives() {
    local first
    : >"$dir/terms"
    : >"$dir/daemons"
    "$SQLOCK" --table-prefix "$prefix" lead --keep-daemons service -- \
        sh -c "setsid sleep 600 & echo \$! >>'$dir/daemons'
        echo one \$\$ >>'$dir/terms'; exec sleep 600" 2>"$dir/one.err" &
    candidates[one]=$!
    helper "$!"
    terms 1
    kill -KILL "$(copy)"
    terms 2
    first=$(head -n 1 "$dir/daemons")
    is_alive "$first"
    is "--keep-daemons: a daemon outlives its term" "$?" 0
    kill -KILL "$first"
    until_true has_ended "$first"
    kill -KILL "$(copy)"
    terms 3
    [ ! -e "/proc/$first" ]
    is "--keep-daemons: one that has ended is no zombie" "$?" 0
    resign one
    # shellcheck disable=SC2046 # numbers
    kill -KILL $(tail -n +2 "$dir/daemons")
}
has_ended() { # PID: it is a zombie, or not there
    ! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$1/status"
}

ends_by_itself() {
    local text
    run lead service -- true
    is "a service that succeeds is not begun again" "$status" 0
    run lead service -- "$dir/nothing"
    is "nor one that cannot be run" "$status" 127
    hold service
    run lead -n service -- true
    is "-n: somebody else leads" "$status" 75
    let_go
    run lead --status-fd 1 service -- true
    is "--status-fd: a line for the term, and the end" \
        "$(sed -n 's/.*"event":"\([a-z]*\)".*/\1/p' <<<"$out" | paste -sd ' ')" \
        "granted ended"
    hold service
    for text in "$(printf '%01025d' 0)" $'\xff'; do
        run lead -n --publish "$text" service -- true
        is "--publish: a text that cannot be is refused at once" "$status" 64
        is_one_line "--publish: why"
        has "--publish: why, in words" "$err" "lead: --publish"
    done
    let_go
    run lead --once service -- true
    is "options of run only are refused" "$status" 64
}

# A signal between two terms: another candidate has the lock by then, so that no
# second term begins.
ends_between_terms() {
    local member
    rm -f "$dir/fail"
    "$SQLOCK" --table-prefix "$prefix" lead --status-fd 7 service -- \
        sh -c "until [ -e '$dir/fail' ]; do sleep 0.1; done; exit 3" \
        7>"$dir/told" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true grep -q granted "$dir/told"
    : >"$dir/terms"
    candidate other
    until_true waits 1
    touch "$dir/fail"
    until_true grep -q "exited with 3" "$dir/err"
    kill -TERM "$holder"
    ends
    is "a signal between two terms ends it" "$?" 143
    is "and is told, and nothing of the term before" \
        "$(for member in cause status command_status command_signal token; do
            tail -n 1 "$dir/told" | json "$member"
        done | paste -sd ' ')" "interrupted 143 null null null"
    resign other
}

# Nobody reads what a candidate says of its service, which goes on all the same.
unread() {
    : >"$dir/terms"
    mkfifo "$dir/full"
    exec 6<>"$dir/full"
    "$dir/fill" "$SQLOCK" --table-prefix "$prefix" lead service -- \
        sh -c "echo one \$\$ >>'$dir/terms'; exec sleep 600" >&6 2>&6 &
    candidates[one]=$!
    helper "$!"
    exec 6<&-
    terms 1
    kill -KILL "$(copy)"
    terms 2
    sq break --token "$(sq show service --json | json token)" --now \
        --reason test service >"$dir/out" 2>"$dir/err"
    terms 3
    resign one
    is "a candidate whose messages nobody reads begins again, and ends" "$?" 143
    rm -f "$dir/full"
}

# HUP tells many a service to read its configuration; another is ended by it.
hangs_up() {
    : >"$dir/terms"
    : >"$dir/hups"
    env --default-signal=HUP "$SQLOCK" --table-prefix "$prefix" lead service -- \
        sh -c "trap 'echo >>\"$dir/hups\"' HUP
            echo one \$\$ >>'$dir/terms'
            while :; do sleep 1; done" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    terms 1
    kill -HUP "$holder"
    until_true test -s "$dir/hups"
    is "HUP is passed on" "$?" 0
    kill -KILL "$(copy)"
    terms 2
    ok "a service that was told by HUP to go on is begun again when it dies"
    kill -TERM "$holder"
    ends
    env --default-signal=HUP "$SQLOCK" --table-prefix "$prefix" lead service -- \
        sh -c "echo one \$\$ >>'$dir/terms'; exec sleep 600" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    terms 3
    kill -HUP "$holder"
    ends
    is "one that HUP ends is not" "$?" 129
}

# A signal for the service may be sent to all candidates: it ends none that
# waits.
waits_on() {
    local signal
    : >"$dir/terms"
    candidate one
    terms 1
    candidate two
    until_true waits 1
    for signal in HUP USR1 USR2; do
        kill -s "$signal" "${candidates[two]}"
        has_taken "${candidates[two]}"
    done
    kill -KILL "$(copy)"
    terms 2
    is "a candidate that waits outlasts HUP, USR1 and USR2" "$(leader)" two
    resign two
    resign one
    : >"$dir/terms"
    env --default-signal=HUP "$SQLOCK" --table-prefix "$prefix" lead service -- \
        sh -c "trap '' HUP; echo one \$\$ >>'$dir/terms'
            [ \$(wc -l <'$dir/terms') -gt 1 ] || exit 3
            exec sleep 60" 2>"$dir/err" &
    holder=$!
    helper "$holder"
    until_true grep -q "exited with 3" "$dir/err"
    kill -HUP "$holder"
    terms 2
    let_go
    is "and HUP between two terms" "$status" 143
}

# HUP tells one that waits that its terminal is gone: nobody sees it there.
loses_terminal() {
    local terminal
    hold service
    "$dir/pty" 80 env --default-signal=HUP "$SQLOCK" \
        --table-prefix "$prefix" lead service -- true >"$dir/out" &
    terminal=$!
    helper "$terminal"
    until_true waits 1
    candidates[one]=$(ps -o pid= --ppid "$terminal" | tr -d ' ')
    helper "${candidates[one]}"
    kill -KILL "$terminal"
    until_true is_gone "${candidates[one]}"
    is "a candidate whose terminal hangs up ends" "$?" 0
    "$dir/pty" 80 bash -m -c "env --default-signal=HUP '$SQLOCK' \
        --table-prefix '$prefix' lead service -- true & wait" >"$dir/out" &
    terminal=$!
    helper "$terminal"
    until_true waits 1
    candidates[one]=$(pgrep -P "$(pgrep -P "$terminal")")
    helper "${candidates[one]}"
    # The leader of a session that ends has HUP sent before the terminal goes.
    kill -HUP "${candidates[one]}"
    has_taken "${candidates[one]}"
    kill -KILL "$terminal"
    until_true is_gone "${candidates[one]}"
    is "also if HUP has come before that" "$?" 0
    let_go
}

# INT from elsewhere than the keyboard is a failure like any other.
interrupted() {
    : >"$dir/terms"
    candidate one
    terms 1
    kill -INT "$(copy)"
    terms 2
    ok "a service that INT ends, not from the keyboard, is begun again"
    resign one
}

# A text is there before the service begins, and goes with the lease.
publishes() {
    : >"$dir/terms"
    run lead --slots 2 --publish here service -- true
    is "--publish: not with --slots" "$status" 64
    run lead --publish "$(printf '%01025d' 0)" service -- true
    is "--publish: a text that is too long is refused" "$status" 64
    is_one_line "--publish: and it is said"
    candidate one --publish 'port "1"'
    terms 1
    run show service
    has "show prints the text" "$out" 'text       port "1"'
    resign one
    run show service --json
    is "the text goes with the lease" "$(json text <<<"$out")" null
}

slots() {
    : >"$dir/terms"
    candidate one --slots 2
    candidate two --slots 2
    terms 2
    ok "--slots 2: two copies run"
    candidate three --slots 2
    resign one
    terms 3
    is "--slots 2: a third begins when one has ended" "$(leader)" three
    candidate four --slots
    candidate five --slots 2
    run permits service 4
    is "--slots 2: there are four from now on" "$status" 0
    terms 5
    ok "--slots 2: those that wait go on with that number"
    run show service
    has "--slots 2: all go on" "$out" "4 of 4 taken"
    resign three
    resign two
    resign four
    resign five
}

for one in $(databases); do
    use "$one" || continue
    passes_on
    loses
    outlives
    ends_by_itself
    ends_between_terms
    unread
    hangs_up
    waits_on
    interrupted
    publishes
    slots
done
use "$(databases | head -n 1)" && loses_terminal
database=
skip_missing
done_testing
