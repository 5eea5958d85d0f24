#!/usr/bin/env bash
# measure.sh BUILD NAME...: measure what the charts show, and draw them:
# BUILD/chart/*.svg.  Each is measured once: remove BUILD/chart/NAME.json to
# measure anew.
#
# CHART_FLAGS are those of the benchmark (--seconds 0.4 --repeats 5).
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
: "${CHART_FLAGS:=--seconds 0.4 --repeats 5}"
peers=
! command -v redis-server >/dev/null || peers=,redis-always,redis-everysec

declare -A cases=(
    [pairs]="--clients 1,4,16,64,64p --cases floor,pair,pooled$peers"
    [stock-curve]='--clients 2,4,8,16,32,64,128,200
        --cases sale,pessimistic,conditional,coalesced'
    [stock-ways]='--clients 1,4,16,64,64p --cases stock'
    [waiting]='--clients 8,8p --hold 0.1 --cases waiting'
)
mkdir -p "$build/chart" || exit 1
results=()
for name in "$@"; do
    result=$build/chart/$name.json
    results+=("$result")
    [ ! -e "$result" ] || continue
    rm -f "$result.new"
    # shellcheck disable=SC2086 # flags are words
    # A case that has failed is not drawn.
    SQLOCK_TEST_DURABLE=1 bash "$here/../servers/with.sh" "$build/tests/bench" \
        --json "$result.new" ${cases[$name]} $CHART_FLAGS ||
        [ -s "$result.new" ] || exit 1
    mv "$result.new" "$result"
done
exec bash "$here/chart.sh" "$build/chart" "${results[@]}"
