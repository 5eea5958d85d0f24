#!/usr/bin/env bash
# postgres.sh DIR: run a private PostgreSQL in DIR; see common.sh.
#
# SQLOCK_TEST_POSTGRES_TEMPLATE names a folder for the data of a server that has
# not run yet.  The first server makes it, later servers copy it.
# SQLOCK_TEST_POSTGRES_ROUNDS=N hashes passwords with N rounds, not with 4096.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_home "$dir"
if [ -n "${SQLOCK_TEST_TREE:-}" ]; then
    use_tree bin
    export SQLOCK_TEST_POSTGRES_BIN
    SQLOCK_TEST_POSTGRES_BIN=$(printf '%s\n' \
        "$SQLOCK_TEST_TREE"/usr/lib/postgresql/*/bin | head -n 1)
fi
bin=$(bash "$here/postgres-bin.sh") ||
    absent "no PostgreSQL server programs"
# Programs of fetch-postgres.sh need the path of their libraries.
case $bin in
*/build/servers/postgres/usr/*)
    inside=${bin##*/build/servers/postgres/usr/}
    tree=${bin%/"$inside"}
    tree=$(reachable "$tree" "$inside/postgres" "$dir")
    bin=$tree/$inside
    LD_LIBRARY_PATH=$(printf '%s:' "$tree"/lib/*-linux-gnu*)$tree/lib
    export LD_LIBRARY_PATH
    ;;
esac
for program in initdb postgres psql; do
    "$bin/$program" --version >/dev/null || fail "$bin/$program does not run"
done

user_password=$(password)
admin_password=$(password)
port=$(free_port)
# The tests must not depend on the caller's settings.
unset PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD PGOPTIONS PGSERVICE PGTZ
psql=("$bin/psql" -X -q -h "$dir/run" -U postgres -d postgres)

trap 'end_server INT' TERM INT
trap 'rm -rf "$dir"' EXIT

cd / || exit 1
# Make the data of a server that is no standby: copy the template, or run initdb
# and make the template.
make_data() {
    local template=${SQLOCK_TEST_POSTGRES_TEMPLATE:-}
    if [ -n "$template" ] && [ -e "$template/PG_VERSION" ]; then
        cp -a "$template/." "$dir/data"
        return
    fi
    "${as_server[@]}" "$bin/initdb" -D "$dir/data" -U postgres -N -E UTF8 \
        --locale=C --auth-local=trust --auth-host=scram-sha-256 \
        >"$dir/log" 2>&1 || {
        tail -n 20 "$dir/log" >&2
        fail "initdb failed"
    }
    [ -z "$template" ] || {
        cp -a "$dir/data" "$template.new" && mv -T "$template.new" "$template"
    } || fail "cannot write $template"
}
[ -e "$dir/data/PG_VERSION" ] || make_data

# A time zone that is not UTC, nor of whole hours, shows code that depends on
# it.
settings=(listen_addresses=127.0.0.1 "unix_socket_directories=$dir/run"
    max_connections=400 shared_buffers=32MB jit=off timezone=Asia/Kolkata)
if [ "${SQLOCK_TEST_DURABLE:-}" != 1 ]; then
    settings+=(fsync=off full_page_writes=off)
fi
# More settings of the caller, NAME=VALUE, without spaces in them.
read -ra more <<<"${SQLOCK_TEST_POSTGRES_SETTINGS:-}"
settings+=("${more[@]}")
if [ -n "${SQLOCK_TEST_TLS:-}" ]; then
    settings+=(ssl=on "ssl_cert_file=$SQLOCK_TEST_TLS/postgres/cert.pem"
        "ssl_key_file=$SQLOCK_TEST_TLS/postgres/key.pem")
fi

# Print a password for CREATE ROLE or ALTER ROLE: as it is, or hashed with
# SQLOCK_TEST_POSTGRES_ROUNDS rounds of SHA-256.  At each connection a client
# computes as many rounds.
for_sql() { # PASSWORD
    local rounds=${SQLOCK_TEST_POSTGRES_ROUNDS:-}
    [ -n "$rounds" ] || {
        echo "$1"
        return
    }
    python3 - "$1" "$rounds" <<'PYTHON' || echo "$1"
import base64, hashlib, hmac, os, sys

def sign(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()

def shown(data):
    return base64.b64encode(data).decode()

password, rounds = sys.argv[1:]
salt = os.urandom(16)
salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt,
                             int(rounds))
stored = hashlib.sha256(sign(salted, b"Client Key")).digest()
print("SCRAM-SHA-256$%s:%s$%s:%s"
      % (rounds, shown(salt), shown(stored),
         shown(sign(salted, b"Server Key"))))
PYTHON
}
user_secret=$(for_sql "$user_password")
admin_secret=$(for_sql "$admin_password")

launch() {
    [ -e "$dir/env" ] || port=$(free_port)
    "${as_server[@]}" setpriv --pdeathsig INT "${clock[@]}" "$bin/postgres" \
        -D "$dir/data" -p "$port" "${settings[@]/#/--}" >>"$dir/log" 2>&1 &
    server_pid=$!
}

answers() {
    if [ -e "$dir/env" ] || [ -e "$dir/data/standby.signal" ]; then
        "${psql[@]}" -p "$port" -c 'SELECT 1'
        return
    fi
    "${psql[@]}" -p "$port" -v ON_ERROR_STOP=1 <<SQL
ALTER ROLE postgres PASSWORD '$admin_secret';
DROP DATABASE IF EXISTS sqlock;
DROP ROLE IF EXISTS sqlock_test;
CREATE ROLE sqlock_test LOGIN PASSWORD '$user_secret';
CREATE DATABASE sqlock OWNER sqlock_test;
$([ "${SQLOCK_TEST_WAITING:-}" != poll ] || take_queue_away)
SQL
}

# Print SQL that lets only administrators call the functions of wait queues.
take_queue_away() {
    cat <<'SQL'
\connect sqlock
DO $$
DECLARE
    it text;
BEGIN
    FOR it IN SELECT oid::regprocedure FROM pg_proc
        WHERE proname LIKE 'pg\_%advisory%' OR proname = 'pg_notify'
    LOOP
        EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || it || ' FROM PUBLIC';
    END LOOP;
END
$$;
SQL
}

publish() {
    local at=127.0.0.1:$port/sqlock
    echo "SQLOCK_TEST_POSTGRES_URL='postgresql://sqlock_test:$user_password@$at'"
    echo "SQLOCK_TEST_POSTGRES_ADMIN_URL='postgresql://postgres:$admin_password@$at'"
    echo "SQLOCK_TEST_POSTGRES_SOCKET='$dir/run'"
    echo "SQLOCK_TEST_POSTGRES_PID='$server_pid'"
    echo "SQLOCK_TEST_POSTGRES_PIDFILE='$dir/pid'"
}

supervise "$dir"
