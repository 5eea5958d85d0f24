#!/usr/bin/env bash
# matrix.sh [ENGINE]...: run suites on other servers than this machine's, and
# print a table of what came of it.
#
# Engines are those of the list below, or by their names as in SQLOCK_TEST_SERVERS
# (tests/servers/with.sh).  Servers that are missing are fetched first.
# MATRIX_SUITES="conformance tx fault" chooses suites; SQLOCK_BUILD names the
# build, and SQLOCK_BUILD_MYSQL the one with Oracle's client library, for the
# engine "mysql-client".  Exit status 0 only if all that could be run has passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${SQLOCK_BUILD:-build}
suites=${MATRIX_SUITES:-conformance tx fault}
trees=${SQLOCK_TEST_TREES:-$PWD/build/servers}

engines=("$@")
[ ${#engines[@]} -gt 0 ] || engines=(postgres-13 postgres-15 postgres-17
    postgres-18 pgbouncer standby mariadb-10 mariadb-11 mysql mysql-client
    galera replica)

# The trees that an engine needs.
fetch() { # ENGINE
    case $1 in
    postgres-* | mariadb-*) bash tests/servers/fetch.sh "$1" ;;
    pgbouncer*) bash tests/servers/fetch.sh pgbouncer ;;
    galera) bash tests/servers/fetch.sh mariadb-10 ;;
    mysql* | replica) bash tests/servers/fetch-mysql.sh "$trees/mysql" ;;
    esac
}

database_of() { # ENGINE
    case $1 in
    postgres* | pgbouncer* | standby*) echo postgres ;;
    *) echo mysql ;;
    esac
}

logs=$build/log/matrix
mkdir -p "$logs"
results=$(mktemp) || exit 1
trap 'rm -f "$results"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
status=0

# "12/0/1": passed, failed, skipped, as run.sh's table has it.
cell() { # LOG SUITE
    awk -v suite="$2" '$1 == suite && NF == 5 { text = $2 "/" $3 "/" $4 }
        END { print text == "" ? "-" : text }' "$1"
}

for engine in "${engines[@]}"; do
    log=$logs/$engine.log
    server=$engine program=$build
    if [ "$engine" = mysql-client ]; then
        server=mysql program=${SQLOCK_BUILD_MYSQL:-}
    fi
    echo "matrix: $engine"
    if [ -z "$program" ] || ! fetch "$engine" >"$log" 2>&1; then
        echo "$engine not to be had" >>"$results"
        status=1
        continue
    fi
    # What is of one engine alone; it brings its own servers and uses them up.
    wanted=$suites
    case $engine in
    standby*) wanted+=" failover" ;;
    galera) wanted+=" galera" ;;
    esac
    # shellcheck disable=SC2086 # several suites
    SQLOCK_TEST_SERVERS=$server SQLOCK_BUILD=$program \
        SUITE_ARGS=$(database_of "$engine") \
        SQLOCK_TEST_MYSQL_TREE=$trees/mysql \
        bash tests/run.sh $wanted >>"$log" 2>&1 || status=1
    line=$engine
    for suite in $suites failover galera; do
        line+=" $(cell "$log" "$suite")"
    done
    echo "$line" >>"$results"
    tail -n 1 "$log"
done

# shellcheck disable=SC2086 # several suites
{
    printf '\n%-16s' 'passed/failed/skipped'
    printf ' %14s' $suites failover galera
    echo
    while read -r engine cells; do
        printf '%-21s' "$engine"
        case $cells in
        not*) printf ' %14s' "$cells" ;;
        *) printf ' %14s' $cells ;;
        esac
        echo
    done <"$results"
}
exit "$status"
