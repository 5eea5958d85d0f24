#!/usr/bin/env bash
# test.sh [SUITE...]: run test suites (conformance) against the servers of
# compose.yaml: PostgreSQL and, first, MariaDB, then Oracle's MySQL.  The
# containers are taken down whatever happens.
#
# Needs Docker with the compose plugin or docker-compose 1.29, and the test
# programs in $SQLOCK_BUILD (build): `make docker-test` builds them first.
#
# SQLOCK_POSTGRES_IMAGE, SQLOCK_MARIADB_IMAGE, SQLOCK_MYSQL_IMAGE choose other
# images; SQLOCK_DOCKER_IMAGES=local takes those of local-images.sh, and makes
# them when they are missing.  SQLOCK_POSTGRES_PORT, SQLOCK_MARIADB_PORT,
# SQLOCK_MYSQL_PORT choose ports; without them they are free ones.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/servers/common.sh
. tests/servers/common.sh

[ $# -gt 0 ] || set -- conformance

if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
elif command -v docker-compose >/dev/null; then
    compose=(docker-compose)
else
    fail "neither the compose plugin of docker nor docker-compose is there"
fi
docker info >/dev/null 2>&1 || fail "no Docker daemon answers"
compose+=(-f docker/compose.yaml -p "sqlock-test-$$")

if [ "${SQLOCK_DOCKER_IMAGES:-}" = local ]; then
    bash docker/local-images.sh || exit 1
    for name in postgres mariadb mysql; do
        export "SQLOCK_${name^^}_IMAGE=sqlock-local/$name"
    done
fi
SQLOCK_TEST_PASSWORD=$(password)
export SQLOCK_TEST_PASSWORD
for name in POSTGRES MARIADB MYSQL; do
    port=SQLOCK_${name}_PORT
    export "$port=${!port:-$(free_port)}"
done

# shellcheck disable=SC2317 # called by the trap
down() {
    trap '' INT TERM
    "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 ||
        echo "test.sh: could not take the containers down" >&2
}
trap down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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

# The server's process, where it can be signalled from here.
pid_of() { # SERVICE
    local pid
    pid=$(docker inspect -f '{{.State.Pid}}' "$(container_of "$1")") || return
    if kill -0 "$pid" 2>/dev/null; then
        echo "$pid"
    fi
}

run_with() { # SERVICE PORT SUITE...
    local service=$1 at=127.0.0.1:$2/sqlock
    shift 2
    echo "test.sh: with $service"
    SQLOCK_TEST_MYSQL_URL=mysql://sqlock_test:$SQLOCK_TEST_PASSWORD@$at
    SQLOCK_TEST_MYSQL_ADMIN_URL=mysql://root:$SQLOCK_TEST_PASSWORD@$at
    SQLOCK_TEST_MYSQL_PID=$(pid_of "$service")
    export SQLOCK_TEST_MYSQL_URL SQLOCK_TEST_MYSQL_ADMIN_URL \
        SQLOCK_TEST_MYSQL_PID
    # An empty list: no private servers instead of those here.
    SQLOCK_TEST_SERVERS='' bash tests/run.sh "$@"
}

"${compose[@]}" up -d || fail "the containers do not start; where no registry\
 is reachable, SQLOCK_DOCKER_IMAGES=local makes the images here"
for service in postgres mariadb mysql; do
    wait_until_healthy "$service"
done

at=127.0.0.1:$SQLOCK_POSTGRES_PORT/sqlock
export SQLOCK_TEST_POSTGRES_URL=postgresql://sqlock_test:$SQLOCK_TEST_PASSWORD@$at
export SQLOCK_TEST_POSTGRES_ADMIN_URL=postgresql://postgres:$SQLOCK_TEST_PASSWORD@$at
SQLOCK_TEST_POSTGRES_PID=$(pid_of postgres)
export SQLOCK_TEST_POSTGRES_PID

status=0
run_with mariadb "$SQLOCK_MARIADB_PORT" "$@" || status=1
run_with mysql "$SQLOCK_MYSQL_PORT" "$@" || status=1
exit "$status"
