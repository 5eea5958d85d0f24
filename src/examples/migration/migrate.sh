#!/bin/sh
# migrate.sh [--accept] FOLDER CLIENT [ARGUMENT...]: apply a folder of numbered
# SQL migrations, each once and in order, however many of us start at once and
# whichever of us dies.  A file that has changed since it was applied is refused,
# unless --accept says that it is all right.
# migrate.sh status FOLDER CLIENT [ARGUMENT...]: tell of each file whether it is
# applied, pending, begun or changed; exit status 0: all of them are applied.
#
# The database is $SQLOCK_URL, and `sqlock init` has been there.  CLIENT reads SQL
# from its standard input, stops at the first error and prints rows without
# heads:
#     psql -X -q -A -t -v ON_ERROR_STOP=1 -d shop
#     mariadb --batch --skip-column-names shop
#     sqlite3 -bail -cmd '.timeout 10000' shop.db
# It gets no password from us: use PGPASSFILE or ~/.my.cnf.
#
# `sqlock run` says whose turn it is, and ends what runs when the lease is lost.
# That nothing is written even so is the database's to say: a migration is
# recorded in the transaction that it runs in, with a token and a checksum that are
# null, and so refused, unless the lease is still ours.
#
# A file that must not run in a transaction says so in its first line, "-- outside
# a transaction"; with MySQL and MariaDB, whose DDL commits by itself, a file that
# may run in one says "-- in a transaction".  The others are recorded as begun before and
# as done afterwards, and run again if the one who began them did not end: they
# have to be written so that this does no harm.
set -eu

usage="usage: SQLOCK_URL=... migrate.sh [--accept | status] FOLDER CLIENT [ARGUMENT...]"
what=apply
case ${1:-} in
--accept | status)
    what=$1
    shift
    ;;
-*) set -- ;;
esac
[ $# -ge 2 ] || {
    echo "$usage" >&2
    exit 64
}
fail() { # WHY
    echo "migrate.sh: $1" >&2
    exit 1
}
[ -d "$1" ] || fail "$1: there is no such folder"
number=
for file in "$1"/[0-9][0-9][0-9]_*.sql; do
    name=${file##*/}
    [ -e "$file" ] || [ -L "$file" ] || continue
    [ "${name%%_*}" != "$number" ] || fail "$name: its number comes twice"
    number=${name%%_*}
    cat "$file" >/dev/null || fail "$file: it cannot be read"
done
[ -n "$number" ] || fail "$1: there is no file NNN_name.sql in it"

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
    if [ "$what" != status ]; then
        [ "$what" = apply ] || set -- "$what" "$@"
        exec sqlock run --ttl "${MIGRATE_TTL:-30}" migration "$0" "$@"
    fi
fi

folder=$1
shift
table=${MIGRATE_LOCK_TABLE:-INT_LOCK}

quoted() { # TEXT
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"
}

deployer=${MIGRATE_DEPLOYER:-$(id -un)@$(uname -n)}

version_of() { # NAME
    printf '%s' "$1" | sed 's/^0*\([0-9]\{1,3\}\)_.*/\1/'
}
checksum_of() { # FILE
    sha256=$(sha256sum <"$1") && printf '%s' "${sha256%% *}"
}
# Print what is recorded, a line per migration: its version, state, checksum ("-"
# where there is none) and deployer.  The C example records no checksums.  COLUMNS
# are separated by a comma and a space.
recorded_with() { # COLUMNS TABLES CLIENT...
    columns=$1 tables=$2
    shift 2
    case $MIGRATE_KIND in
    mysql) columns="CONCAT_WS(' ', $columns)" ;;
    *) columns=$(printf '%s' "$columns" | sed "s/, / || ' ' || /g") ;;
    esac
    echo "SELECT $columns FROM $tables;" | "$@"
}
recorded() { # CLIENT...
    recorded_with "l.version, l.state, COALESCE(f.checksum,'-'), COALESCE(f.deployer,'')" \
        "migration_log l LEFT JOIN migration_file f ON f.version = l.version" "$@"
}
recorded_without_checksums() { # CLIENT...
    recorded_with "version, state, '-'" migration_log "$@"
}
# Sets state, checksum and who to what $records says of migration $version.
look_up() {
    state='' checksum='' who=''
    read -r _ state checksum who <<END || :
$(printf '%s\n' "$records" | grep "^$version ")
END
    [ "$checksum" != - ] || checksum=
}

