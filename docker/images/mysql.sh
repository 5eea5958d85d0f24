#!/bin/bash
# mysql.sh: entry point of the local MariaDB and MySQL images.  Does what
# ../compose.yaml asks of the official images: makes the data, the database and
# the users at the first start, without TCP, then becomes the server.
set -eu
data=/var/lib/mysql
run=/run/mysqld
root_password=${MARIADB_ROOT_PASSWORD:-${MYSQL_ROOT_PASSWORD:-}}
database=${MARIADB_DATABASE:-${MYSQL_DATABASE:-}}
user=${MARIADB_USER:-${MYSQL_USER:-}}
password=${MARIADB_PASSWORD:-${MYSQL_PASSWORD:-}}

fail() {
    echo "$*" >&2
    exit 1
}

if command -v mariadbd >/dev/null; then
    server=(mariadbd)
else
    server=(mysqld)
fi
mkdir -p "$data" "$run"
chown nobody:nogroup "$data" "$run"
as_server=(setpriv --reuid nobody --regid nogroup --clear-groups)
server+=(--datadir="$data" --socket="$run/mysqld.sock"
    --pid-file="$run/mysqld.pid")

make_data() {
    if [ "${server[0]}" = mariadbd ]; then
        "${as_server[@]}" mariadb-install-db --datadir="$data" \
            --auth-root-authentication-method=normal --skip-test-db
    else
        "${as_server[@]}" mysqld --datadir="$data" --initialize-insecure
    fi
}

make_users() {
    mysql -S "$run/mysqld.sock" -u root <<SQL
CREATE DATABASE IF NOT EXISTS $database;
CREATE USER $user@'%' IDENTIFIED BY '$password';
GRANT ALL ON $database.* TO $user@'%';
CREATE USER root@'%' IDENTIFIED BY '$root_password';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
ALTER USER root@localhost IDENTIFIED BY '$root_password';
SQL
}

if [ ! -d "$data/mysql" ]; then
    make_data
    # In no cluster yet, whatever the configuration says.
    alone=(--skip-networking)
    [ "${server[0]}" != mariadbd ] || alone+=(--wsrep-on=OFF)
    "${as_server[@]}" "${server[@]}" "${alone[@]}" &
    pid=$!
    end=$((SECONDS + 60))
    until mysql -S "$run/mysqld.sock" -u root -e 'SELECT 1' \
        >/dev/null 2>&1; do
        kill -0 "$pid" 2>/dev/null || fail "the server does not start"
        [ "$SECONDS" -lt "$end" ] || fail "the server does not answer"
        sleep 0.1
    done
    make_users
    kill "$pid"
    wait "$pid"
fi
exec "${as_server[@]}" "${server[@]}" "$@"
