#!/usr/bin/env bash
# promote.sh ACTION: have another server of a cluster promoted.  Each action but
# `run` prints a line.
#     run COMMAND...   run a command that may call this script, if there is one
#     url              the URL with all hosts of the cluster, or its proxy's
#     lag              from now on, standbys get no more commits, where commits
#                      do not wait for them
#     fail             kill the server that takes writes, for another one to
#                      be promoted
#     repair           let it come back as a standby, and wait for that
# SQLOCK_TEST_PROMOTION is the kind of the cluster, which `run` finds.
set -u
cd "$(dirname "$0")/../../.." || exit 1

die() {
    echo "promote.sh: $*" >&2
    exit 1
}

# Run a command until it succeeds.
until_true() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || die "in vain: $*"
        sleep 0.02
    done
}

hosts_of() { # URL
    local rest=${1##*@}
    echo "${rest%%/*}"
}

port_in() { # URL
    local host
    host=$(hosts_of "$1")
    echo "${host##*:}"
}

# Print the first URL with the hosts of all.
join_urls() { # URL...
    local all='' url
    for url; do
        all+=${all:+,}$(hosts_of "$url")
    done
    echo "${1%@*}@$all/${1##*/}"
}

# Kill a server of PostgreSQL with all its processes.
kill_postgres() { # PID
    kill -STOP "$1" # so that it starts no more children
    pkill -KILL -P "$1"
    kill -KILL "$1"
}

# ------------------------------------------- PostgreSQL and its standby --

# The servers' names are "primary" and "async", whichever is which; "sync" is
# held back.
standby_ask() { # NAME SQL
    local dir=$SQLOCK_TEST_POSTGRES_CLUSTER/$1 url
    url=$(sed -n "s/^SQLOCK_TEST_POSTGRES_URL='\(.*\)'$/\1/p" "$dir/env")
    "$SQLOCK_TEST_POSTGRES_BIN/psql" -X -q -A -t -h "$dir/run" \
        -p "$(port_in "$url")" -U postgres -d postgres -c "$2" 2>/dev/null
}

standby_primary() {
    local name
    for name in primary async; do
        [ "$(standby_ask "$name" 'SELECT pg_is_in_recovery()')" != f ] || {
            echo "$name"
            return
        }
    done
    return 1
}

standby_pid() { # NAME
    head -n 1 "$SQLOCK_TEST_POSTGRES_CLUSTER/$1/data/postmaster.pid"
}


standby_url() {
    touch "$SQLOCK_TEST_POSTGRES_CLUSTER/sync/hold"
    kill -KILL "$(standby_pid sync)"
    standby_ask primary "ALTER SYSTEM SET synchronous_standby_names = ''"
    standby_ask primary 'SELECT pg_reload_conf()' >/dev/null
    join_urls "$SQLOCK_TEST_POSTGRES_URL" "$SQLOCK_TEST_POSTGRES_ASYNC_URL"
}

standby_lag() {
    local name
    name=$(standby_primary) || die "no primary"
    # shellcheck disable=SC2046 # numbers
    kill -STOP $(standby_ask "$name" 'SELECT pid FROM pg_stat_replication')
}

standby_other() { # NAME
    [ "$1" = primary ] && echo async || echo primary
}

standby_fail() {
    local name
    name=$(standby_primary) || die "no primary"
    touch "$SQLOCK_TEST_POSTGRES_CLUSTER/$name/hold"
    kill_postgres "$(standby_pid "$name")"
    standby_ask "$(standby_other "$name")" 'SELECT pg_promote()' >/dev/null
    echo "$name"
}

standby_follows() { # PRIMARY
    [ "$(standby_ask "$1" "SELECT COUNT(*) FROM pg_stat_replication
        WHERE state = 'streaming'")" = 1 ]
}

# The old primary has commits that its successor lacks: it gets a copy of the
# successor's data, while nobody uses that.
standby_repair() {
    local cluster=$SQLOCK_TEST_POSTGRES_CLUSTER name old url
    name=$(standby_primary) || die "no primary"
    old=$(standby_other "$name")
    url=$(sed -n "s/^SQLOCK_TEST_POSTGRES_URL='\(.*\)'$/\1/p" \
        "$cluster/$name/env")
    touch "$cluster/$name/hold"
    kill -INT "$(standby_pid "$name")"
    until_true 60 test ! -e "$cluster/$name/data/postmaster.pid"
    until_true 60 test ! -e "$cluster/$name/pid"
    rm -rf "$cluster/$old/data"
    cp -a "$cluster/$name/data" "$cluster/$old/data"
    echo "primary_conninfo = 'host=$cluster/$name/run port=$(port_in "$url")\
 user=postgres application_name=$old'" >>"$cluster/$old/data/postgresql.auto.conf"
    touch "$cluster/$old/data/standby.signal"
    rm "$cluster/$old/hold" "$cluster/$name/hold"
    until_true 60 standby_follows "$name"
}

# ------------------------------------------------------------------ Patroni --

patroni_url() {
    echo "$SQLOCK_TEST_POSTGRES_URL"
}

on_node() { # NODE SQL
    local run=$SQLOCK_TEST_PATRONI/$1/run port
    port=$(cd "$run" && printf '%s\n' .s.PGSQL.*[0-9])
    "$SQLOCK_TEST_POSTGRES_BIN/psql" -X -q -A -t -h "$run" -p "${port##*.}" \
        -U postgres -d postgres -c "$2" 2>/dev/null
}

# Print the node that takes writes.
patroni_primary() {
    local node
    for node in n1 n2 n3; do
        [ "$(on_node "$node" 'SELECT pg_is_in_recovery()')" != f ] || {
            echo "$node"
            return
        }
    done
    return 1
}

patroni_lag() {
    local node
    [ "$SQLOCK_TEST_PROMOTION" != patroni-sync ] || return 0
    until_true 60 patroni_is_whole
    node=$(patroni_primary) || die "no primary"
    # A standby that is stopped gets later all that was sent, so the senders are.
    # shellcheck disable=SC2046 # numbers
    kill -STOP $(on_node "$node" 'SELECT pid FROM pg_stat_replication')
}

patroni_fail() {
    local node pid
    node=$(patroni_primary) || die "no primary"
    pid=$(head -n 1 "$SQLOCK_TEST_PATRONI/$node/data/postmaster.pid")
    kill_postgres "$pid"
    echo "$node"
}

patroni_is_whole() {
    local node
    node=$(patroni_primary) &&
        [ "$(on_node "$node" "SELECT COUNT(*) FROM pg_stat_replication
            WHERE state = 'streaming'")" = 2 ]
}

patroni_repair() {
    until_true 120 patroni_is_whole
}

# ----------------------------------------------- a source and its replica --

# The servers' names are "source" and "replica", whichever is which.
replica_dir() {
    local dir=${SQLOCK_TEST_MYSQL_PIDFILE%/*}
    echo "${dir%/*}"
}

of_server() { # NAME VARIABLE
    sed -n "s/^$2='\(.*\)'$/\1/p" "$(replica_dir)/$1/env"
}

ask_server() { # NAME SQL
    local url
    url=$(of_server "$1" SQLOCK_TEST_MYSQL_ADMIN_URL)
    url=${url#*//root:}
    MYSQL_PWD=${url%%@*} mariadb --no-defaults -N -u root \
        -S "$(of_server "$1" SQLOCK_TEST_MYSQL_SOCKET)" -e "$2"
}

replica_primary() {
    local name
    for name in source replica; do
        [ "$(ask_server "$name" 'SELECT @@read_only' 2>/dev/null)" != 0 ] || {
            echo "$name"
            return
        }
    done
    return 1
}

other_than() { # NAME
    [ "$1" = source ] && echo replica || echo source
}

replica_url() {
    join_urls "$SQLOCK_TEST_MYSQL_URL" "$SQLOCK_TEST_MYSQL_REPLICA_URL"
}

replica_lag() {
    local name
    name=$(replica_primary) || die "no source"
    ask_server "$(other_than "$name")" 'STOP SLAVE IO_THREAD'
}

replica_fail() {
    local name other
    name=$(replica_primary) || die "no source"
    other=$(other_than "$name")
    touch "$(replica_dir)/$name/hold"
    kill -KILL "$(cat "$(replica_dir)/$name/pid")"
    ask_server "$other" 'STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF'
    echo "$name"
}

replica_follows() { # NAME
    [ "$(ask_server "$1" "SHOW GLOBAL STATUS LIKE 'Slave_running'")" = \
        $'Slave_running\tON' ]
}

is_down() { # NAME
    ! ask_server "$1" 'SELECT 1'
}

# The old source has commits that its successor lacks: it gets a copy of the
# successor's data, while nobody uses that.
replica_repair() {
    local dir name old url
    dir=$(replica_dir)
    name=$(replica_primary) || die "no source"
    old=$(other_than "$name")
    touch "$dir/$name/hold"
    kill -TERM "$(cat "$dir/$name/pid")"
    until_true 60 is_down "$name"
    until_true 60 test ! -e "$dir/$name/pid"
    rm -rf "$dir/$old/data"
    cp -a "$dir/$name/data" "$dir/$old/data"
    rm "$dir/$old/hold" "$dir/$name/hold"
    until_true 60 ask_server "$old" 'SET GLOBAL read_only = ON'
    until_true 60 ask_server "$name" 'SELECT 1'
    url=$(of_server "$name" SQLOCK_TEST_MYSQL_ADMIN_URL)
    url=${url#*//root:}
    ask_server "$old" "RESET SLAVE ALL; RESET MASTER;
        SET GLOBAL gtid_slave_pos = '$(ask_server "$name" \
            'SELECT @@gtid_binlog_pos')';
        CHANGE MASTER TO MASTER_HOST = '127.0.0.1',
        MASTER_PORT = $(port_in "$url"), MASTER_USER = 'root',
        MASTER_PASSWORD = '${url%%@*}', MASTER_USE_GTID = slave_pos,
        MASTER_CONNECT_RETRY = 1; START SLAVE"
    until_true 60 replica_follows "$old"
}

# ---------------------------------------------------------- a group of three --

group_url() {
    join_urls "$SQLOCK_TEST_GROUP_1_URL" "$SQLOCK_TEST_GROUP_2_URL" \
        "$SQLOCK_TEST_GROUP_3_URL"
}

ask_member() { # MEMBER SQL
    local shell=SQLOCK_TEST_GROUP_$1_SHELL
    bash -c "${!shell} -e \"\$1\"" bash "$2" 2>/dev/null
}

members_online() { # MEMBER
    ask_member "$1" "SELECT COUNT(*)
        FROM performance_schema.replication_group_members
        WHERE MEMBER_STATE = 'ONLINE'"
}

# A member that was started again is writable, but outside the group.
group_primary() {
    local member
    for member in 1 2 3; do
        [ "$(ask_member "$member" "SELECT @@super_read_only, COUNT(*)
            FROM performance_schema.replication_group_members
            WHERE MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY'
            AND MEMBER_ID = @@server_uuid")" != $'0\t1' ] || {
            echo "$member"
            return
        }
    done
    return 1
}

group_lag() {
    : # a commit is acknowledged when a majority has it
}

group_fail() {
    local member pid_file
    member=$(group_primary) || die "no primary"
    pid_file=SQLOCK_TEST_GROUP_${member}_PIDFILE
    kill -KILL "$(cat "${!pid_file}")"
    echo "member $member"
}

# Each member that is outside is asked to come in: the others see only that one
# is missing.
group_is_whole() {
    local member is_whole=true
    for member in 1 2 3; do
        [ "$(members_online "$member")" = 3 ] || {
            ask_member "$member" 'START GROUP_REPLICATION'
            is_whole=false
        }
    done
    "$is_whole"
}

group_repair() {
    until_true 120 group_is_whole
}

# ------------------------------------------------------------------- Galera --

galera_url() {
    join_urls "$SQLOCK_TEST_GALERA_1_URL" "$SQLOCK_TEST_GALERA_2_URL" \
        "$SQLOCK_TEST_GALERA_3_URL"
}

galera_lag() {
    : # all nodes have a commit before it is acknowledged
}

galera_dir() {
    local dir=${SQLOCK_TEST_GALERA_1_PIDFILE%/*}
    echo "${dir%/*}"
}

# The first node in the URL is used; there is always another one that takes
# writes, once it has noticed that the first one is gone.
ask_node() { # NODE SQL
    local url=SQLOCK_TEST_GALERA_$1_URL
    url=${!url#*//sqlock_test:}
    MYSQL_PWD=${url%%@*} timeout 5 mariadb --no-defaults -N -u root \
        -S "$(galera_dir)/$1/run/s" -e "$2" 2>/dev/null
}

nodes_of() { # NODE
    ask_node "$1" "SELECT MAX(IF(variable_name = 'wsrep_cluster_size',
        variable_value, '')), MAX(IF(variable_name =
        'wsrep_local_state_comment', variable_value, ''))
        FROM information_schema.global_status"
}

