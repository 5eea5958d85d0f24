#!/usr/bin/env bash
# completion.sh: completions that bash and zsh offer for the Tab key.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=src/cli/completion/sqlock.bash
. "$here/../../src/cli/completion/sqlock.bash"

offers() { # WORD...: the last one is to be completed
    COMP_WORDS=("$SQLOCK" "$@")
    COMP_CWORD=$#
    _sqlock
    # shellcheck disable=SC2034 # for is() and like()
    offered=$(printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -sd ' ')
}

options_of() { # COMMAND: all that its help describes
    { "$SQLOCK" --help && "$SQLOCK" "$1" --help; } |
        grep -oE '^ {2,6}(-[A-Za-z], )?--[a-z-]+' | sed 's/.*--/--/' |
        sort -u | paste -sd ' '
}

in_bash() {
    local command
    offers ''
    is "commands" "$(tr ' ' '\n' <<<"$offered" | grep -cx -e run -e ls -e show \
        -e break -e reap -e key -e init)" 7
    offers sh
    is "a command" "$offered" show
    for command in $(_sqlock_commands "$SQLOCK"); do
        offers "$command" --
        is "the options of $command" "$offered" "$(options_of "$command")"
    done
    has "among them those of every command" "$offered" "--region"
    offers init --layout s
    is "layouts" "$offered" "spring6 spring7 sqlock"
    offers init --layout spring7 --pri
    is "an option behind a value" "$offered" --print
    offers ls --sort h
    is "orders" "$offered" held
    offers --rule l
    is "rules" "$offered" legacy
    offers run --ttl ''
    is "nothing for a free value" "$offered" ""
    offers stock c
    is "actions of stock" "$offered" "cancel claim"
    offers once ''
    is "actions of once" "$offered" "forget list show"
    offers run a-key mkfif
    has "the command behind the key" "$offered" mkfifo
    offers run --ttl 5 a-key -w 3 mkfif
    has "also behind options" "$offered" mkfifo
    offers run --slots a-key mkfif
    has "also behind one that may have a value, and has none" "$offered" mkfifo
    offers run --slots 3 a-key mkfif
    has "and behind its value" "$offered" mkfifo
    offers run a-key true --
    is "no options of ours for it" "$(grep -c -e --wait <<<"$offered")" 0
    offers help sh
    is "the commands that help explains" "$offered" show
    offers run a-key -- mkfif
    has "the command behind it" "$offered" mkfifo

    run run lock/one -- true
    run run lock/two -- true
    run run "no name for a shell" -- true
    offers --table-prefix "$prefix" show ''
    is "names of locks" "$offered" "lock/one lock/two"
    offers --table-prefix "$prefix" break lock/t
    is "a name" "$offered" "lock/two"
    SQLOCK_URL=sqlite:/nowhere/at/all offers show ''
    is "none where there is no database" "$offered" ""
}

# Check that a zsh on a terminal of its own completes LINE to EXPECTED on Tab.
in_zsh() { # WHAT LINE EXPECTED
    has "zsh: $1" "$(PATH=$(dirname "$SQLOCK"):$PATH zsh -f -c '
        zmodload zsh/zpty
        TERM=dumb zpty -b shell zsh -f -i
        read_until() {
            local part all=
            local -F end=$((SECONDS + 20))
            while ((SECONDS < end)); do
                if zpty -rt shell part; then
                    all+=$part
                    [[ $all == *$1* ]] && break
                else
                    sleep 0.02
                fi
            done
            print -r -- "$all"
        }
        zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -Uz compinit
            compinit -u -D; setopt no_beep; print rea\"\"dy"
        read_until ready >/dev/null
        zpty -n -w shell "$2"$'"'\\t'"'
        read_until $3
        zpty -d shell' - "$here/../../src/cli/completion" "$2" "$3")" "$3"
}

zsh_offers() {
    if ! command -v zsh >/dev/null; then
        skip "zsh" "it is not installed"
        return
    fi
    in_zsh "a command" 'sqlock brea' "break "
    in_zsh "what help explains" 'sqlock help brea' "break "
    in_zsh "an option" 'sqlock init --lay' "--layout"
    in_zsh "a layout" 'sqlock init --layout spring' "spring7"
    in_zsh "an action" 'sqlock stock ded' "deduct"
    in_zsh "a lock" "sqlock --table-prefix $prefix show lock/o" "lock/one"
}

if use "$(databases | head -n 1)"; then
    in_bash
    zsh_offers
fi
done_testing
