#!/bin/sh
# group.sh: entry point of the container `setup` of compose.group.yaml: make a
# group of the three servers.
set -eu
export MYSQL_PWD="$MYSQL_ROOT_PASSWORD"

# Let a member join or, if $2 is ON, create the group.  Its history begins without
# that of the image's first start.
join() { # MEMBER BOOTSTRAP
    mysql -h "$1" -u root <<SQL
RESET BINARY LOGS AND GTIDS;
CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root',
    SOURCE_PASSWORD = '$MYSQL_PWD' FOR CHANNEL 'group_replication_recovery';
SET GLOBAL group_replication_bootstrap_group = $2;
START GROUP_REPLICATION;
SET GLOBAL group_replication_bootstrap_group = OFF;
SQL
}

join node1 ON
# It takes writes once it has been elected.
until [ "$(mysql -h node1 -u root -N -e 'SELECT @@super_read_only')" = 0 ]; do
    sleep 0.2
done
mysql -h node1 -u root <<SQL
CREATE DATABASE sqlock;
CREATE USER sqlock_test@'%' IDENTIFIED BY '$MYSQL_PWD';
GRANT ALL ON sqlock.* TO sqlock_test@'%';
GRANT SELECT ON performance_schema.replication_group_members TO sqlock_test@'%';
SQL
join node2 OFF
join node3 OFF
