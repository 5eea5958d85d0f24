#!/usr/bin/env bash
# terminal.sh: output on a terminal, and commands that use the terminal.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
tool pty

export TERM=xterm
on_terminal() { # COLUMNS ARGUMENT...
    local columns=$1
    shift
    out=$("$dir/pty" "$columns" "$SQLOCK" --table-prefix "$prefix" "$@")
    status=$?
    out=$(tr -d '\r' <<<"$out")
}
without_colour() {
    sed 's/\x1b\[[0-9]*m//g'
}

too_long() { # COLUMNS
    local LC_ALL=C.UTF-8 line
    while IFS= read -r line; do
        [ "${#line}" -le "$1" ] || echo "$line"
    done
}

tables() {
    local long=a-name-that-is-much-too-long-for-the-width-of-a-terminal-of-today
    run run "$long" -- true
    run run "short" -- true
    on_terminal 72 ls --all
    is "ls on a terminal" "$status" 0
    is "ls is cut to its width" \
        "$(without_colour <<<"$out" | too_long 72)" ""
    like "the cut is marked" "$out" "*a-name-that*…*"
    like "ls has colour there" "$out" $'*\033[1mNAME*'
    run ls --all
    like "elsewhere it is whole" "$out" "*$long *"
    is "and without colour" "$(grep -c $'\033' <<<"$out")" 0
    NO_COLOR=1 on_terminal 72 ls --all
    is "NO_COLOR" "$(grep -c $'\033' <<<"$out")" 0
    NO_COLOR='' on_terminal 72 ls --all
    like "which may not be empty" "$out" $'*\033[1mNAME*'
    TERM=dumb on_terminal 72 ls --all
    is "TERM=dumb" "$(grep -c $'\033' <<<"$out")" 0
    hold "held-$long" --ttl 20
    for columns in 300 120 100 80 60 40 30; do
        on_terminal "$columns" ls
        is "ls fits $columns columns" \
            "$(without_colour <<<"$out" | too_long "$columns")" ""
        has "and names are to be told apart" "$out" "held-a-"
        has "and so are states" "$(without_colour <<<"$out")" " held"
        has "held is green" "$out" $'\033[32mheld\033[0m'
    done
    on_terminal 80 ls
    has "80 columns keep the holder" "$out" "HOLDER"
    has "and the time left" "$out" "TTL"
    let_go
    on_terminal 300 ls --all
    like "a wide terminal cuts nothing" "$out" "*$long *"
}

checks() {
    on_terminal 60 doctor --table-prefix CLI_none_
    is "doctor on a terminal" "$status" 1
    is "fits its width" "$(without_colour <<<"$out" | too_long 60)" ""
    like "failures are red there" "$out" $'*\033[31mfailure*'
    like "what is well is green" "$out" $'*\033[32mok*'
    run doctor
    is "elsewhere there is no colour" "$(grep -c $'\033' <<<"$out")" 0
    is "and a check is one line" "$(grep -c '^ok *rights ' <<<"$out")" 1
}

