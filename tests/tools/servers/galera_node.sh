#!/usr/bin/env bash
# galera_node.sh DIR: run one node of galera.sh, with the number GALERA_NODE.
# Its port for other nodes is GALERA_PORT; the ports of all nodes are
# GALERA_PORTS.  Node 1 creates the cluster at its first start.  At later starts
# it joins the cluster like the other nodes, which get their data from a node of
# the cluster.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_home "$dir"
PATH=$PATH:/usr/sbin:/sbin
base=()
provider=/usr/lib/galera/libgalera_smm.so
if [ -n "${SQLOCK_TEST_TREE:-}" ]; then
    use_tree bin sbin
    base=(--basedir="$SQLOCK_TEST_TREE/usr")
    provider=$SQLOCK_TEST_TREE$provider
fi
[ -e "$provider" ] || absent "no Galera library $provider"
for program in mariadbd mariadb mariadb-install-db rsync lsof; do
    command -v "$program" >/dev/null || absent "no $program"
done
port=$(free_port)
socket=$dir/run/s

trap 'end_server TERM' TERM INT
trap 'rm -rf "$dir"' EXIT

cd / || exit 1
if [ "$GALERA_NODE" -eq 1 ]; then
    "${as_server[@]}" mariadb-install-db --no-defaults "${base[@]}" \
        --tmpdir="$dir/run" \
        --datadir="$dir/data" --auth-root-authentication-method=normal \
        --skip-test-db --force --innodb-log-file-size=8M >"$dir/log" 2>&1 || {
        tail -n 20 "$dir/log" >&2
        fail "mariadb-install-db failed"
    }
fi

address=
for other in $GALERA_PORTS; do
    address+=${address:+,}127.0.0.1:$other
done
# Nodes notice soon that a node has ended, and do not restore an old cluster.
provider_options="base_host=127.0.0.1;base_port=$GALERA_PORT"
provider_options+=";gmcast.listen_addr=tcp://127.0.0.1:$GALERA_PORT"
provider_options+=";ist.recv_addr=127.0.0.1:$(free_port);gcache.size=16M"
provider_options+=";evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S"
provider_options+=";evs.keepalive_period=PT0.5S;pc.recovery=false"
provider_options+=";evs.inactive_check_period=PT0.5S"
# The settings are in a file because the script that copies data to a joining
# node reads them there.
write_config() {
    cat >"$dir/config" <<END
[mysqld]
datadir=$dir/data
tmpdir=$dir/run
socket=$socket
pid-file=$dir/run/pid
bind-address=127.0.0.1
port=$port
server-id=$GALERA_NODE
skip-name-resolve
default-time-zone=+05:30
max-connections=200
innodb-buffer-pool-size=64M
innodb-log-file-size=8M
innodb-flush-log-at-trx-commit=2
innodb-autoinc-lock-mode=2
binlog-format=ROW
log-bin-trust-function-creators=ON
wsrep-on=ON
wsrep-provider=$provider
wsrep-provider-options=$provider_options
wsrep-cluster-name=$(basename "${dir%/*/*}")
wsrep-cluster-address=gcomm://$address
wsrep-node-name=n$GALERA_NODE
wsrep-node-address=127.0.0.1:$GALERA_PORT
wsrep-node-incoming-address=127.0.0.1:$port
wsrep-sst-method=rsync
wsrep-sst-receive-address=127.0.0.1:$(free_port)
wsrep-sst-auth=root:
END
}

launch() {
    local first=()
    if [ ! -e "$dir/env" ]; then
        port=$(free_port)
        [ "$GALERA_NODE" -ne 1 ] || first=(--wsrep-new-cluster)
    else
        # A node that joins before the others have noticed its end would have to
        # wait long.
        sleep 5
    fi
    write_config
    "${as_server[@]}" setpriv --pdeathsig TERM mariadbd \
        --defaults-file="$dir/config" "${base[@]}" "${first[@]}" \
        >>"$dir/log" 2>&1 &
    server_pid=$!
}

ask() { # [PASSWORD], statements on standard input
    mariadb --no-defaults -N -S "$socket" -u root ${1:+"-p$1"}
}

is_synced() { # [PASSWORD]
    [ "$(echo 'SELECT variable_value FROM information_schema.global_status
        WHERE variable_name = "wsrep_local_state_comment"' | ask "$@")" = Synced ]
}

answers() {
    if [ -e "$dir/env" ] || [ "$GALERA_NODE" -ne 1 ]; then
        is_synced "$SQLOCK_TEST_PASSWORD"
        return
    fi
    is_synced && first_statements "$SQLOCK_TEST_PASSWORD" \
        "$SQLOCK_TEST_PASSWORD" | ask
}

publish() {
    publish_mysql "$SQLOCK_TEST_PASSWORD" "$SQLOCK_TEST_PASSWORD"
}

supervise "$dir"
