#!/usr/bin/env bash
# promote.sh: take a lock on the primary of compose.standby.yaml, kill it, promote
# the standby, and take the lock again by the same URL, with a greater token.
# Needs and variables as test.sh, with SQLOCK_{PRIMARY,STANDBY}_PORT.  The
# containers are taken down whatever happens.
set -u
cd "$(dirname "$0")/.." || exit 1
sqlock=${SQLOCK_BUILD:-build}/bin/sqlock
FILE=docker/compose.standby.yaml
# shellcheck source=docker/common.sh
. docker/common.sh

use_local_images postgres
choose_ports PRIMARY STANDBY
bring_up primary standby

SQLOCK_URL=postgresql://sqlock_test:$SQLOCK_TEST_PASSWORD@127.0.0.1:$SQLOCK_PRIMARY_PORT
SQLOCK_URL+=,127.0.0.1:$SQLOCK_STANDBY_PORT/sqlock
export SQLOCK_URL

token() {
    "$sqlock" run --wait 60s job -- sh -c 'echo "$SQLOCK_TOKEN"'
}

"$sqlock" init || fail "the table cannot be made"
before=$(token) || fail "no lock on the primary"
docker kill -s KILL "$(container_of primary)" >/dev/null || fail "cannot kill it"
docker exec -u postgres "$(container_of standby)" sh -c \
    'pg_ctl promote -w -D /var/lib/postgresql/data' || fail "no promotion"
after=$(token) || fail "no lock on the promoted standby"
[ "$after" -gt "$before" ] || fail "token $after after $before"
echo "promote.sh: token $before on the primary, $after on the promoted standby"
