#!/usr/bin/env bash
# mysql.sh: upgrades from Spring's layouts to sqlock's while locks are held, on
# MySQL and MariaDB.
# shellcheck source=tests/cli/upgrade/lib.sh
. "$(dirname "$0")/lib.sh"
database=mysql
needs SQLOCK_TEST_MYSQL_URL
past="'2020-01-01 00:00:00'" expired="'2020-01-01 00:00:10'"

# mysql://user:password@host:port/database
[[ $SQLOCK_URL =~ ^mysql://([^:]*):([^@]*)@([^:]*):([0-9]*)/(.*)$ ]] || exit 1
program=$(command -v mariadb || command -v mysql)
client=("$program" --no-defaults -u "${BASH_REMATCH[1]}" -h "${BASH_REMATCH[3]}"
    -P "${BASH_REMATCH[4]}" "${BASH_REMATCH[5]}" -N)
export MYSQL_PWD=${BASH_REMATCH[2]}

query() { # SQL
    "${client[@]}" -e "$1"
}

upgrades
