#!/usr/bin/env bash
# shifted_clock.sh: a service wakes and stops in a program whose clock
# libfaketime shifts, as in tests of applications.  libfaketime also converts
# the times of timers.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
unit=$build/tests/unit

library=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1')
[ -n "$library" ] || skip_all "libfaketime is not installed"
# A program with a sanitizer's runtime and libfaketime hangs.
if ldd "$unit" | grep -qE 'lib[at]san'; then
    echo "ok - a shifted clock is for builds without a sanitizer"
    exit 0
fi
for shift in +90.5s -90.5s; do
    # A service that is not woken would sleep for ever: hence `timeout`.
    check "services at $shift" env "LD_PRELOAD=$library" "FAKETIME=$shift" \
        FAKETIME_DONT_FAKE_MONOTONIC=1 timeout -k 5 60 "$unit" -t '*handler*'
done
exit $status
