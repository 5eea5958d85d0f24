#!/usr/bin/env bash
# command.sh [DOCKER-BUILD-OPTION...]: build the image of Dockerfile.command from
# what is committed, and try it: two containers that share a database file take
# turns, and the exit status of what ran is the container's.
#
# SQLOCK_BASE_IMAGE names another Debian to start from, such as
# sqlock-local/base of local-images.sh.  The image stays, called sqlock-command.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/tools/servers/common.sh
. tests/tools/servers/common.sh
command -v docker >/dev/null && docker info >/dev/null 2>&1 ||
    fail "no Docker daemon answers"

base=()
[ -z "${SQLOCK_BASE_IMAGE-}" ] || base=(--build-arg "BASE=$SQLOCK_BASE_IMAGE")
git archive HEAD | docker build -q -f docker/Dockerfile.command \
    -t sqlock-command "${base[@]}" "$@" - || fail "the image is not built"

volume=$(mktemp -d /tmp/sqlock-command.XXXXXX) || exit 1
trap 'rm -rf "$volume"' EXIT
chmod 1777 "$volume"
sqlock() { # ARGUMENT...
    docker run --rm --network none --init -v "$volume:/data" \
        -e SQLOCK_URL=sqlite:/data/locks.db sqlock-command "$@"
}
sqlock --version || fail "the command does not start"
sqlock init || fail "no table is made"
sqlock run -t 2 job -c 'touch /data/held; sleep 3; echo first >>/data/turns' &
until [ -e "$volume/held" ]; do sleep 0.1; done
sqlock run --no-wait job -- true
[ $? -eq 75 ] || fail "a lock that is held was had"
sqlock run job -c 'echo second >>/data/turns; exit 7'
[ $? -eq 7 ] || fail "the exit status is not the command's"
wait
[ "$(tr '\n' ' ' <"$volume/turns")" = 'first second ' ] ||
    fail "the containers have not taken turns: $(cat "$volume/turns")"
sqlock ls
echo "command.sh: containers take turns"
