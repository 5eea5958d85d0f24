#!/usr/bin/env bash
# spring.sh: the suite beside Spring's own lock registry; on Oracle's MySQL, too,
# where that has been fetched.  Without a JDK or Maven it says so, and that is
# all.
#
# Environment: MAKE SQLOCK_BUILD; MYSQL_TREE: where MySQL's server would be
set -u
cd "$(dirname "$0")/../../.." || exit 1
export SUITE_SECONDS=${SUITE_SECONDS:-3600}

bash tests/interplay/spring/with.sh
case $? in
0) ;;
77) exit 0 ;;
*) exit 1 ;;
esac
again=("$MAKE" --no-print-directory SETUP=no SUITES=spring test)
"${again[@]}" || exit 1
[ -e "$MYSQL_TREE/version" ] || exit 0
SQLOCK_TEST_SERVERS=mysql SQLOCK_TEST_MYSQL_TREE=$MYSQL_TREE SUITE_ARGS=mysql \
    "${again[@]}"
