#!/usr/bin/env bash
# metrics.sh: Prometheus's own parser reads the output of `sqlock metrics`, and
# the values are those of the table.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

value() { # NAME LABEL=VALUE...: of what was printed last
    /usr/bin/python3 "$here/metrics.py" "$@" <<<"$out"
}
metrics() { # of all regions
    out=$(unset SQLOCK_REGION && sq metrics 2>"$dir/err")
    status=$?
}
is_expired() { # NAME
    [ "$(sq show "$1" --json | json state)" = expired ]
}
holds_for_a_second() {
    metrics
    awk -v held="$(value sqlock_longest_hold_seconds "region=$region")" \
        'BEGIN { exit !(held >= 1 && held < 60) }'
}
one_waits() {
    metrics
    [ "$(value sqlock_waiting "region=$region")" = 1 ]
}

numbers() {
    local odd="$region\"\\odd" one two three
    metrics
    is "with nothing held" "$status" 0
    is "there is no such region" \
        "$(value sqlock_locks "region=$region" state=held)" none
    run metrics
    is "but one that is asked for has its 0" \
        "$(value sqlock_locks "region=$region" state=held)" 0
    is "and nobody who waits" "$(value sqlock_waiting "region=$region")" 0
    one=$(sq acquire -n --ttl 60 one)
    two=$(sq acquire -n --ttl 60 two)
    three=$(sq --region "$odd" acquire -n --ttl 60 three)
    run run free_one true
    run acquire -n --ttl 1 gone
    until_true is_expired gone
    metrics
    is "held" "$(value sqlock_locks "region=$region" state=held)" 2
    is "expired" "$(value sqlock_locks "region=$region" state=expired)" 1
    is "a region with a quote and a backslash" \
        "$(value sqlock_locks "region=$odd" state=held)" 1
    until_true holds_for_a_second
    is "the longest hold, in seconds" "$?" 0
    run metrics --region "$odd"
    is "of one region" "$(value sqlock_locks "region=$odd" state=held)" 1
    is "only" "$(value sqlock_locks "region=$region" state=held)" none
    sq release "$one"
    sq release "$two"
    sq --region "$odd" release "$three"
    metrics
    is "a lease that is over is no hold" \
        "$(value sqlock_longest_hold_seconds "region=$region")" 0
    run metrics one
    is "an argument" "$status" 64
}

waiting() {
    hold queue --ttl 20
    "$SQLOCK" --table-prefix "$prefix" run queue true 2>"$dir/err" &
    helper "$!"
    until_true one_waits
    is "who waits is counted" "$?" 0
    let_go
}

if ! /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
    skip "metrics" "python3-prometheus-client is not installed"
    exit 0
fi
for one in $(databases); do
    use "$one" || continue
    numbers
    waiting
    use "$one" spring7 || continue
    hold queue --ttl 20
    metrics
    is "on a layout of Spring who waits is not known, and left out" \
        "$(value sqlock_waiting "region=$region")" none
    let_go
    run metrics
    is "nor where none is held" \
        "$(value sqlock_waiting "region=$region")" none
done
database=
skip_missing
done_testing
