# signals.sh: begin a script again with the signals that its caller ignores at
# their defaults: bash cannot restore a signal that was ignored when it started,
# and hands that down to the commands under test.  To be sourced first.
# shellcheck shell=bash

if [ "${SQLOCK_TEST_SIGNALS:-}" != default ]; then
    SQLOCK_TEST_SIGNALS=default exec env --default-signal bash "$0" "$@"
fi
unset SQLOCK_TEST_SIGNALS
