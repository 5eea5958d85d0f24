#!/usr/bin/env bash
# mariadb.sh DIR: run a private MariaDB in DIR; see common.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_home "$dir"
PATH=$PATH:/usr/sbin:/sbin
base=()
if [ -n "${SQLOCK_TEST_TREE:-}" ]; then
    use_tree bin sbin
    base=(--basedir="$SQLOCK_TEST_TREE/usr")
fi
server=$(command -v mariadbd || command -v mysqld) || absent "no MariaDB server"
shell=$(command -v mariadb || command -v mysql) || absent "no MariaDB shell"
install=$(command -v mariadb-install-db || command -v mysql_install_db) ||
    absent "no mariadb-install-db"
user_password=$(password)
admin_password=$(password)
port=$(free_port)
socket=$dir/run/s

trap 'end_server TERM' TERM INT
trap 'rm -rf "$dir"' EXIT

cd / || exit 1
# With --force it does not matter whether this host's name can be looked up.
# Each server that starts, even the one that makes the system tables, removes
# temporary tables from its tmpdir.  In a shared folder those would be another
# server's.
"${as_server[@]}" "$install" --no-defaults "${base[@]}" \
    --datadir="$dir/data" --tmpdir="$dir/run" \
    --auth-root-authentication-method=normal --skip-test-db --force \
    --innodb-log-file-size=8M >"$dir/log" 2>&1 || {
    grep ERROR "$dir/log" >&2
    fail "$install failed"
}

# A time zone that is not UTC, nor of whole hours, shows code that depends on
# it.
settings=(--datadir="$dir/data" --socket="$socket" --bind-address=127.0.0.1
    --skip-name-resolve --default-time-zone=+05:30 --max-connections=400
    --innodb-buffer-pool-size=64M --innodb-log-file-size=8M --skip-log-bin
    --pid-file="$dir/run/pid" --tmpdir="$dir/run")
# The performance schema shows what clients tell of themselves; it counts
# nothing here, which saves 120 MB.
settings+=(--performance-schema=ON)
for count in {mutex,rwlock,cond,file,socket,stage,statement,memory}-classes \
    table-instances table-handles digest-length sql-text-length; do
    settings+=("--performance-schema-max-$count=0")
done
for table in digests accounts hosts users \
    events-{statements,transactions,waits}-history-long; do
    settings+=("--performance-schema-$table-size=0")
done
# A server that is killed loses no commit, though none waits for the disk.
if [ "${SQLOCK_TEST_DURABLE:-}" != 1 ]; then
    settings+=(--innodb-flush-method=nosync --innodb-doublewrite=OFF)
fi
if [ -n "${SQLOCK_TEST_TLS:-}" ]; then
    settings+=(--ssl-cert="$SQLOCK_TEST_TLS/mysql/cert.pem"
        --ssl-key="$SQLOCK_TEST_TLS/mysql/key.pem")
fi

# More options of the caller, without spaces in them.
read -ra options <<<"${SQLOCK_TEST_MARIADB_OPTIONS:-}"
settings+=("${options[@]}")

launch() {
    [ -e "$dir/env" ] || port=$(free_port)
    "${as_server[@]}" setpriv --pdeathsig TERM "${clock[@]}" "$server" \
        --no-defaults "${base[@]}" \
        "${settings[@]}" --port="$port" >>"$dir/log" 2>&1 &
    server_pid=$!
}

answers() {
    if [ -e "$dir/env" ]; then
        "$shell" --no-defaults -S "$socket" -u root "-p$admin_password" \
            -e 'SELECT 1'
        return
    fi
    first_statements "$user_password" "$admin_password" |
        "$shell" --no-defaults -S "$socket" -u root
}

publish() {
    publish_mysql "$user_password" "$admin_password"
}

supervise "$dir"
