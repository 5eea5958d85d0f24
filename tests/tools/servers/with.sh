#!/usr/bin/env bash
# with.sh COMMAND...: run a command with private database servers.
#
# The script starts PostgreSQL and MariaDB under a new directory in /tmp, unless
# SQLOCK_TEST_POSTGRES_URL and SQLOCK_TEST_MYSQL_URL name servers already.  It
# ends and removes them when the command ends or the script is interrupted.
# Servers run as `nobody` if the script runs as root.  The command gets
#     SQLOCK_TEST_{POSTGRES,MYSQL}_URL        an ordinary user of database sqlock
#     SQLOCK_TEST_{POSTGRES,MYSQL}_ADMIN_URL  an administrator
#     SQLOCK_TEST_{POSTGRES,MYSQL}_SOCKET     Unix socket (libpq: its folder)
#     SQLOCK_TEST_{POSTGRES,MYSQL}_PID        the server's process id
#     SQLOCK_TEST_{POSTGRES,MYSQL}_PIDFILE    file with it, also after a restart
#     SQLOCK_TEST_SQLITE_URL SQLOCK_TEST_DIR  a file, and a scratch directory
#
# SQLOCK_TEST_SERVERS="postgres mariadb" chooses the servers:
#     postgres mariadb    those of this machine
#     postgres-17 ...     those that fetch.sh has unpacked
#     mysql               Oracle's MySQL, of the tree SQLOCK_TEST_MYSQL_TREE
#     pgbouncer[-N]       PgBouncer before postgres[-N]
#     standby[-N]         postgres[-N] with a synchronous and an asynchronous
#                         standby; see standby.sh for what it publishes
#     patroni[-sync|-haproxy]
#                         three nodes under Patroni; see patroni.sh
#     galera              three nodes of MariaDB; see galera.sh
#     replica[-mariadb]   Oracle's MySQL, or MariaDB, with a replica; see replica.sh
#     group               three members of a group of MySQL; see group.sh
# SQLOCK_TEST_DURABLE=1 makes commits wait for the disk;
# SQLOCK_TEST_TLS=DIR makes servers speak TLS, with the certificates that ca.sh
# has made in DIR; SQLOCK_TEST_MARIADB_OPTIONS has more options for MariaDB;
# SQLOCK_TEST_WAITING=poll adds waiting=poll to the URLs, and takes the right to
# use advisory locks and pg_notify from the users of PostgreSQL.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || {
    echo "usage: with.sh COMMAND..." >&2
    exit 2
}

# The servers to start: not those of a database that has a URL already.
servers=()
for server in ${SQLOCK_TEST_SERVERS-postgres mariadb}; do
    case $server in
    postgres* | pgbouncer* | standby* | patroni*) url=${SQLOCK_TEST_POSTGRES_URL:-} ;;
    mariadb* | mysql | galera | replica* | group) url=${SQLOCK_TEST_MYSQL_URL:-} ;;
    *)
        echo "with.sh: there is no server $server" >&2
        exit 2
        ;;
    esac
    [ -n "$url" ] || servers+=("$server")
done

# Print the tree of fetch.sh for a server, or nothing if it needs none.
tree_of() { # SERVER
    local trees=${SQLOCK_TEST_TREES:-${here%/*/*/*}/build/servers}
    case $1 in
    mariadb-*) echo "$trees/$1" ;;
    replica-* | patroni-*) ;;
    galera) echo "$trees/mariadb-10" ;;
    *-*) echo "$trees/postgres-${1#*-}" ;;
    esac
}

base=$(mktemp -d /tmp/sqlock.XXXXXX) || exit 1
chmod 711 "$base"
pids=()
command_pid=

cleanup() {
    local pid
    trap '' INT TERM
    for pid in "${pids[@]}"; do
        kill -TERM "$pid" 2>/dev/null
    done
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null
    done
    rm -rf "$base"
}
interrupted() { # SIGNAL
    [ -z "$command_pid" ] || kill -"$1" -- "-$command_pid" 2>/dev/null
    exit $((128 + $(kill -l "$1")))
}
trap cleanup EXIT
trap 'interrupted INT' INT
trap 'interrupted TERM' TERM

for server in "${servers[@]}"; do
    mkdir "$base/$server"
    # The server ends with this script.
    SQLOCK_TEST_TREE=$(tree_of "$server") setpriv --pdeathsig TERM \
        bash "$here/${server%%-*}.sh" "$base/$server" &
    pids+=($!)
done
i=0
# Wait until each server has published its variables, or has given up.
for server in "${servers[@]}"; do
    end=$((SECONDS + 120))
    until [ -e "$base/$server/env" ] || [ "$SECONDS" -ge "$end" ] ||
        ! kill -0 "${pids[i]}" 2>/dev/null; do
        sleep 0.05
    done
    if [ -e "$base/$server/env" ]; then
        set -a
        # shellcheck disable=SC1090,SC1091 # written by the server's script
        . "$base/$server/env"
        set +a
    else
        kill "${pids[i]}" 2>/dev/null
        wait "${pids[i]}"
        [ $? -eq 77 ] || {
            echo "with.sh: $server does not start" >&2
            exit 1
        }
        echo "with.sh: no $server here: its tests are skipped" >&2
    fi
    i=$((i + 1))
done

mkdir "$base/scratch"
export SQLOCK_TEST_DIR=${SQLOCK_TEST_DIR:-$base/scratch}
durable=
[ "${SQLOCK_TEST_DURABLE:-}" != 1 ] || durable='?synchronous=full'
export SQLOCK_TEST_SQLITE_URL=${SQLOCK_TEST_SQLITE_URL-sqlite:$SQLOCK_TEST_DIR/test.db$durable}

for name in POSTGRES MYSQL; do
    url=SQLOCK_TEST_${name}_URL
    [ -z "${SQLOCK_TEST_WAITING:-}" ] || [ -z "${!url:-}" ] ||
        export "$url=${!url}?waiting=$SQLOCK_TEST_WAITING"
done

# Run the command in a process group of its own, so that `interrupted` can end
# all of its processes.
set -m
setpriv --pdeathsig TERM "$@" &
command_pid=$!
set +m
wait "$command_pid"
