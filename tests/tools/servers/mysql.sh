#!/usr/bin/env bash
# mysql.sh DIR: run a private Oracle MySQL in DIR; see common.sh.  Its programs
# are in SQLOCK_TEST_MYSQL_TREE, made by tests/tools/servers/fetch-mysql.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
tree=$(cd "${SQLOCK_TEST_MYSQL_TREE:-$here/../../../build/servers/mysql}" \
    2>/dev/null && pwd) || absent "no tree of MySQL"
[ -x "$tree/mysqld" ] || absent "no MySQL server in $tree"
make_home "$dir"
at=$(reachable "$tree" usr/sbin/mysqld "$dir")
if [ "$at" != "$tree" ]; then
    # The scripts mysqld and mysql call the programs by their absolute paths.
    sed -i "s,$tree,$at,g" "$at/mysqld" "$at/mysql"
    tree=$at
fi
user_password=$(password)
admin_password=$(password)
port=$(free_port)
socket=$dir/run/s
shell=("$tree/mysql" -S "$socket" -u root)

trap 'end_server TERM' TERM INT
trap 'rm -rf "$dir"' EXIT

cd / || exit 1
# A server that starts removes temporary tables from its tmpdir, which must not
# be shared.
settings=(--datadir="$dir/data" --tmpdir="$dir/run"
    --innodb-redo-log-capacity=8M
    --innodb-doublewrite=OFF)
"${as_server[@]}" "$tree/mysqld" "${settings[@]}" --initialize-insecure \
    >"$dir/log" 2>&1 || {
    tail -n 20 "$dir/log" >&2
    fail "mysqld --initialize-insecure failed"
}

# A time zone that is not UTC, nor of whole hours, shows code that depends on
# it.
settings+=(--socket="$socket" --bind-address=127.0.0.1 --skip-name-resolve
    --default-time-zone=+05:30 --max-connections=400 --mysqlx=OFF
    --innodb-buffer-pool-size=64M --skip-log-bin --performance-schema=OFF
    --pid-file="$dir/run/pid")
# A server that is killed loses no commit, though none waits for the disk.
if [ "${SQLOCK_TEST_DURABLE:-}" != 1 ]; then
    settings+=(--innodb-flush-method=nosync)
fi
# More options of the caller, without spaces in them.
read -ra more <<<"${SQLOCK_TEST_MYSQL_SETTINGS:-}"
settings+=("${more[@]}")
if [ -n "${SQLOCK_TEST_TLS:-}" ]; then
    settings+=(--ssl-cert="$SQLOCK_TEST_TLS/mysql/cert.pem"
        --ssl-key="$SQLOCK_TEST_TLS/mysql/key.pem")
fi

launch() {
    [ -e "$dir/env" ] || port=$(free_port)
    "${as_server[@]}" setpriv --pdeathsig TERM "$tree/mysqld" \
        "${settings[@]}" --port="$port" >>"$dir/log" 2>&1 &
    server_pid=$!
}

answers() {
    if [ -e "$dir/env" ]; then
        MYSQL_PWD=$admin_password "${shell[@]}" -e 'SELECT 1'
        return
    fi
    {
        echo "SET sql_log_bin = 0;"
        first_statements "$user_password" "$admin_password"
    } | "${shell[@]}"
}

publish() {
    publish_mysql "$user_password" "$admin_password"
}

supervise "$dir"
