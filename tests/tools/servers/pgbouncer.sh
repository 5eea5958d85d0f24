#!/usr/bin/env bash
# pgbouncer.sh DIR: run a private PostgreSQL behind PgBouncer in DIR; see
# common.sh.  SQLOCK_TEST_POOL_MODE is session (the default) or transaction.
# SQLOCK_TEST_POOLER_OF is the URL of a PostgreSQL of this machine, which is
# then behind PgBouncer in place of a private one.  The lines of
# SQLOCK_TEST_POOLER_SETTINGS are added to PgBouncer's configuration.
#
# The published administrator's URL, process id and socket are PostgreSQL's.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_home "$dir"
trap 'end_server TERM' TERM INT
trap 'end_children; rm -rf "$dir"' EXIT

# Find PgBouncer: that of fetch.sh, the installed one, or that of
# fetch-postgres.sh, which needs the path of its libraries.
pooler=${SQLOCK_TEST_TREES:-${here%/*/*/*}/build/servers}/pgbouncer
pooler=$pooler/usr/sbin/pgbouncer
as_pooler=()
if [ ! -x "$pooler" ] && ! pooler=$(PATH=$PATH:/usr/sbin command -v pgbouncer); then
    tree=$(reachable "${here%/*/*/*}/build/servers/pooler/usr" sbin/pgbouncer "$dir")
    pooler=$tree/sbin/pgbouncer
    as_pooler=(env "LD_LIBRARY_PATH=$(printf '%s:' "$tree"/lib/*-linux-gnu*)$tree/lib")
fi
[ -x "$pooler" ] || absent "no PgBouncer"
server=${SQLOCK_TEST_POOLER_OF:-}
if [ -n "$server" ]; then
    SQLOCK_TEST_PASSWORD=${server#*://*:}
    SQLOCK_TEST_PASSWORD=${SQLOCK_TEST_PASSWORD%%@*}
else
    SQLOCK_TEST_PASSWORD=$(password)
    export SQLOCK_TEST_PASSWORD
    start_child postgres.sh "$dir/server"
    server=$(of_child "$dir/server" SQLOCK_TEST_POSTGRES_URL)
fi
if [ -n "${SQLOCK_TEST_TREE:-}" ]; then
    SQLOCK_TEST_POSTGRES_BIN=$(printf '%s\n' \
        "$SQLOCK_TEST_TREE"/usr/lib/postgresql/*/bin | head -n 1)
    export SQLOCK_TEST_POSTGRES_BIN
fi
psql=$(bash "$here/postgres-bin.sh")/psql
port=$(free_port)

cd / || exit 1
(umask 027 && printf '"sqlock_test" "%s"\n"postgres" "%s"\n' \
    "$SQLOCK_TEST_PASSWORD" "$SQLOCK_TEST_PASSWORD" >"$dir/users")
write_config() {
    cat >"$dir/config" <<END
[databases]
* = host=127.0.0.1 port=$(port_of "$server")
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $dir/users
auth_user = postgres
auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = \$1
pool_mode = ${SQLOCK_TEST_POOL_MODE:-session}
max_client_conn = 400
default_pool_size = 150
${SQLOCK_TEST_POOLER_SETTINGS:-}
END
    # PgBouncer before 1.19 runs auth_query in the client's database.
    case $("${as_pooler[@]}" "$pooler" --version) in
    *' 1.1'[0-8].*) ;;
    *) echo 'auth_dbname = postgres' >>"$dir/config" ;;
    esac
}
if [ ${#as_server[@]} -gt 0 ]; then
    chown nobody "$dir/users"
fi

launch() {
    [ -e "$dir/env" ] || port=$(free_port)
    write_config
    "${as_server[@]}" setpriv --pdeathsig TERM "${as_pooler[@]}" \
        "$pooler" "$dir/config" \
        >>"$dir/log" 2>&1 &
    server_pid=$!
}

url() {
    echo "postgresql://sqlock_test:$SQLOCK_TEST_PASSWORD@127.0.0.1:$port/sqlock"
}

answers() {
    "$psql" -X -q -c 'SELECT 1' "$(url)"
}

publish() {
    [ ! -e "$dir/server/env" ] || grep -v _POSTGRES_URL= "$dir/server/env"
    echo "SQLOCK_TEST_POSTGRES_URL='$(url)'"
    echo "SQLOCK_TEST_POSTGRES_POOLER=pgbouncer"
}

supervise "$dir"
