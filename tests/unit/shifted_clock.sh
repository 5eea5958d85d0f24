#!/usr/bin/env bash
# shifted_clock.sh: a service wakes and stops in a program whose clock
# libfaketime shifts, as applications are tested: it converts the times of
# timers, too.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
unit=$build/tests/unit

library=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1')
[ -n "$library" ] || skip_all "libfaketime is not installed"
# A sanitizer's runtime and the library hang when both are there.
if ldd "$unit" | grep -qE 'lib[at]san'; then
    echo "ok - a shifted clock is for builds without a sanitizer"
    exit 0
fi
for shift in +90.5s -90.5s; do
    # A service that is not woken sleeps for ever.
    check "services at $shift" env "LD_PRELOAD=$library" "FAKETIME=$shift" \
        FAKETIME_DONT_FAKE_MONOTONIC=1 timeout -k 5 60 "$unit" -t '*handler*'
done
exit $status
