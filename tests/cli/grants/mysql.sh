#!/usr/bin/env bash
# mysql.sh: the rights of each role on MySQL and MariaDB.
# shellcheck source=tests/cli/grants/lib.sh
. "$(dirname "$0")/lib.sh"
database=mysql
needs SQLOCK_TEST_MYSQL_ADMIN_URL
program=$(command -v mariadb || command -v mysql)

mysql_at() { # URL ARGUMENT...
    [[ $1 =~ ^mysql://([^:]*):([^@]*)@([^:]*):([0-9]*)/([^?]*) ]] || exit 1
    shift
    MYSQL_PWD=${BASH_REMATCH[2]} "$program" --no-defaults --protocol=tcp -N \
        -u "${BASH_REMATCH[1]}" -h "${BASH_REMATCH[3]}" \
        -P "${BASH_REMATCH[4]}" "${BASH_REMATCH[5]}" "$@"
}
admin() { # SQL
    mysql_at "$SQLOCK_TEST_MYSQL_ADMIN_URL" -e "$1"
}
url_of() { # ROLE
    case $1 in
    owner) # of all databases, as an administrator
        echo "$SQLOCK_TEST_MYSQL_ADMIN_URL"
        ;;
    *)
        # shellcheck disable=SC2001 # a part of it
        sed "s,//[^@]*@,//$(login_of "$1"):$password@," \
            <<<"$SQLOCK_TEST_MYSQL_URL"
        ;;
    esac
}
ask() { # ROLE SQL
    mysql_at "$(url_of "$1")" -e "$2"
}
grant() { # ROLE PREFIX
    mysql_at "$SQLOCK_TEST_MYSQL_ADMIN_URL" --init-command="SET \
@sqlock_account = '$(login_of "$1")@''%''', @sqlock_prefix = '$2'" \
        <"$root/sql/mysql/grants-$1.sql"
}
make_logins() {
    local role
    admin "CREATE DATABASE $schema"
    for role in "${roles[@]}"; do
        admin "CREATE USER $(login_of "$role")@'%' IDENTIFIED BY '$password'"
        # A login without any right in a database cannot connect to it.
        admin "CREATE TABLE IF NOT EXISTS GR${$}_DOOR (N INT);
            GRANT SELECT ON GR${$}_DOOR TO $(login_of "$role")@'%'"
    done
}
drop_all() {
    local role
    {
        admin "DROP DATABASE $schema"
        for role in "${roles[@]}"; do
            admin "DROP USER $(login_of "$role")@'%'"
        done
        admin "DROP VIEW GR${$}_LOCK_NOW"
        for table in DOOR LOCK LOCK_SERVER DONE STOCK STOCK_ENTRY \
            STOCK_RESERVATION; do
            admin "DROP TABLE GR${$}_$table"
        done
    } >/dev/null 2>&1
}

roles_on "$schema"