# Control characters in names are escaped: the terminal must not execute them
# (F79).
escapes() {
    local name=$'red\033[31m\nline\ttab\u009b\u202e\u200bend'
    local key i shown='red\x1b[31m\x0aline\x09tab\u{9b}\u{202e}\u{200b}end'
    run run "$name" -- true
    run ls --all
    has "ls escapes what a terminal would obey" "$out" "$shown "
    is "one line each" "$(wc -l <<<"$out")" 5
    run show "$name"
    has "show does" "$out" "name       $shown"
    run show "$name" --json
    is "JSON keeps the name" "$(json name <<<"$out")" "$name"
    is "in ASCII" "$(LC_ALL=C grep -c '[^ -~]' <<<"$out")" 0
    run run 'a "quoted" \ name' -- true
    run ls --all --json
    has "ls --json does, too" "$(json locks <<<"$out")" "5"
    is "and a quoted one" "$(for i in 0 1 2 3 4; do
        json "locks.$i.name" <<<"$out"
    done | grep -cxF 'a "quoted" \ name')" 1
    is "in ASCII" "$(LC_ALL=C grep -c '[^ -~]' <<<"$out")" 0
    for i in 0 1 2 3 4; do
        key=$(json "locks.$i.key" <<<"$out")
        is "show says the same of $key" \
            "$(sq show --rule raw "$key" --json | tr -d ' \n' |
                sed 's/,"ended":"released"//')" \
            "$(grep -F "$key" <<<"$out" | tr -d ' \n' | sed 's/,$//')"
    done
    run show "no $name"
    is_one_line "messages escape it"
    has "in the same way" "$err" "$shown"
    run run "  " -- true
    run ls --all
    has "ls shows a name of blanks" "$out" '\x20\x20 '
    run run " a b " -- true
    run show " a b "
    has "show shows blanks at the ends" "$out" 'name       \x20a b\x20'
    run run "wide 錠前 ü" -- true
    on_terminal 72 ls --all
    like "other letters are left alone" "$out" "*wide 錠前 ü *"
}

