#!/usr/bin/env bash
# versions.sh [ENGINE...]: build the suites with libmysqlclient, too, and run the
# matrix.
#
# Environment: MAKE BUILD MATRIX_SUITES; MYSQL_TREE: where MySQL is, or will be
set -u
cd "$(dirname "$0")/../../.." || exit 1

bash tests/tools/servers/fetch-mysql.sh "$MYSQL_TREE" || exit 1
export SQLOCK_BUILD_MYSQL=$BUILD/mysqlclient
programs=()
for suite in $MATRIX_SUITES; do
    programs+=("$SQLOCK_BUILD_MYSQL/tests/$suite")
done
"$MAKE" --no-print-directory SETUP=no MYSQL_CLIENT_TREE="$MYSQL_TREE" \
    "${programs[@]}" || exit 1
SQLOCK_TEST_TREES=$(realpath "$BUILD")/servers
export SQLOCK_TEST_TREES
exec bash tests/tools/matrix/matrix.sh "$@"
