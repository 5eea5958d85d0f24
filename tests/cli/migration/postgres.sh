#!/usr/bin/env bash
# postgres.sh: migrations of PostgreSQL.
# shellcheck source=tests/cli/migration/lib.sh
. "$(dirname "$0")/lib.sh"
migrations_on POSTGRES
