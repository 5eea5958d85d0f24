#!/usr/bin/env bash
# rules.sh: does each model hold, and does it fail without each of its rules
# README.md says what the models are.
#
#     rules.sh                      the small instances, as `make test` does
#     SQLOCK_SCALE=campaign ...     those with more steps, too
#     rules.sh MODEL [-DREVERSE] [-DFLAG...]    one instance: its counterexample,
#                                   step by step, as `make model MODEL=...` does
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
models=$root/tests/model
page=$root/src/man/sqlock-failures.7

if ! command -v spin >/dev/null; then
    skip_all 'spin is not installed'
fi

# Make the verifier of an instance, as $dir/NAME/pan.  A search in the other
# order (-DREVERSE) finds some counterexamples much earlier.
make_verifier() { # NAME MODEL ORDER [-DFLAG...]
    local at=$dir/$1 model=$2 order=$3
    shift 3
    mkdir -p "$at" && cp "$models/$model.pml" "$at" && cd "$at" &&
        spin -a "$@" "$model.pml" &&
        ${CC:-cc} -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=6000 \
            ${order:+"$order"} -o pan pan.c
}

# Search all states, and print "holds", "fails", or what went wrong.
search() { # NAME
    local at=$dir/$1
    (cd "$at" && ./pan -E -m200000 -c1) >"$at/out" 2>"$at/err"
    if grep -qE 'max search depth too small|out of memory|MEMLIM' \
        "$at/out" "$at/err"; then
        echo unfinished
    elif grep -q 'errors: 1' "$at/out"; then
        echo fails
    elif grep -q 'errors: 0' "$at/out"; then
        echo holds
    else
        tail -n 3 "$at/err"
    fi
}

states() { # NAME
    awk '/states, stored/ { print $1 }' "$dir/$1/out"
}

try() { # EXPECTED MODEL ORDER [-DFLAG...]
    local expected=$1 name="$2${4:+ ${*:4}}" command="$2${3:+ $3}${4:+ ${*:4}}" at
    at=${name//[ =]/_}
    shift
    if ! make_verifier "$at" "$@" >"$dir/out" 2>&1; then
        failed "$name: no verifier could be made"
        return
    fi
    is "$name $expected" "$(search "$at")" "$expected"
    [ "$expected" = holds ] || grep -qF "MODEL=\"$command\"" "$page" ||
        failed "$page lacks MODEL=\"$command\""
    echo "# $name: $(states "$at") states"
    rm -rf "${dir:?}/$at"
}

# Each line: whether it holds, the model, the order of the search, the flags.
small() {
    try holds lease '' -DEND=3
    try holds lease '' -DEND=3 -DSHORTER
    try holds lease '' -DEND=3 -DHANDING
    try fails lease '' -DEND=3 -DFROM_ANSWER
    try fails lease '' -DEND=3 -DSLOW_CLOCK
    try fails lease '' -DEND=3 -DGRANTS=2 -DANY_OWNER
    try fails lease -DREVERSE -DEND=3 -DGRANTS=2 -DSAME_ID
    try fails lease -DREVERSE -DEND=3 -DTRIES=2 -DSHORTER -DNO_CAP
    try fails lease '' -DEND=3 -DNO_GUARD
    try fails lease -DREVERSE -DEND=3 -DTRIES=3 -DHANDING -DKEPT_ID
    try fails lease '' -DEND=3 -DFAILOVER
    try holds queue ''
    try holds queue '' -DWAITERS=4
    try fails queue '' -DBARGING
    try fails queue '' -DNO_CALL
    try fails queue '' -DNO_LOOK
    try fails queue '' -DNO_RING
    try holds shares ''
    try fails shares '' -DNEWEST_END
    try fails shares '' -DNO_SUM
    try fails shares '' -DSTALE_SHARE
    try fails shares '' -DTWO_STEPS
    try fails shares '' -DFREED
    try holds quorum '' -DEND=3
    try fails quorum '' -DEND=3 -DMINORITY
    try fails quorum '' -DEND=3 -DFROM_LAST
    try fails quorum '' -DEND=3 -DLATEST_END
    try fails quorum '' -DEND=3 -DFORGOTTEN
}

large() {
    try holds lease ''
    try holds lease '' -DSHORTER
    try holds lease '' -DHANDING
    try holds queue '' -DWAITERS=4 -DDEATHS=3
    try holds quorum ''
}

# Print the steps of a counterexample, with the variables that each changes.
show() { # MODEL [-DREVERSE] [-DFLAG...]
    local model=$1 order=''
    if [ "${2:-}" = -DREVERSE ]; then
        order=$2
        shift 2
        set -- "$model" "$@"
    fi
    make_verifier one "$model" "$order" "${@:2}" >"$dir/out" 2>&1 || {
        cat "$dir/out"
        exit 1
    }
    case $(search one) in
    holds) echo "$* holds: $(states one) states" ;;
    fails)
        (cd "$dir/one" && spin -t -p -g "${@:2}" "$model.pml")
        exit 1
        ;;
    *)
        cat "$dir/one/out" "$dir/one/err"
        exit 2
        ;;
    esac
}

if [ $# -gt 0 ]; then
    show "$@"
    exit 0
fi
small
[ "${SQLOCK_SCALE:-}" != campaign ] || large
exit $status
