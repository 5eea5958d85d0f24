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

# An upgrade that ended after its first step: nobody takes locks in that table
# until the script has been run again.
half_way() {
    layout=spring6 about="$database: half an upgrade: "
    prefix=UP${$}_half_
    sq init --layout "$layout" >/dev/null 2>&1
    query "ALTER TABLE ${prefix}LOCK ADD COLUMN EXPIRED_AFTER DATETIME(6),
        ADD COLUMN FENCE BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN LOCK_NAME VARCHAR(255) COLLATE utf8mb4_bin,
        ADD COLUMN HOLDER VARCHAR(255) COLLATE utf8mb4_bin,
        ADD COLUMN QUEUE MEDIUMTEXT COLLATE utf8mb4_bin,
        ADD COLUMN SHARERS MEDIUMTEXT COLLATE utf8mb4_bin,
        ADD COLUMN LEADER MEDIUMTEXT COLLATE utf8mb4_bin" >/dev/null
    is "is not opened" "$(status_of sq run -n key -- true)" 69
    is "is said to be one" "$(grep -c 'not complete' "$dir/status.err")" 1
    is "is completed" "$(status_of upgrade)" 0
    is "is the layout of sqlock then" "$(status_of sq init)" 0
    drop_tables
}
# A login that may not create triggers gets no further than half.
without_triggers() {
    layout=spring6 about="$database: an upgrade without triggers: "
    prefix=UP${$}_bare_
    sq init --layout "$layout" >/dev/null 2>&1
    for one in INSERT UPDATE; do # names that the script needs
        query "CREATE TABLE IF NOT EXISTS ${prefix}other (i INT)" >/dev/null
        query "CREATE TRIGGER ${prefix}LOCK_FOUR_COLUMNS_$one BEFORE $one
            ON ${prefix}other FOR EACH ROW SET @x = 1" >/dev/null
    done
    upgrade_with $((ttl * 1000)) on
    is "is not completed" "$(status_of sq run -n key -- true)" 69
    query "DROP TABLE ${prefix}other" >/dev/null
    upgrade_with $((ttl * 1000)) on
    is "is completed when they can be made" \
        "$(status_of sq run -n key -- true)" 0
    drop_tables
}

half_way
without_triggers
without_server
upgrades
