#!/usr/bin/env bash
# try.sh: do what a newcomer does with compose.yaml, `docker compose up` and ^C,
# and check what it shows: each worker gets the lock in each database, no two at a
# time, `top` sees it held and handed over, and everything ends cleanly.
#
# Needs Docker with the compose plugin or docker-compose 1.29.  Images as for
# test.sh; SQLOCK_COMMAND_IMAGE names one of the command, such as command.sh
# leaves, in place of the one that compose builds.
set -u
cd "$(dirname "$0")/.." || exit 1
FILE=docker/compose.yaml
# shellcheck source=docker/common.sh
. docker/common.sh

use_local_images postgres mariadb command
log=$(mktemp /tmp/sqlock-try.XXXXXX) || exit 1
trap 'down; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A background job of a script ignores ^C, unless it has a group of its own.
set -m
"${compose[@]}" --ansi never up >"$log" 2>&1 &
up=$!
set +m

# Print the output of a container, without the prefix that compose puts before.
said() { # SERVICE
    sed -n "s/^$1[_-]1[^|]*| //p; s/^[^ ]*[_-]$1[_-]1 *| //p" "$log"
}

# The count of workers that had the lock of that database.
had() { # SCHEME
    grep -oE "worker-[123] has the lock in $1," "$log" | sort -u | wc -l
}

shows_turns() { # SERVICE
    said "$1" | grep -qE '^held 1 .* hand-overs [0-9.]*[1-9]' &&
        said "$1" | grep -q '^nightly-report *held .*worker-[123]'
}

has_seen_all() {
    [ "$(had postgresql)" -eq 3 ] && [ "$(had mysql)" -eq 3 ] &&
        shows_turns top-postgres && shows_turns top-mariadb
}

end=$((SECONDS + 300))
until has_seen_all; do
    kill -0 "$up" 2>/dev/null || break
    [ "$SECONDS" -lt "$end" ] || break
    sleep 0.5
done
has_seen_all || {
    tail -n 60 "$log" >&2
    fail "not all workers have had both locks, or top has not shown it"
}

kill -INT -- "-$up"
wait "$up"
for service in worker-1 worker-2 worker-3 top-postgres top-mariadb; do
    id=$("${compose[@]}" ps -a -q "$service" 2>/dev/null ||
        "${compose[@]}" ps -q "$service")
    state=$(docker inspect -f '{{.State.Status}} {{.State.ExitCode}}' "$id")
    [ "$state" = 'exited 0' ] || {
        docker logs --tail 20 "$id" >&2
        fail "$service is '$state' after ^C"
    }
done

# Tokens rise with each turn, in the order in which the workers said so.
for scheme in postgresql mysql; do
    sed -n "s/.*lock in $scheme, token //p" "$log" | sort -n -c ||
        fail "$scheme: tokens do not rise"
done
for service in top-postgres top-mariadb; do
    said "$service" | grep -A 3 '^held 1' | tail -n 4
done
echo "try.sh: three workers take turns in two databases, and end at ^C"
