#!/usr/bin/env bash
# galera.sh DIR: run three private Galera nodes, a cluster, in DIR; see
# common.sh.
#
# It publishes the variables of a single server, for the first node, and for the
# nodes N from 1 to 3
#     SQLOCK_TEST_GALERA_N_URL SQLOCK_TEST_GALERA_N_PIDFILE
# A node that ends is started again and joins the others.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
make_cluster
export GALERA_NODE GALERA_PORT GALERA_PORTS
GALERA_PORTS="$(free_port) $(free_port) $(free_port)"
GALERA_NODE=0
for GALERA_PORT in $GALERA_PORTS; do
    GALERA_NODE=$((GALERA_NODE + 1))
    start_child galera_node.sh "$dir/$GALERA_NODE"
done

{
    cat "$dir/1/env"
    for node in 1 2 3; do
        sed -n "s/^SQLOCK_TEST_MYSQL_\(URL\|PIDFILE\)=/SQLOCK_TEST_GALERA_${node}_\1=/p" \
            "$dir/$node/env"
    done
} | publish_all
wait
