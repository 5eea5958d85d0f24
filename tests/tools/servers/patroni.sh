#!/usr/bin/env bash
# patroni.sh DIR: run three private nodes of PostgreSQL under Patroni in DIR, with
# one etcd; see common.sh.  The programs of Patroni are in
# SQLOCK_TEST_PATRONI_TREE, made by fetch-patroni.sh.
#
# Where DIR is called
#     patroni            commits do not wait for standbys
#     patroni-sync       they wait for one (synchronous_mode)
#     patroni-haproxy    the URL leads to HAProxy, which leads to the primary
# It publishes SQLOCK_TEST_POSTGRES_{URL,ADMIN_URL,BIN}, and SQLOCK_TEST_PATRONI,
# which is DIR; the nodes are DIR/{n1,n2,n3}, with data and run.  A server that
# ends comes back as a standby, once another one was promoted.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
tree=$(cd "${SQLOCK_TEST_PATRONI_TREE:-$here/../../../build/servers/patroni}" \
    2>/dev/null && pwd) || absent "no Patroni: see fetch-patroni.sh"
[ -e "$tree/version" ] || absent "no Patroni in $tree: see fetch-patroni.sh"
bin=$(bash "$here/postgres-bin.sh") || absent "no PostgreSQL server programs"
make_cluster
reached=$(reachable "$tree" usr/bin/etcd "$dir")
tree=$reached
modules=$tree/usr/lib/python3/dist-packages
PYTHONPATH=$modules /usr/bin/python3 -c 'import psutil, psycopg2, yaml' \
    2>"$dir/log" || absent "$(tail -n 1 "$dir/log")"

etcd_port=$(free_port)
proxy_port=$(free_port)
nodes=(n1 n2 n3)
declare -A port rest

start_etcd() {
    make_home "$dir/etcd"
    "${as_server[@]}" setpriv --pdeathsig KILL "$tree/usr/bin/etcd" \
        --data-dir "$dir/etcd/data" --unsafe-no-fsync \
        --listen-client-urls "http://127.0.0.1:$etcd_port" \
        --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$(free_port)" \
        >"$dir/etcd/log" 2>&1 &
    children+=($!)
}

write_config() { # NODE
    local synchronous=false
    [ "${dir##*/}" != patroni-sync ] || synchronous=true
    cat >"$dir/$1/config.yml" <<END
scope: sqlock
name: $1
restapi: {listen: "127.0.0.1:${rest[$1]}", connect_address: "127.0.0.1:${rest[$1]}"}
etcd3: {host: "127.0.0.1:$etcd_port"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 5
    primary_start_timeout: 0
    maximum_lag_on_failover: 1000000000
    synchronous_mode: $synchronous
    postgresql:
      use_pg_rewind: true
      remove_data_directory_on_rewind_failure: true
      parameters: {max_connections: 200, wal_log_hints: "on", wal_keep_size: 256MB}
  initdb: [{encoding: UTF8}, {locale: C}]
postgresql:
  listen: 127.0.0.1:${port[$1]}
  connect_address: 127.0.0.1:${port[$1]}
  data_dir: $dir/$1/data
  bin_dir: $bin
  pgpass: $dir/$1/run/pgpass
  basebackup: {checkpoint: fast}
  authentication:
    superuser: {username: postgres, password: "$SQLOCK_TEST_PASSWORD"}
    replication: {username: replicator, password: "$SQLOCK_TEST_PASSWORD"}
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication all 127.0.0.1/32 scram-sha-256
  parameters:
    unix_socket_directories: $dir/$1/run
    shared_buffers: 32MB
    jit: "off"
    timezone: Asia/Kolkata
    fsync: "off"
    full_page_writes: "on"
    wal_receiver_status_interval: 1
    wal_retrieve_retry_interval: 200
END
    [ ${#as_server[@]} -eq 0 ] || chown nobody "$dir/$1/config.yml"
}

start_node() { # NODE
    make_home "$dir/$1"
    port[$1]=$(free_port)
    rest[$1]=$(free_port)
    write_config "$1"
    (cd "$dir/$1/run" && HOME=$dir/$1/run PYTHONPATH=$modules exec \
        "${as_server[@]}" setpriv --pdeathsig TERM /usr/bin/python3 \
        "$tree/usr/bin/patroni" "$dir/$1/config.yml") >"$dir/$1/log" 2>&1 &
    children+=($!)
}

ask() { # SQL [DATABASE], of the first node
    "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$dir/n1/run" -U postgres \
        -p "${port[n1]}" -d "${2:-postgres}" -c "$1"
}

is_primary() {
    [ "$(ask 'SELECT pg_is_in_recovery()')" = f ]
}

is_whole() {
    [ "$(ask "SELECT COUNT(*) FROM pg_stat_replication
        WHERE state = 'streaming'")" = 2 ]
}

start_proxy() {
    local node
    {
        echo "defaults
    mode tcp
    timeout connect 1s
    timeout client 1h
    timeout server 1h
listen primary
    bind 127.0.0.1:$proxy_port
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions"
        for node in "${nodes[@]}"; do
            echo "    server $node 127.0.0.1:${port[$node]} check port ${rest[$node]}"
        done
    } >"$dir/haproxy.cfg"
    LD_LIBRARY_PATH=$(printf '%s:' "$tree"/usr/lib/*-linux-gnu) \
        setpriv --pdeathsig TERM "$tree/usr/sbin/haproxy" -db \
        -f "$dir/haproxy.cfg" >"$dir/haproxy.log" 2>&1 &
    children+=($!)
    wait_for 30 $! leads_to_primary || give_up "HAProxy leads to no primary"
}

leads_to_primary() {
    [ "$(PGPASSWORD=$SQLOCK_TEST_PASSWORD "$bin/psql" -X -q -A -t \
        -h 127.0.0.1 -p "$proxy_port" -U postgres -d sqlock \
        -c 'SELECT pg_is_in_recovery()')" = f ]
}

give_up() { # WHAT
    tail -n 20 "$dir"/*/log >&2
    fail "$1"
}

start_etcd
start_node n1
wait_for 90 $! is_primary || give_up "no primary"
ask "CREATE ROLE sqlock_test LOGIN PASSWORD '$SQLOCK_TEST_PASSWORD'" ||
    fail "no role"
ask "CREATE DATABASE sqlock OWNER sqlock_test" || fail "no database"
start_node n2
start_node n3
wait_for 90 $! is_whole || give_up "no standbys"
hosts=127.0.0.1:${port[n1]},127.0.0.1:${port[n2]},127.0.0.1:${port[n3]}
if [ "${dir##*/}" = patroni-haproxy ]; then
    start_proxy
    hosts=127.0.0.1:$proxy_port
fi

{
    echo "SQLOCK_TEST_POSTGRES_URL='postgresql://sqlock_test:$SQLOCK_TEST_PASSWORD@$hosts/sqlock'"
    echo "SQLOCK_TEST_POSTGRES_ADMIN_URL='postgresql://postgres:$SQLOCK_TEST_PASSWORD@$hosts/sqlock'"
    echo "SQLOCK_TEST_POSTGRES_BIN='$bin'"
    echo "SQLOCK_TEST_PATRONI='$dir'"
} | publish_all
wait
