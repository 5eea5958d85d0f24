# sqlock.bash: completion of the sqlock command for bash.
#
# Commands and options are read from the command's own help, so that they are
# never another version's.  Names of locks come from the database, if it answers
# within two seconds.
# shellcheck shell=bash

_sqlock_commands() { # SQLOCK
    "$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p'
}

# The options that a help text describes: "--wait TIME", "--rule raw|legacy" or
# "--json".
_sqlock_options() { # SQLOCK [COMMAND]
    {
        "$1" --help
        [ -z "${2-}" ] || "$1" "$2" --help
    } 2>/dev/null |
        sed -n -e 's/^ \{2,6\}\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\) \([^ ][^ ]*\).*/\2 \3/p' \
            -e 's/^ \{2,6\}\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\)  .*/\2/p' \
            -e 's/^ \{2,6\}\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\)$/\2/p'
}

# The letters that stand for options with a value: "-w VALUE".
_sqlock_letters() { # SQLOCK COMMAND
    "$1" "$2" --help 2>/dev/null |
        sed -n 's/^  \(-[A-Za-z]\), --[a-z-]* [^ ].*/\1 VALUE/p'
}

# The actions of a command, as its help lists them: "  claim ID  ...".
_sqlock_actions() { # SQLOCK COMMAND
    "$1" "$2" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)\( .*\)\{0,1\}$/\1/p'
}

# Names that need no quotes.
_sqlock_locks() { # SQLOCK OPTION...
    timeout 2 "$@" --quiet ls --all 2>/dev/null |
        awk 'NR > 1 && $1 ~ /^[A-Za-z0-9_.,\/@%+-]+$/ &&
            $2 ~ /^(held|shared|free|expired)$/ { print $1 }'
}

# The command line of `sqlock run`, which begins there.
_sqlock_child() { # INDEX
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif ((COMP_CWORD == $1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

_sqlock() {
    local sqlock=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' arguments=0 i options value where=()
    COMPREPLY=()

    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            _sqlock_child $((i + 1))
            return
            ;;
        --url | --region | --table-prefix | --peer-ttl)
            where+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
            i=$((i + 1))
            ;;
        -*)
            options=$(_sqlock_options "$sqlock" "$command")
            options+=$'\n'$(_sqlock_letters "$sqlock" "$command")
            # "--slots [N]" has a value only if a number follows.
            if grep -qx -e "${COMP_WORDS[i]} \[.*" <<<"$options"; then
                [[ ${COMP_WORDS[i + 1]} == +([0-9]) ]] && i=$((i + 1))
            elif grep -qx -e "${COMP_WORDS[i]} .*" <<<"$options"; then
                i=$((i + 1))
            fi
            ;;
        *)
            if [ -z "$command" ]; then
                command=${COMP_WORDS[i]}
                # "sqlock help run": only the name is left.
                [ "$command" != help ] || arguments=-1
            elif [[ $command:$arguments == @(run|lead):1 ]]; then
                _sqlock_child "$i"
                return
            else
                arguments=$((arguments + 1))
            fi
            ;;
        esac
    done

    options=$(_sqlock_options "$sqlock" "$command")
    value=$(awk -v name="$previous" '$1 == name && $2 !~ /^\[/ { print $2 }' \
        <<<"$options")
    if [ -n "$value" ]; then
        # A value that is one of several words: "raw|legacy".
        [[ $value != *\|* ]] ||
            mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$word")
        return
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed 's/ .*//' <<<"$options")" \
            -- "$word")
        return
    elif [ -z "$command" ]; then
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_sqlock_commands "$sqlock") help" -- "$word")
        return
    fi
    case $command:$arguments in
    show:0 | break:0 | permits:0 | run:0 | lead:0 | wait:0 | acquire:0 | ls:0)
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_sqlock_locks "$sqlock" "${where[@]}")" -- "$word")
        ;;
    run:1 | lead:1) _sqlock_child "$COMP_CWORD" ;;
    help:-1)
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_sqlock_commands "$sqlock")" -- "$word")
        ;;
    once:0 | stock:0)
        mapfile -t COMPREPLY < <(compgen -W \
            "$(_sqlock_actions "$sqlock" "$command")" -- "$word")
        ;;
    esac
}
complete -F _sqlock sqlock
