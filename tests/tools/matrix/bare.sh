#!/usr/bin/env bash
# bare.sh [GOAL]...: what README promises on a new machine: make GOAL in a Debian
# of which there is nothing but apt and make, as root and then as a user who may
# install nothing.  Without arguments: demo quick.  A GOAL that begins with a dot
# is a command, such as ".ci/run test".
#
# The user is told what to install first, and goes on once root has done that.
# Prints a row for each, with its time and the totals of its tests.  Needs root,
# for namespaces, and mmdebstrap.
#
# Environment: BARE_SUITE (the host's release); BARE_AS ("root user", who tries)
set -u
cd "$(dirname "$0")/../../.." || exit 1
[ $# -gt 0 ] || set -- demo quick

[ "$(id -u)" -eq 0 ] || {
    echo "bare.sh: needs root, who may make a Debian in a folder" >&2
    exit 2
}
command -v mmdebstrap >/dev/null || {
    echo "bare.sh: needs mmdebstrap: apt-get install mmdebstrap" >&2
    exit 2
}
: "${BARE_SUITE:=$(. /etc/os-release && echo "$VERSION_CODENAME")}"
dir=$(mktemp -d /tmp/sqlock-bare.XXXXXX) || exit 1
# /dev and /sys are mounted in namespaces that have ended.
trap 'rm -rf --one-file-system "$dir"' EXIT
rows=() status=0

# Run a shell's command in the new Debian, with processes and mounts of its own.
# shellcheck disable=SC2016 # for the inner shell
inside() { # SHELL-COMMAND
    unshare -mpf --kill-child --propagation private sh -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
            mount --rbind /sys "$1/sys" && mount -t tmpfs tmpfs "$1/run" &&
            exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 \
                PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "$2"' \
        sh "$dir/root" "$1"
}

command_of() { # GOAL
    case $1 in
    .*) echo "$1" ;;
    *) echo "make $1" ;;
    esac
}

row() { # WHO WHAT STATUS SECONDS LOG
    local totals
    totals=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$5" | tail -n 1)
    rows+=("$(printf '%-5s %-12s %-7s %5d s  %s' "$1" "$2" \
        "$([ "$3" -eq 0 ] && echo passed || echo FAILED)" "$4" "$totals")")
    [ "$3" -eq 0 ] || {
        status=1
        tail -n 30 "$5"
    }
}

build() { # WHO GOAL COMMAND
    local began=$SECONDS rc log=$dir/$1-${2//[! a-z]/_}.log
    echo "== as $1: $(command_of "$2")"
    inside "$3" >"$log" 2>&1
    rc=$?
    row "$1" "$2" "$rc" $((SECONDS - began)) "$log"
}

fresh_sources() { # OWNER
    rm -rf "$dir/root/src/sqlock"
    git clone -q . "$dir/root/src/sqlock" && chown -R "$1" "$dir/root/src/sqlock"
}

new_debian() {
    rm -rf --one-file-system "$dir/root"
    mmdebstrap --quiet --variant=apt "$BARE_SUITE" "$dir/root" || exit 1
    mkdir -p "$dir/root/src"
    cp /etc/resolv.conf "$dir/root/etc/"
    cp /etc/hosts "$dir/root/etc/hosts"
    inside 'apt-get -q update && apt-get -qy install make &&
        useradd -m -u 1234 newcomer' >"$dir/new.log" 2>&1 || {
        cat "$dir/new.log"
        exit 1
    }
}

try_as_root() { # GOAL...
    local goal
    new_debian
    fresh_sources 0
    for goal; do
        build root "$goal" "cd /src/sqlock && $(command_of "$goal")"
    done
}

try_as_user() { # GOAL...
    local goal as_user needed
    new_debian
    fresh_sources 1234
    for goal; do
        as_user="cd /src/sqlock && exec su newcomer -c '$(command_of "$goal")'"
        echo "== as user: $(command_of "$goal"), before what it needs is there"
        # The last line of those words is the command for who may install.
        if inside "$as_user" >"$dir/refused.log" 2>&1; then
            rows+=("user  $goal  had all it needs")
            continue
        fi
        needed=$(sed -n 's/^ *\(apt-get install .*\)/\1/p' "$dir/refused.log" |
            head -n 1)
        [ -n "$needed" ] || {
            row user "$goal" 1 0 "$dir/refused.log"
            continue
        }
        inside "$needed -y" >"$dir/needed.log" 2>&1 || {
            row user "$goal" 1 0 "$dir/needed.log"
            continue
        }
        build user "$goal" "$as_user"
    done
}

for who in ${BARE_AS:-root user}; do
    "try_as_$who" "$@"
done

printf '\n'
printf '%s\n' "${rows[@]}"
exit "$status"
