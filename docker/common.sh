# shellcheck shell=bash
# common.sh: what the scripts that bring containers up share; to be sourced from
# the root of the sources, after FILE, the compose file, is set.
# shellcheck source=tests/tools/servers/common.sh
. tests/tools/servers/common.sh

if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
elif command -v docker-compose >/dev/null; then
    compose=(docker-compose)
else
    fail "neither the compose plugin of docker nor docker-compose is there"
fi
docker info >/dev/null 2>&1 || fail "no Docker daemon answers"
compose+=(-f "$FILE" -p "sqlock-test-$$")

SQLOCK_TEST_PASSWORD=$(password)
export SQLOCK_TEST_PASSWORD

# Images of local-images.sh, where they are asked for.
use_local_images() { # NAME...
    local name
    [ "${SQLOCK_DOCKER_IMAGES:-}" = local ] || return 0
    bash docker/local-images.sh "$@" || exit 1
    for name; do
        export "SQLOCK_${name^^}_IMAGE=sqlock-local/$name"
    done
}

# A port for each, unless SQLOCK_NAME_PORT chooses.
choose_ports() { # NAME...
    local name port
    for name in "$@"; do
        port=SQLOCK_${name}_PORT
        export "$port=${!port:-$(free_port)}"
    done
}

# shellcheck disable=SC2317 # called by the trap
down() {
    trap '' INT TERM
    "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 ||
        echo "${0##*/}: could not take the containers down" >&2
}

container_of() { # SERVICE
    "${compose[@]}" ps -q "$1" 2>/dev/null
}

# Ask until the service is healthy; show what it said when it is not.
wait_until_healthy() { # SERVICE
    local end=$((SECONDS + 180)) id state
    id=$(container_of "$1")
    [ -n "$id" ] || fail "there is no container for $1"
    while :; do
        state=$(docker inspect -f '{{.State.Status}} {{.State.Health.Status}}' \
            "$id" 2>/dev/null)
        [ "$state" != "running healthy" ] || return 0
        case $state in
        exited* | dead* | *unhealthy) break ;;
        esac
        [ "$SECONDS" -lt "$end" ] || break
        sleep 0.2
    done
    docker logs --tail 40 "$id" >&2
    fail "$1 is $state"
}

# Bring up the services of FILE, and take them down in the end.
bring_up() { # SERVICE...
    local service
    trap down EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    "${compose[@]}" up -d || fail "the containers do not start; where no\
 registry is reachable, SQLOCK_DOCKER_IMAGES=local makes the images here"
    for service in "$@"; do
        wait_until_healthy "$service"
    done
}
