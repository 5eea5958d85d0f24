#!/usr/bin/env bash
# sqlite.sh: migrations of SQLite.
# shellcheck source=tests/cli/migration/lib.sh
. "$(dirname "$0")/lib.sh"
migrations_on SQLITE
