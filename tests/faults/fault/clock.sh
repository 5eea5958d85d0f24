#!/usr/bin/env bash
# clock.sh: the tests of a database whose clock is set forward and back, on
# servers of their own that read their clock from a file (libfaketime).
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}

found=
for library in /usr/lib/*/faketime/libfaketimeMT.so.1 \
    /usr/lib/faketime/libfaketimeMT.so.1; do
    [ ! -e "$library" ] || found=$library
done
if [ -z "$found" ]; then
    echo "skip - libfaketime is not installed"
    exit 77
fi

dir=$(mktemp -d /tmp/sqlock-clock.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
echo +0 >"$dir/clock"
chmod 644 "$dir/clock"
unset SQLOCK_TEST_POSTGRES_URL SQLOCK_TEST_MYSQL_URL
unset SQLOCK_TEST_POSTGRES_ADMIN_URL SQLOCK_TEST_MYSQL_ADMIN_URL
unset SQLOCK_TEST_POSTGRES_PIDFILE SQLOCK_TEST_MYSQL_PIDFILE
unset SQLOCK_TEST_POSTGRES_PID SQLOCK_TEST_MYSQL_PID
# One after the other: both read the same file.
status=0
for pair in postgres=postgres mariadb=mysql; do
    SQLOCK_TEST_SERVERS=${pair%=*} SQLOCK_TEST_FAKETIME=$found \
        SQLOCK_TEST_CLOCK=$dir/clock bash tests/tools/servers/with.sh \
        "$build/tests/fault" -c "$dir/clock" "${pair#*=}" || status=1
done
exit "$status"