galera_fail() {
    touch "$(galera_dir)/1/hold"
    kill -KILL "$(cat "$SQLOCK_TEST_GALERA_1_PIDFILE")"
    echo "node 1"
}

galera_is_whole() {
    [ "$(nodes_of 1)" = $'3\tSynced' ]
}

galera_repair() {
    rm "$(galera_dir)/1/hold"
    until_true 120 galera_is_whole
}

# --------------------------------------------------------------------------

# Print the kind of the cluster that with.sh has started, if there is one.
kind() {
    local kinds=()
    [ -z "${SQLOCK_TEST_PATRONI:-}" ] ||
        kinds+=("$(basename "$SQLOCK_TEST_PATRONI")")
    [ -z "${SQLOCK_TEST_POSTGRES_CLUSTER:-}" ] || kinds+=(standby)
    [ -z "${SQLOCK_TEST_MYSQL_REPLICA_URL:-}" ] || kinds+=(replica)
    [ -z "${SQLOCK_TEST_GROUP_1_URL:-}" ] || kinds+=(group)
    [ -z "${SQLOCK_TEST_GALERA_1_URL:-}" ] || kinds+=(galera)
    [ ${#kinds[@]} -le 1 ] || die "several clusters: ${kinds[*]}"
    echo "${kinds[*]}"
}

action=$1
shift
if [ "$action" = run ]; then
    SQLOCK_TEST_PROMOTION=$(kind) || exit 1
    [ -z "$SQLOCK_TEST_PROMOTION" ] || export SQLOCK_TEST_PROMOTION
    exec "$@"
fi
said=$("${SQLOCK_TEST_PROMOTION%%-*}_$action") || exit 1
echo "${said:-done}"
