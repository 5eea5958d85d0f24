#!/usr/bin/env bash
# matrix.sh [ENGINE]...: run suites on servers other than this machine's, and
# print a table of the results, and why tests were skipped or not run.
#
# An engine is one of the list below, or a server of SQLOCK_TEST_SERVERS
# (tests/tools/servers/with.sh).  Servers that are missing are fetched first.
#
# MATRIX_SUITES="conformance scenes tx fault" chooses suites (only their programs,
# since scripts start servers of their own); MATRIX_JOBS=1 is how many engines
# run at a time; MATRIX_RESUME=1 does not run suites again that have passed
# since they were built; MATRIX_ONLY=table runs nothing, and prints the table of
# the last results.  SQLOCK_BUILD names the build, and SQLOCK_BUILD_MYSQL the
# build with Oracle's client library, for the engine "mysql-client".  The log of
# a suite is $SQLOCK_BUILD/log/matrix/ENGINE/SUITE.log.  The exit status is 0
# only if each suite that can run on its engine has a result without failures.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
suites=${MATRIX_SUITES:-conformance scenes tx fault}
trees=${SQLOCK_TEST_TREES:-$PWD/build/servers}

engines=("$@")
[ ${#engines[@]} -gt 0 ] || engines=(postgres-13 postgres-15 postgres-17
    postgres-18 pgbouncer standby mariadb-10 mariadb-11 mysql mysql-client
    galera replica replica-mariadb group patroni patroni-sync patroni-haproxy
    spring)

# ------------------------------------------------------------- the engines --

# Fetch the trees that an engine needs.
fetch() { # ENGINE
    case $1 in
    postgres-* | mariadb-*) bash tests/tools/servers/fetch.sh "$1" ;;
    pgbouncer*) bash tests/tools/servers/fetch.sh pgbouncer ;;
    galera) bash tests/tools/servers/fetch.sh mariadb-10 ;;
    patroni*) bash tests/tools/servers/fetch-patroni.sh "$trees/patroni" ;;
    mysql* | replica | group) bash tests/tools/servers/fetch-mysql.sh "$trees/mysql" ;;
    esac
}

database_of() { # ENGINE
    case $1 in
    spring) echo postgres mysql ;;
    postgres* | pgbouncer* | standby* | patroni*) echo postgres ;;
    *) echo mysql ;;
    esac
}

# Print the arguments of a suite: the databases, except for suites of one
# cluster, which take none.
arguments_of() { # ENGINE SUITE
    case $2 in
    galera | replica | group | promotion) ;;
    *) database_of "$1" ;;
    esac
}

program_of() { # ENGINE SUITE
    case $1 in
    mysql-client) echo "${SQLOCK_BUILD_MYSQL:-$build/mysqlclient}/tests/$2" ;;
    *) echo "$build/tests/$2" ;;
    esac
}

of_this_machine() {
    "$(bash tests/tools/servers/postgres-bin.sh)/postgres" --version |
        awk '{ print "PostgreSQL " $3 }'
}

of_tree() { # TREE: what its package calls itself, less epoch and revision
    sed 's/^[0-9]*://; s/[-+].*//' "$trees/$1/version" 2>/dev/null || echo '?'
}

# Print the name and version of the engine, as the table has them.
describe() { # ENGINE
    case $1 in
    postgres-*) echo "PostgreSQL $(of_tree "$1")" ;;
    pgbouncer*) echo "PgBouncer $(of_tree pgbouncer), $(of_this_machine)" ;;
    standby) echo "$(of_this_machine), two standbys" ;;
    standby-*) echo "PostgreSQL $(of_tree "postgres-${1#*-}"), two standbys" ;;
    mariadb-*) echo "MariaDB $(of_tree "$1")" ;;
    mysql) echo "MySQL $(of_tree mysql)" ;;
    mysql-client) echo "MySQL $(of_tree mysql), libmysqlclient" ;;
    replica) echo "MySQL $(of_tree mysql), a replica" ;;
    group) echo "MySQL $(of_tree mysql), three members" ;;
    galera) echo "MariaDB $(of_tree mariadb-10), three nodes" ;;
    replica-mariadb) echo "MariaDB, a replica" ;;
    patroni) echo "$(of_this_machine), Patroni" ;;
    patroni-*) echo "$(of_this_machine), Patroni, ${1#*-}" ;;
    spring) echo "Spring 5, 6, 7 beside $(of_this_machine)" ;;
    *) echo "$1" ;;
    esac
}

# Print the suites that run on this engine only, in addition to $suites.
own_suites() { # ENGINE
    case $1 in
    standby*) echo failover promotion ;;
    galera | group) echo "$1" promotion ;;
    replica | spring) echo "$1" ;;
    patroni* | replica-mariadb) echo promotion ;;
    esac
}

# Print why a suite makes no sense on an engine; nothing: it does.
why_not() { # ENGINE SUITE
    case "$1 $2" in
    "group group" | "spring spring" | *" promotion") ;;
    "spring "*) echo "it is no other server" ;;
    "patroni"* | "replica-mariadb "*) echo "its servers are there to fail" ;;
    "group "*)
        echo "it ends servers, and a member that is started again is outside" \
            "its group"
        ;;
    "pgbouncer fault" | "pgbouncer-"*" fault")
        echo "it ends sessions at the server by their clients' ports, and" \
            "PgBouncer's are others"
        ;;
    esac
}

