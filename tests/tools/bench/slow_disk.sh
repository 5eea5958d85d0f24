#!/usr/bin/env bash
# slow_disk.sh MICROSECONDS COMMAND...: run a command whose servers wait so much
# longer for each flush of the disk.
#
#     SQLOCK_TEST_DURABLE=1 SQLOCK_TEST_SERVERS=postgres \
#         bash tests/tools/bench/slow_disk.sh 1000 \
#         bash tests/tools/servers/with.sh build/tests/bench --cases pair,fast
set -eu
dir=$(mktemp -d /tmp/sqlock-slow.XXXXXX)
trap 'rm -rf "$dir"' EXIT
chmod 711 "$dir"
cat >"$dir/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int flush_late(const char *name, int file)
{
    int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

    usleep(LATE_US);
    return flush(file);
}

int fsync(int file)
{
    return flush_late("fsync", file);
}

int fdatasync(int file)
{
    return flush_late("fdatasync", file);
}
C
"${CC:-cc}" -shared -fPIC -O2 "-DLATE_US=$1" -o "$dir/slow.so" "$dir/slow.c" -ldl
chmod 644 "$dir/slow.so"
shift
# The servers' scripts load a library by these (servers/common.sh).
SQLOCK_TEST_FAKETIME=$dir/slow.so SQLOCK_TEST_CLOCK=/dev/null "$@"
