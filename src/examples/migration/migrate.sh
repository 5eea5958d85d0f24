#!/bin/sh
# migrate.sh FOLDER CLIENT [ARGUMENT...]: apply a folder of numbered SQL
# migrations, each once and in order, however many of us start at once and
# whichever of us dies.
#
# The database is $SQLOCK_URL, and `sqlock init` has been there.  CLIENT reads SQL from its standard input, stops
# at the first error and prints rows without heads:
#     psql -X -q -A -t -v ON_ERROR_STOP=1 -d shop
#     mariadb --batch --skip-column-names shop
#     sqlite3 -bail -cmd '.timeout 10000' shop.db
# It gets no password from us: use PGPASSFILE or ~/.my.cnf.
#
# `sqlock run` says whose turn it is, and ends what runs when the lease is lost.
# That nothing is written even so is the database's to say: a migration is
# recorded in the transaction that it runs in, with a token that is null, and so
# refused, unless the lease is still ours.
#
# What is not to run in a transaction says so in its first line, "-- outside a
# transaction"; with MySQL and MariaDB, whose DDL commits by itself, what may run
# in one says "-- in a transaction".  The others are recorded as begun before and
# as done afterwards, and run again if the one who began them did not end: they
# have to be written so that this does no harm.
set -eu

usage="usage: SQLOCK_URL=... migrate.sh FOLDER CLIENT [ARGUMENT...]"
[ $# -ge 2 ] || {
    echo "$usage" >&2
    exit 64
}

# First we are called by the user, then by `sqlock run`.
if [ -z "${MIGRATE_KIND:-}" ]; then
    case ${SQLOCK_URL:?$usage} in
    postgres*) MIGRATE_KIND=postgres ;;
    mysql* | mariadb*) MIGRATE_KIND=mysql ;;
    sqlite*) MIGRATE_KIND=sqlite ;;
    *)
        echo "$usage" >&2
        exit 64
        ;;
    esac
    export MIGRATE_KIND
    exec sqlock run --ttl "${MIGRATE_TTL:-30}" migration -- "$0" "$@"
fi

folder=$1
shift
table=${MIGRATE_LOCK_TABLE:-INT_LOCK}

quoted() { # TEXT
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"
}

case $MIGRATE_KIND in
postgres)
    begin="BEGIN;"
    now="clock_timestamp() AT TIME ZONE 'UTC'"
    share="FOR SHARE"
    # For as long as the session lasts at the server, be we there or not.
    alone="DO \$\$ BEGIN PERFORM pg_advisory_lock(hashtext('migration')); END \$\$;"
    ;;
mysql)
    begin="START TRANSACTION;"
    now="UTC_TIMESTAMP(6)"
    share="LOCK IN SHARE MODE"
    alone="DO GET_LOCK(LEFT(CONCAT('migration.', DATABASE()), 64), 86400);"
    ;;
sqlite)
    begin="BEGIN IMMEDIATE;"
    now="CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    share=""
    alone=""
    ;;
esac

# Our token, or null when the lease is no longer ours; nobody can take it over
# until the transaction ends.
token="(SELECT FENCE FROM $table WHERE LOCK_KEY = $(quoted "$SQLOCK_KEY")
    AND REGION = $(quoted "$SQLOCK_REGION") AND FENCE = $SQLOCK_TOKEN
    AND CLIENT_ID IS NOT NULL AND EXPIRED_AFTER > $now $share)"

record() { # VERSION NAME STATE
    echo "DELETE FROM migration_log WHERE version = $1;"
    echo "INSERT INTO migration_log (version, name, state, token)"
    echo "    VALUES ($1, $(quoted "$2"), $3, $token);"
}

runs_inside() { # FILE
    case $(head -n 1 "$1") in
    "-- in a transaction") true ;;
    "-- outside a transaction") false ;;
    *) [ "$MIGRATE_KIND" != mysql ] ;;
    esac
}

# As late as possible in its transaction: while it is there, the row of the lock
# is locked, and the lease not renewed.
apply() { # FILE VERSION NAME
    if runs_inside "$1"; then
        echo "$begin"
        cat "$1"
        record "$2" "$3" 2
        echo "COMMIT;"
    else
        echo "$alone"
        echo "$begin"
        record "$2" "$3" 1
        echo "COMMIT;"
        cat "$1"
        echo "$begin"
        record "$2" "$3" 2
        echo "COMMIT;"
    fi
}

echo "CREATE TABLE IF NOT EXISTS migration_log (version INTEGER PRIMARY KEY,
    name VARCHAR(255) NOT NULL, state INTEGER NOT NULL, token BIGINT NOT NULL);" |
    "$@"
for file in "$folder"/[0-9][0-9][0-9]_*.sql; do
    name=${file##*/}
    version=$(printf '%s' "$name" | sed 's/^0*\([0-9]\{1,3\}\)_.*/\1/')
    state=$(echo "SELECT state FROM migration_log WHERE version = $version;" |
        "$@")
    [ "$state" != 2 ] || continue
    [ "$state" != 1 ] ||
        echo "$name: begun by another deployer, running it again"
    apply "$file" "$version" "$name" | "$@"
    echo "$name: applied"
done
