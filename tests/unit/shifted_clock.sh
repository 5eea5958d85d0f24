#!/usr/bin/env bash
# shifted_clock.sh: a service wakes and stops in a program whose clock
# libfaketime shifts, as applications are tested: it converts the times of
# timers, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
unit=${SQLOCK_BUILD:-build}/tests/unit

library=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1')
if [ -z "$library" ]; then
    echo "skip - libfaketime is not installed"
    exit 77
fi
# A sanitizer's runtime and the library hang when both are there.
if ldd "$unit" | grep -qE 'lib[at]san'; then
    echo "ok - a shifted clock is for builds without a sanitizer"
    exit 0
fi
status=0
for shift in +90.5s -90.5s; do
    # A service that is not woken sleeps for ever.
    if LD_PRELOAD=$library FAKETIME=$shift FAKETIME_DONT_FAKE_MONOTONIC=1 \
        timeout -k 5 60 "$unit" -t '*handler*' >"${TMPDIR:-/tmp}/shifted.$$" 2>&1; then
        echo "ok - services at $shift"
    else
        tail -n 5 "${TMPDIR:-/tmp}/shifted.$$"
        echo "not ok - services at $shift"
        status=1
    fi
done
rm -f "${TMPDIR:-/tmp}/shifted.$$"
exit $status
