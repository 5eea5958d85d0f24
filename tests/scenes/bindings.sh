#!/usr/bin/env bash
# bindings.sh: scenes are played by processes that use sqlock.hpp, and by such
# that use the Python package.
#
# They use sqlock's own layout: what is said in SQL is the same library's.  A
# scene with a verb for which a binding has no call is skipped; those that are
# played have to be so many on each database; when the script is run again, only
# those that failed are played.  Other scripts use the servers meanwhile.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"
scenes=$build/tests/scenes

[ -x "$scenes" ] || skip_all "there is no program of scenes"
databases=0
for url in "${SQLOCK_TEST_SQLITE_URL:-}" "${SQLOCK_TEST_POSTGRES_URL:-}" \
    "${SQLOCK_TEST_MYSQL_URL:-}"; do
    [ -z "$url" ] || databases=$((databases + 1))
done

# Play the scenes of the files by such a process.
play() { # BINDING COMMAND LEAST FILE...
    local binding=$1 least=$(($3 * databases)) log=$dir/$1.log count ended=0
    local name names failed=${SUITE_FAILED:-/dev/null}
    export SQLOCK_TEST_ACTOR="exec $2"
    shift 3
    set -- "${@/%/_*}"
    # unless too few were played, or it did not come to an end
    if grep -q '^not ok' "$failed" && ! grep '^not ok' "$failed" |
        grep -vqE '^not ok - (c\+\+|python): [a-z0-9_]+$'; then
        mapfile -t names < <(sed -n "s/^not ok - $binding: //p" "$failed")
        set -- "${names[@]}"
        least=$#
    fi
    for name in "$@"; do
        "$scenes" --beside-others -l sqlock -t "$name" || ended=$?
    done >"$log" 2>&1
    count=$(grep -c '^\[       OK \]' "$log")
    sed -n "s/^\[       OK \] /ok - $binding: /p" "$log"
    sed -n -E 's/^\[  FAILED  \] ([a-z].*_)/\1/p' "$log" | sort -u |
        sed "s/^/not ok - $binding: /"
    if grep -q '^\[  FAILED  \]' "$log"; then
        grep -E -A1 '^tests/scenes/.*\.scene:' "$log" | sed 's/^/# /'
        status=1
    elif [ "$ended" -ne 0 ]; then
        failed "$binding: the scenes end with status $ended"
    fi
    [ "$count" -ge "$least" ] ||
        failed "$binding plays $count scenes, and $least could be"
}

read -ra libs <<<"$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --static \
    --libs-only-l sqlock)"
read -ra cxx <<<"${CXX:-g++}" # may have words: "ccache g++"
check "actor.cc is built" "${cxx[@]}" -std=c++20 -O1 -Wall -Wextra -Werror \
    -Iinclude -pthread tests/scenes/bindings/actor.cc -o "$dir/actor" \
    -L"$build/lib" "${libs[@]}" -Wl,-rpath,"$build/lib"
[ ! -x "$dir/actor" ] || play c++ "$dir/actor" 105 \
    wait order many handoff lost renewed queue outage owner cancel \
    token shared

python=${PYTHON:-/usr/bin/python3}
export SQLOCK_LIBRARY=$build/lib/libsqlock.so PYTHONPATH=$PWD/src/python
export PYTHONDONTWRITEBYTECODE=1
play python "$python $PWD/tests/scenes/bindings/actor.py" 58 \
    wait order many handoff owner token shared
exit $status
