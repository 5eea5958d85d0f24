#!/usr/bin/env bash
# mysql.sh: suites on Oracle's MySQL, fetched for the purpose, through either
# client library.  MYSQL_SUITES chooses.
#
# Environment: MAKE; MYSQL_TREE: where the server is, or will be
set -u
cd "$(dirname "$0")/../../.." || exit 1
: "${MYSQL_SUITES:=drivers conformance scenes tx tls waiting}"

bash tests/tools/servers/fetch-mysql.sh "$MYSQL_TREE" || exit 1
export SQLOCK_TEST_SERVERS='postgres mysql' SQLOCK_TEST_MYSQL_TREE=$MYSQL_TREE
again=("$MAKE" --no-print-directory SETUP=no SUITES="$MYSQL_SUITES" test)
"${again[@]}" MYSQL_CLIENT=libmariadb MYSQL_CLIENT_TREE= &&
    "${again[@]}" MYSQL_CLIENT_TREE="$MYSQL_TREE"