# Without a table nothing is applied; nothing is made to find out.
if [ "$what" = status ]; then
    status=0
    echo "SELECT 1;" | "$@" >/dev/null || exit 1
    records=$(recorded "$@" 2>/dev/null) ||
        records=$(recorded_without_checksums "$@" 2>/dev/null) || records=
    for file in "$folder"/[0-9][0-9][0-9]_*.sql; do
        name=${file##*/}
        version=$(version_of "$name")
        look_up
        case $state in
        2)
            word=applied
            [ -z "$checksum" ] || [ "$checksum" = "$(checksum_of "$file")" ] ||
                word="changed since it was applied"
            ;;
        1) word="begun by ${who:-a deployer}, not done" ;;
        *) word=pending ;;
        esac
        [ "$word" = applied ] || status=1
        echo "$name: $word"
    done
    exit $status
fi

quiet=
case $MIGRATE_KIND in
postgres)
    quiet="SET client_min_messages = warning;" # of tables that are there
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
    # 'now' is truncated to ms: with one more no lease that is over seems to run.
    now="(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
        * 1000 + 1000)"
    share=""
    alone=""
    ;;
esac

# A value, or null when the lease is no longer ours; nobody can take it over
# until the transaction ends.
ours() { # VALUE
    echo "(SELECT $1 FROM $table WHERE LOCK_KEY = $(quoted "$SQLOCK_KEY")
        AND REGION = $(quoted "$SQLOCK_REGION") AND FENCE = $SQLOCK_TOKEN
        AND CLIENT_ID IS NOT NULL AND EXPIRED_AFTER > $now $share)"
}

record() { # VERSION NAME STATE
    echo "DELETE FROM migration_log WHERE version = $1;"
    echo "INSERT INTO migration_log (version, name, state, token)"
    echo "    VALUES ($1, $(quoted "$2"), $3, $(ours FENCE));"
    record_file "$1" "$sum"
}
record_file() { # VERSION CHECKSUM
    echo "DELETE FROM migration_file WHERE version = $1;"
    echo "INSERT INTO migration_file (version, checksum, deployer)"
    echo "    VALUES ($1, $(ours "'$2'"), $(quoted "$deployer"));"
}

runs_inside() { # FILE
    case $(head -n 1 "$1") in
    "-- in a transaction") true ;;
    "-- outside a transaction") false ;;
    *) [ "$MIGRATE_KIND" != mysql ] ;;
    esac
}

# Recorded as late as possible in its transaction: while the record is there, the
# row of the lock is locked, and the lease not renewed.  A file need not end with
# a newline.
apply() { # FILE VERSION NAME
    if runs_inside "$1"; then
        echo "$begin"
        cat "$1"
        echo
        record "$2" "$3" 2
        echo "COMMIT;"
    else
        echo "$alone"
        echo "$begin"
        record "$2" "$3" 1
        echo "COMMIT;"
        cat "$1"
        echo
        echo "$begin"
        record "$2" "$3" 2
        echo "COMMIT;"
    fi
}

# Columns that the C example does not know are in a table of their own.
echo "$quiet CREATE TABLE IF NOT EXISTS migration_log (version INTEGER PRIMARY KEY,
    name VARCHAR(255) NOT NULL, state INTEGER NOT NULL, token BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS migration_file (version INTEGER PRIMARY KEY,
    checksum VARCHAR(64) NOT NULL, deployer VARCHAR(255) NOT NULL);" |
    "$@"

# Nobody else records anything while we have the lock.
records=$(recorded "$@")

# Before anything is applied.
for file in "$folder"/[0-9][0-9][0-9]_*.sql; do
    name=${file##*/}
    version=$(version_of "$name")
    sum=$(checksum_of "$file")
    look_up
    if [ "$state" != 2 ] || [ "$checksum" = "$sum" ]; then
        continue
    fi
    if [ -n "$checksum" ] && [ "$what" != --accept ]; then
        fail "$name: it has changed since it was applied; --accept takes it as it is"
    fi
    # One that was applied without a record of its checksum has it now.
    { echo "$begin"; record_file "$version" "$sum"; echo "COMMIT;"; } | "$@"
    [ -z "$checksum" ] || echo "$name: accepted as it is now"
done

for file in "$folder"/[0-9][0-9][0-9]_*.sql; do
    name=${file##*/}
    version=$(version_of "$name")
    sum=$(checksum_of "$file")
    look_up
    [ "$state" != 2 ] || continue
    if [ "$state" = 1 ] && [ "$who" = "$deployer" ]; then
        echo "$name: begun before and not done, running it again"
    elif [ "$state" = 1 ]; then
        echo "$name: begun by ${who:-a deployer} and not done, running it again"
    fi
    apply "$file" "$version" "$name" | "$@"
    # The client ends well, too, where it was not sent all, or told to end.
    records=$(recorded "$@")
    look_up
    [ "$state" = 2 ] || fail "$name: it is not recorded as applied"
    echo "$name: applied"
done