# ------------------------------------------------------------- the results --

logs=$build/log/matrix
mkdir -p "$logs" || exit 1
# Running jobs are ended first; each ends the processes that it has started.
finish() {
    trap '' INT TERM
    # shellcheck disable=SC2046 # numbers
    kill -TERM $(jobs -p) 2>/dev/null
    wait
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Print a suite's numbers of tests that passed, failed and were skipped, such as
# "12 0 1", from the table of run.sh; return 1 if there is no table.
read_counts() { # LOG SUITE
    awk -v suite="$2" '$1 == suite && NF == 5 { text = $2 " " $3 " " $4 }
        END { print text; exit text == "" }' "$1"
}

has_passed() { # ENGINE SUITE
    local result=$logs/$1/$2.result counts
    [ "$result" -nt "$(program_of "$1" "$2")" ] || return 1
    read -ra counts <"$result"
    [ "${counts[1]}" = 0 ] && [ "${counts[0]}" -gt 0 ]
}

# Run one suite on one engine, and write its counts to ENGINE/SUITE.result.
run_suite() { # ENGINE SUITE
    local engine=$1 suite=$2 server=$1 result=$logs/$1/$2.result program
    local limit=${SUITE_SECONDS:-600}
    program=$(program_of "$engine" "$suite")
    [ "$engine" != mysql-client ] || server=mysql
    [ "$engine" != spring ] || server='postgres mariadb' limit=3600
    [ "$suite" != promotion ] || limit=$((limit + 120 * ${SQLOCK_TEST_ROUNDS:-1}))
    rm -f "$result"
    SQLOCK_TEST_SERVERS=$server SQLOCK_BUILD=${program%/tests/*} \
        SUITE_LOGS=$logs/$engine SUITE_ARGS=$(arguments_of "$engine" "$suite") \
        SUITE_SCRIPTS=no SQLOCK_TEST_MYSQL_TREE=$trees/mysql \
        SQLOCK_TEST_PATRONI_TREE=$trees/patroni \
        SUITE_SECONDS=$limit \
        bash tests/run.sh "$suite" >"$logs/$engine/$suite.run" 2>&1 &
    wait $!
    read_counts "$logs/$engine/$suite.run" "$suite" >"$result.new" &&
        mv "$result.new" "$result"
    rm -f "$result.new"
    echo "matrix: $engine $suite: $(tail -n 1 "$logs/$engine/$suite.run")"
}

run_engine() { # ENGINE
    local suite
    trap finish EXIT
    trap 'exit 143' INT TERM
    mkdir -p "$logs/$1"
    fetch "$1" >"$logs/$1/fetch.log" 2>&1 || {
        echo "matrix: $1 is not to be had: $(tail -n 1 "$logs/$1/fetch.log")"
        return
    }
    for suite in $suites $(own_suites "$1"); do
        [ -z "$(why_not "$1" "$suite")" ] || continue
        [ -z "${MATRIX_RESUME:-}" ] || ! has_passed "$1" "$suite" || continue
        run_suite "$1" "$suite"
    done
}

# --------------------------------------------------------------- the table --

status=0
notes=()

# Set $text to a cell of the table, and add the notes on it to $notes.
cell() { # ENGINE SUITE
    local engine=$1 suite=$2 counts reason
    case " $suites $(own_suites "$engine") " in
    *" $suite "*) ;;
    *)
        text=
        return
        ;;
    esac
    reason=$(why_not "$engine" "$suite")
    if [ -n "$reason" ]; then
        text=-
        notes+=("$engine $suite: not run: $reason")
    elif read -ra counts 2>/dev/null <"$logs/$engine/$suite.result"; then
        text=${counts[0]}/${counts[1]}/${counts[2]}
        [ "${counts[1]}" -eq 0 ] || status=1
        while read -r reason; do
            notes+=("$engine $suite: skipped: $reason")
        done < <(sed -nE 's/^(skipped:|skip -) //p' "$logs/$engine/$suite.log" |
            sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 times: /')
    else
        text='none'
        status=1
        notes+=("$engine $suite: no result: see $logs/$engine")
    fi
}

# Print the row of an engine.  The suites of this engine only are last.
row() { # ENGINE
    local suite
    printf '%-13s %-34s' "$1" "$(describe "$1")"
    for suite in $suites; do
        cell "$1" "$suite"
        printf ' %12s' "$text"
    done
    for suite in $(own_suites "$1"); do
        cell "$1" "$suite"
        printf ' %12s' "$suite $text"
    done
    echo
}

if [ "${MATRIX_ONLY:-}" != table ]; then
    for engine in "${engines[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "${MATRIX_JOBS:-1}" ]; do
            wait -n
        done
        run_engine "$engine" &
    done
    wait
fi
printf '\n%-48s' 'passed/failed/skipped'
# shellcheck disable=SC2086 # several suites
printf ' %12s' $suites
echo
for engine in "${engines[@]}"; do
    row "$engine"
done
[ ${#notes[@]} -eq 0 ] || printf '%s\n' '' "${notes[@]}"
exit "$status"
