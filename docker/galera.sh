#!/usr/bin/env bash
# galera.sh: run the Galera suite on the nodes of compose.galera.yaml, kill one,
# and take a lock on another.  Needs and variables as test.sh, with
# SQLOCK_GALERA_{1,2,3}_PORT.  The containers are taken down whatever happens.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${SQLOCK_BUILD:-build}
FILE=docker/compose.galera.yaml
# shellcheck source=docker/common.sh
. docker/common.sh

use_local_images mariadb
choose_ports GALERA_1 GALERA_2 GALERA_3
bring_up node1 node2 node3

url() { # NODE
    local port=SQLOCK_GALERA_$1_PORT
    echo "mysql://sqlock_test:$SQLOCK_TEST_PASSWORD@127.0.0.1:${!port}/sqlock"
}
for node in 1 2 3; do
    export "SQLOCK_TEST_GALERA_${node}_URL=$(url "$node")"
done
SQLOCK_TEST_MYSQL_URL=$(url 1) SQLOCK_TEST_SERVERS='' "$build/tests/galera" ||
    fail "the suite has failed"

docker kill -s KILL "$(container_of node3)" >/dev/null || fail "cannot kill it"
for node in 1 2; do
    SQLOCK_URL=$(url "$node") "$build/bin/sqlock" run --table-prefix ga_ --wait 30s \
        after -- echo "galera.sh: node $node grants locks after a node was killed" ||
        fail "no lock on node $node"
done