commands() {
    on_terminal 80 run tty -- tty
    is "the command has the terminal" "$status" 0
    like "as its stdin" "$out" "/dev/*"
    out=$("$dir/pty" 80 -e ready -s 'hello\n' "$SQLOCK" \
        --table-prefix "$prefix" run tty -- \
        sh -c 'echo ready; read -r line; echo "got $line"')
    is "a command that reads the terminal" "$?" 0
    like "gets what is typed" "$out" "*got hello*"
    out=$("$dir/pty" 80 -e ready -s '^C' "$SQLOCK" \
        --table-prefix "$prefix" run tty -- sh -c 'echo ready; exec sleep 600')
    is "^C ends it" "$?" 130
    out=$("$dir/pty" 80 -e ready -s '^C' "$SQLOCK" --table-prefix "$prefix" \
        run tty -- sh -c 'trap "echo caught; exit 4" INT; echo ready
            while :; do sleep 0.02; done')
    is "it may catch ^C" "$?" 4
    run run -n tty -- true
    is "the lock was given back" "$status" 0
}

# ^C and ^\ reach the service alone, and end what keeps it running, too.
leads() {
    local key expected script
    while IFS='|' read -r key expected script; do
        : >"$dir/terms"
        out=$("$dir/pty" 80 -e ready -s "^$key" env --default-signal=INT,QUIT \
            "$SQLOCK" --table-prefix "$prefix" lead tty -- \
            sh -c "echo term >>'$dir/terms'; $script")
        is "lead: ^$key ends it: $script" "$?" "$expected"
        is "lead: the service is not begun again" "$(grep -c . "$dir/terms")" 1
    done <<'END'
C|130|echo ready; exec sleep 600
\|131|ulimit -c 0; echo ready; exec sleep 600
C|130|trap 'exit 130' INT; echo ready; while :; do sleep 0.02; done
END
}

# The command stays in the terminal's session: in another it could not open
# /dev/tty.
controlling() {
    on_terminal 80 run tty -- sh -c 'echo typed >/dev/tty && ps -o tty= -p $$'
    is "the command has a controlling terminal" "$status" 0
    like "that is written to" "$out" "*typed*"
    like "as ps tells" "$out" "*pts/*"
    on_terminal 80 run tty -- sh -c '[ "$(ps -o tpgid= -p $$ | tr -d " ")" = $$ ]'
    is "it is the foreground job" "$status" 0
}

# In a shell with job control, ^Z stops the command and fg continues it.
jobs_of_a_shell() {
    local command
    command="'$SQLOCK' --table-prefix $prefix run -t 20 tty -- sh -c 'echo \
re\"\"ady; read line; echo got-\$line'"
    out=$(PS1='$ ' "$dir/pty" 200 -e '$ ' -s "$command\\n" \
        -e ready -s '^Z' -e Stopped -s 'fg\n' -e sqlock -s 'hello\n' \
        -e got-hello -s 'exit\n' bash --norc --noprofile --noediting -i)
    is "^Z and fg" "$?" 0
    like "the command went on" "$out" "*got-hello*"
}

# In such a shell, with files that are redirected: the command asks on the
# terminal, reads its stdin, or is stopped by ^Z.
redirected() {
    local what typed last shell script files
    while IFS=@ read -r what files typed last script; do
        rm -f "$dir/asked"
        shell="set -b; '$SQLOCK' --table-prefix $prefix run -t 20 tty -- sh -c '$script"
        read -r -a typed <<<"$typed"
        out=$(PS1='$ ' "$dir/pty" 200 -e '$ ' \
            -s "$shell' ${files//DIR/$dir}\\n" "${typed[@]}" \
            -e "$last" -s 'exit 0\n' bash --norc --noprofile --noediting -i)
        is "$what" "$?" 0
        [ "$what" != "in the background" ] ||
            has "$what: it is said why" "$out" "the command needs the terminal"
        run run -n tty -- true
        is "$what: the lock was given back" "$status" 0
    done <<'END'
stdin is no terminal@</dev/null@-e ready -s hello\n@got-hello@echo re""ady; read x </dev/tty; echo got-$x
stdout is no terminal@>DIR/asked; cat DIR/asked@-e ready -s hello\n@got-hello@echo re""ady >&2; read x; echo got-$x
a pipe reads stdout@| cat@-e ready -s hello\n@got-hello@echo re""ady >&2; read x; echo got-$x
^Z while stdin is no terminal@</dev/null@-e ready -s ^Z -e Stopped -s fg\n -e going -s ^C@$ @trap "echo g\oing" CONT; echo re""ady; while :; do sleep 0.1; done
STOP while stdin is no terminal@</dev/null; echo status=$?@@status=0@while sleep 0.5; do kill -CONT $$; done & kill -STOP $$; kill $!
in the background@</dev/null &@-e Stopped -s fg\n -e sqlock -s hello\n@got-hello@read x </dev/tty; echo got-$x
END
}

# sqlock leads the terminal's session, and no shell could continue it: ^Z does
# not stop sqlock or its command.  A command that stops itself keeps its lease.
stopped_by_nobody() {
    out=$("$dir/pty" 80 -e ready -s '^Zhello\n' "$SQLOCK" \
        --table-prefix "$prefix" run -t 3 tty -- \
        sh -c 'echo ready; read -r line; echo "got $line"')
    is "^Z without a shell" "$?" 0
    like "does not stop the command" "$out" "*got hello*"
    out=$("$dir/pty" 80 "$SQLOCK" --table-prefix "$prefix" run -t 6 tty -- \
        sh -c '(sleep 8; kill -CONT $$) & kill -STOP $$; echo went on')
    is "a command that stops itself there" "$?" 0
    like "keeps its lease" "$out" "*went on*"
    hold tty
    out=$("$dir/pty" 80 -e waiting -s '^Z' "$SQLOCK" \
        --table-prefix "$prefix" -v run -w 2 tty -- true)
    is "^Z while waiting" "$?" 75
    let_go
}

# ^Z stops sqlock for longer than the lease, which is not renewed meanwhile: the
# command is ended, and the lock passes on.
stopped_for_long() {
    local command
    command="'$SQLOCK' --table-prefix $prefix run -t 3 tty -- sh -c 'echo \
re\"\"ady; exec sleep 600'"
    out=$(PS1='$ ' "$dir/pty" 200 -e '$ ' -s "$command\\n" \
        -e ready -s '^Z' -e 'about to expire' -s 'fg; echo status=$?\n' \
        -e 'status=76' -s 'exit\n' bash --norc --noprofile --noediting -i)
    is "^Z for longer than the lease: the command is ended" "$?" 0
    run run -w 60 tty -- true
    is "and the lock passes on" "$status" 0
}

if use "$(databases | head -n 1)"; then
    tables
    checks
    escapes
    commands
    leads
    controlling
    jobs_of_a_shell
    redirected
    stopped_by_nobody
    stopped_for_long
fi
done_testing
