#!/usr/bin/env bash
# break.sh: an operator breaks a lock: the old holder's command is ended before
# anyone else gets the lock, and the row records who broke it and why (F80).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# The user as sqlock records it: by number if passwd(5) has no name.
me="$(id -un 2>/dev/null || id -u)@$(hostname)"
unset SUDO_USER

# Print the option that names the lease: --token or --client-id.
whose() { # KEY LAYOUT
    if [ "$2" = sqlock ]; then
        echo "--token=$(sq show "$1" --json | json token)"
    else
        echo "--client-id=$(sq show "$1" --json | json client_id)"
    fi
}

# The lease of a holder whose command ignores TERM is broken while another
# process waits for the lock.  Both commands write to one file, in the order of
# events: the old holder's last line comes before the next holder's first.
in_order() { # LAYOUT
    local log=$dir/order next
    : >"$log"
    # shellcheck disable=SC2016
    "$SQLOCK" --table-prefix "$prefix" run -t 6 order -- sh -c 'trap "" TERM
        while echo old >>"$1"; do sleep 0.01; done' sh "$log" 2>/dev/null &
    holder=$!
    helper "$holder"
    until_true test -s "$log" || not_ok "$1: hold" "it does not get the lock"
    # shellcheck disable=SC2016
    "$SQLOCK" --table-prefix "$prefix" run order -- sh -c 'echo new >>"$1"
        sleep 0.2' sh "$log" 2>/dev/null &
    next=$!
    helper "$next"
    run break order "$(whose order "$1")" --reason "it hangs"
    is "$1: break" "$status" 0
    ends
    is "$1: the old holder is told that its lease is lost" "$?" 76
    wait "$next"
    is "$1: the next one gets the lock" "$?" 0
    is "$1: and the old one's last act came first" \
        "$(uniq "$log" | paste -sd ' ')" "old new"
}

audit() { # LAYOUT
    local expected="broken by $me: it hangs" token
    [ "$1" = sqlock ] || expected=null
    hold audit -t 16
    token=$(sq show audit --json | json token)
    SUDO_USER=${me%@*} run break audit "$(whose audit "$1")" \
        --reason "it hangs" --json
    is "$1: break --json" "$(json <<<"$out")" \
        "name:string broken:true now:false who:string reason:string"
    is "$1: who" "$(json who <<<"$out")" "$me"
    run show audit --json
    is "$1: the row tells who and why" "$(json holder <<<"$out")" "$expected"
    is "$1: it is held as before" "$(json state <<<"$out")" held
    if [ "$1" = sqlock ]; then
        is "$1: the token has risen" \
            "$(($(json token <<<"$out") > token))" 1
        run break audit --token "$token" --reason "it hangs"
        is "$1: the old token is nobody's any more" "$status" 1
        has "$1: this is said" "$err" "is no longer held by that owner"
    fi
    SUDO_USER=anna run break audit "$(whose audit "$1")" --reason again --now
    run show audit --json
    if [ "$1" = sqlock ]; then
        is "$1: a lock that was freed tells it, too" "$(json holder <<<"$out")" \
            "broken by $me (anna): again"
        is "$1: and is free" "$(json state <<<"$out")" free
        run ls --all
        has "$1: ls tells it" "$out" "broken by $me (anna): again"
    else
        is "$1: the row is gone" "$status" 1
    fi
    ends
    run run audit -- true
    run show audit --json
    [ "$1" != sqlock ] ||
        is "$1: the next owner takes the place" "$(json holder <<<"$out")" null
}

usage() {
    run break used --reason why
    is "whose lease has to be said" "$status" 64
    run break used --token 1
    is "and why" "$status" 64
    run break used --token 1 --reason "$(printf 'r%.0s' {1..81})"
    is "in 80 bytes" "$status" 64
    is_one_line "this is said"
    run break used --token 1 --reason "$(printf 'r%.0s' {1..80})"
    is "which may be used up" "$status" 1
    run break used --token 1 --reason ''
    is "an empty reason is none" "$status" 64
    run break used --token 0x1 --reason why
    is "a token is a number" "$status" 64
    run break --grace used --reason why
    is "a server's grace is no lock's" "$status" 64
    run break --grace
    is "and needs a reason, too" "$status" 64
    run break --grace --now --reason why
    like "and has no holder who notices" "$status $err" "64 *--reason only"
    hold used -t 8
    run break used --client-id 0 --reason why
    is "another's client id" "$status" 1
    has "the holder is named" "$err" "$(sq show used --json | json client_id)"
    is "the holder was left alone" "$(sq show used --json | json state)" held
    run break used --client-id "$(sq show used --json | json client_id)" \
        --reason why --now
    is "its own" "$status" 0
    ends
    is "the old holder is told" "$?" 76
    run break used --client-id 0 --reason why
    has "there is none any more" "$err" "the lock is free"
}

for one in $(databases); do
    for layout in sqlock spring7 spring6; do
        use "$one" "$layout" || continue
        # in_order takes as long as a lease: try each database and each layout,
        # but not each pair of them.
        case $one-$layout in
        *-sqlock | postgres-spring7 | mysql-spring6) in_order "$layout" ;;
        esac
        audit "$layout"
    done
done
use "$(databases | head -n 1)" && usage
database=
skip_missing
done_testing
