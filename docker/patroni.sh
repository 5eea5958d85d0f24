#!/usr/bin/env bash
# patroni.sh etcd|node|proxy: entry point of the containers of
# compose.patroni.yaml.
set -eu

case ${1-} in
etcd)
    exec etcd --data-dir /data/etcd --listen-client-urls http://0.0.0.0:2379 \
        --advertise-client-urls http://etcd:2379
    ;;
node)
    # The first node runs this once, with the URL of its database.
    cat >/data/init.sh <<END
psql -X -q -v ON_ERROR_STOP=1 "\$1" \\
    -c "CREATE ROLE sqlock_test LOGIN PASSWORD '$PASSWORD'" \\
    -c "CREATE DATABASE sqlock OWNER sqlock_test"
END
    cat >/data/patroni.yml <<END
scope: sqlock
name: $HOSTNAME
restapi: {listen: "0.0.0.0:8008", connect_address: "$HOSTNAME:8008"}
etcd3: {host: "etcd:2379"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    primary_start_timeout: 0
    synchronous_mode: ${SYNCHRONOUS:-false}
    postgresql: {use_pg_rewind: true, parameters: {max_connections: 200, wal_log_hints: "on"}}
  initdb: [{encoding: UTF8}, {locale: C}]
  post_bootstrap: sh /data/init.sh
postgresql:
  listen: 0.0.0.0:5432
  connect_address: $HOSTNAME:5432
  data_dir: /data/postgres
  bin_dir: /usr/lib/postgresql/15/bin
  pgpass: /data/pgpass
  authentication:
    superuser: {username: postgres, password: "$PASSWORD"}
    replication: {username: replicator, password: "$PASSWORD"}
  pg_hba:
    - local all all trust
    - host all all 0.0.0.0/0 scram-sha-256
    - host replication all 0.0.0.0/0 scram-sha-256
  parameters: {unix_socket_directories: /data}
END
    exec patroni /data/patroni.yml
    ;;
proxy)
    cat >/data/haproxy.cfg <<END
defaults
    mode tcp
    timeout connect 1s
    timeout client 1h
    timeout server 1h
listen primary
    bind :5432
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 3 rise 1 on-marked-down shutdown-sessions
    server node1 node1:5432 check port 8008
    server node2 node2:5432 check port 8008
    server node3 node3:5432 check port 8008
END
    exec haproxy -db -f /data/haproxy.cfg
    ;;
*)
    echo "usage: patroni.sh etcd|node|proxy" >&2
    exit 2
    ;;
esac
