#!/usr/bin/env bash
# group.sh DIR: run three private members of a group of Oracle's MySQL (Group
# Replication, one primary) in DIR; see common.sh.
#
# It publishes the variables of a single server, for the primary, and for the
# members N from 1 to 3
#     SQLOCK_TEST_GROUP_N_{URL,PIDFILE,SHELL}
# SHELL is a command that runs the MySQL shell as administrator, even while the
# member is not in the group.  A member that ends is started again, but outside
# the group.  There it is writable, until START GROUP_REPLICATION lets it join.
# The user of the URLs may read the group's state.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

dir=$1
tree=${SQLOCK_TEST_MYSQL_TREE:-$here/../../../build/servers/mysql}
[ -e "$tree/usr/lib/mysql/plugin/group_replication.so" ] ||
    absent "no plugin for groups in $tree"
make_cluster
ports=("$(free_port)" "$(free_port)" "$(free_port)")
seeds=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}
name=$(cat /proc/sys/kernel/random/uuid)
# Members notice soon that a member has ended.
settings="--gtid-mode=ON --enforce-gtid-consistency=ON --log-bin=b
    --log-replica-updates=ON --report-host=127.0.0.1 --performance-schema=ON
    --plugin-load-add=group_replication.so
    --loose-group-replication-group-name=$name
    --loose-group-replication-group-seeds=$seeds
    --loose-group-replication-start-on-boot=OFF
    --loose-group-replication-single-primary-mode=ON
    --loose-group-replication-recovery-get-public-key=ON
    --loose-group-replication-member-expel-timeout=0
    --loose-group-replication-unreachable-majority-timeout=3
    --loose-group-replication-exit-state-action=READ_ONLY"

ask() { # MEMBER SQL
    MYSQL_PWD=$SQLOCK_TEST_PASSWORD "$tree/mysql" -N -u root \
        -S "$(of_child "$dir/$1" SQLOCK_TEST_MYSQL_SOCKET)" -e "$2"
}

# Start a member and let it join the group or, if BOOTSTRAP is ON, create it.
join() { # MEMBER [BOOTSTRAP]
    local local_address=127.0.0.1:${ports[$1 - 1]}
    SQLOCK_TEST_MYSQL_SETTINGS="${settings//$'\n'/ } --server-id=$1 \
        --loose-group-replication-local-address=$local_address" \
        start_child mysql.sh "$dir/$1"
    ask "$1" "SET sql_log_bin = 0;
        GRANT SELECT ON performance_schema.replication_group_members
            TO sqlock_test@'%';
        CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root',
            SOURCE_PASSWORD = '$SQLOCK_TEST_PASSWORD'
            FOR CHANNEL 'group_replication_recovery';
        SET GLOBAL group_replication_bootstrap_group = ${2:-OFF};
        START GROUP_REPLICATION;
        SET GLOBAL group_replication_bootstrap_group = OFF" || {
        tail -n 20 "$dir/$1/log" >&2
        fail "member $1 does not join the group"
    }
}

is_online() { # MEMBER
    [ "$(ask "$1" "SELECT COUNT(*)
        FROM performance_schema.replication_group_members
        WHERE MEMBER_STATE = 'ONLINE'")" = 3 ]
}

join 1 ON
join 2
join 3
for member in 1 2 3; do
    wait_for 60 "${children[0]}" is_online "$member" ||
        fail "member $member does not come online"
done

{
    cat "$dir/1/env"
    for member in 1 2 3; do
        sed -n "s/^SQLOCK_TEST_MYSQL_\(URL\|PIDFILE\)=/SQLOCK_TEST_GROUP_${member}_\1=/p" \
            "$dir/$member/env"
        socket=$(of_child "$dir/$member" SQLOCK_TEST_MYSQL_SOCKET)
        echo "SQLOCK_TEST_GROUP_${member}_SHELL='MYSQL_PWD=$SQLOCK_TEST_PASSWORD\
 $tree/mysql -N -u root -S $socket'"
    done
} | publish_all
wait
