# script.sh: prepare a script that tests the build, and give it functions to
# report results.  To be sourced.  Such a script prints lines "ok - what" and
# "not ok - what" for tests/run.sh, and ends with `exit $status`.
# shellcheck shell=bash
#
#     $root    the sources, which are the working directory
#     $build   the folder of the build, and $SQLOCK its command sqlock
#     $dir     a folder of the script's own, removed at its end; the processes
#              that it has named to `helper` are killed then
#     $about   the text with which each line begins, such as "sqlite: "

. "$(dirname "${BASH_SOURCE[0]}")/signals.sh"
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd) || exit 1
cd "$root" || exit 1
build=$(realpath -ms "${SQLOCK_BUILD:-build}")
: "${SQLOCK:=$build/bin/sqlock}"
unset SQLOCK_URL SQLOCK_REGION
export XDG_CONFIG_HOME=/nonexistent
status=0
about=''
. tests/tools/support/helpers.sh

finish() {
    # A background job that is ended before it has executed its program runs
    # this trap, too.
    [ "$BASHPID" = "$$" ] || return 0
    kill_helpers
    rm -rf --one-file-system "$dir"
}
# A script that calls itself in a namespace passes its folder on to that call,
# and removes the folder itself.
if [ -n "${SQLOCK_SCRIPT_DIR:-}" ]; then
    dir=$SQLOCK_SCRIPT_DIR
    unset SQLOCK_SCRIPT_DIR
else
    dir=${0##*/}
    dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/sqlock-${dir%.sh}.XXXXXX") || exit 1
    trap finish EXIT
fi

passed() { # WHAT
    echo "ok - $about$1"
}

# Report a failure, with the output of the commands: the files out, err, *.err
# and out.* of $dir.
failed() { # WHAT
    local file
    echo "not ok - $about$1"
    for file in "$dir"/{out,err,*.err,out.*}; do
        [ ! -s "$file" ] || sed 's/^/# /' "$file"
    done
    status=1
}

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        passed "$what"
    else
        failed "$what"
    fi
}

is() { # WHAT GOT EXPECTED
    if [ "$2" = "$3" ]; then
        passed "$1"
    else
        failed "$1: got \"$2\", not \"$3\""
    fi
}

# End the script, because nothing of it can be tested here.
skip_all() { # WHY
    echo "skip - $about$1"
    exit 77
}
