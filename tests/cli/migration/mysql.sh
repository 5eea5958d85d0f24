#!/usr/bin/env bash
# mysql.sh: migrations of MySQL and MariaDB.
# shellcheck source=tests/cli/migration/lib.sh
. "$(dirname "$0")/lib.sh"
migrations_on MYSQL
