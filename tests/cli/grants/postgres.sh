#!/usr/bin/env bash
# postgres.sh: the rights of each role on PostgreSQL.
# shellcheck source=tests/cli/grants/lib.sh
. "$(dirname "$0")/lib.sh"
database=postgres
needs SQLOCK_TEST_POSTGRES_ADMIN_URL

psql() { # URL ARGUMENT...
    bash "$root/tests/tools/servers/psql.sh" -X -q -A -t -v ON_ERROR_STOP=1 "$@"
}
admin() { # SQL
    psql "$SQLOCK_TEST_POSTGRES_ADMIN_URL" -c "$1"
}
url_of() { # ROLE
    if [ "$1" = owner ]; then
        echo "$SQLOCK_TEST_POSTGRES_URL"
    else
        # shellcheck disable=SC2001 # a part of it
        sed "s,//[^@]*@,//$(login_of "$1"):$password@," \
            <<<"$SQLOCK_TEST_POSTGRES_URL"
    fi
}
ask() { # ROLE SQL
    psql "$(url_of "$1")" -c "$2"
}
grant() { # ROLE PREFIX: as the owner of the tables
    psql "$SQLOCK_TEST_POSTGRES_URL" -c "SET sqlock.role = '$(login_of "$1")'" \
        -c "SET sqlock.prefix = '$2'" -f "$root/sql/postgres/grants-$1.sql"
}
make_logins() {
    local role owner
    owner=$(sed 's,.*//\([^:]*\):.*,\1,' <<<"$SQLOCK_TEST_POSTGRES_URL")
    admin "CREATE SCHEMA $schema AUTHORIZATION $owner"
    for role in "${roles[@]}"; do
        admin "CREATE ROLE $(login_of "$role") LOGIN PASSWORD '$password'"
    done
}
drop_all() {
    local role
    {
        admin "DROP SCHEMA $schema CASCADE"
        for role in "${roles[@]}"; do
            admin "DROP OWNED BY $(login_of "$role")"
            admin "DROP ROLE $(login_of "$role")"
        done
        ask owner "DROP VIEW GR${$}_LOCK_NOW"
        for table in LOCK LOCK_SERVER LOCK_MARK DONE STOCK STOCK_ENTRY \
            STOCK_RESERVATION; do
            ask owner "DROP TABLE GR${$}_$table"
        done
    } >/dev/null 2>&1
}

roles_on "$schema"
