#!/bin/sh
# primary-init.sh: run once, after postgres-init.sh, by the primary of
# compose.standby.yaml: let a standby in, and wait for it from the next start on.
set -eu
echo 'host replication postgres all scram-sha-256' >>"${PGDATA:-/var/lib/postgresql/data}/pg_hba.conf"
psql -X -q -v ON_ERROR_STOP=1 -U postgres \
    -c "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'"
