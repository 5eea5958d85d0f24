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
FILE=docker/compose.test.yaml
# shellcheck source=docker/common.sh
. docker/common.sh

[ $# -gt 0 ] || set -- conformance
use_local_images postgres mariadb mysql
choose_ports POSTGRES MARIADB MYSQL

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

bring_up postgres mariadb mysql
at=127.0.0.1:$SQLOCK_POSTGRES_PORT/sqlock
export SQLOCK_TEST_POSTGRES_URL=postgresql://sqlock_test:$SQLOCK_TEST_PASSWORD@$at
export SQLOCK_TEST_POSTGRES_ADMIN_URL=postgresql://postgres:$SQLOCK_TEST_PASSWORD@$at
SQLOCK_TEST_POSTGRES_PID=$(pid_of postgres)
export SQLOCK_TEST_POSTGRES_PID

status=0
run_with mariadb "$SQLOCK_MARIADB_PORT" "$@" || status=1
run_with mysql "$SQLOCK_MYSQL_PORT" "$@" || status=1
exit "$status"
