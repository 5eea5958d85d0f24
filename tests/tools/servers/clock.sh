#!/usr/bin/env bash
# clock.sh COMMAND...: run a command that starts servers by with.sh: they read
# their clock from the file SQLOCK_TEST_CLOCK, by libfaketime (common.sh).
# Exit status 77 if that is not installed.
set -u

for library in /usr/lib/*/faketime/libfaketimeMT.so.1 \
    /usr/lib/faketime/libfaketimeMT.so.1; do
    [ ! -e "$library" ] || export SQLOCK_TEST_FAKETIME=$library
done
if [ -z "${SQLOCK_TEST_FAKETIME:-}" ]; then
    echo "skip - libfaketime is not installed"
    exit 77
fi
dir=$(mktemp -d /tmp/sqlock-clock.XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 130' INT
trap 'kill -TERM "$command_pid" 2>/dev/null; wait; exit 143' TERM
chmod 755 "$dir"
echo +0 >"$dir/clock"
chmod 644 "$dir/clock"
export SQLOCK_TEST_CLOCK=$dir/clock
"$@" &
command_pid=$!
wait "$command_pid"
