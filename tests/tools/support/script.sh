# script.sh: the head of a script that tests what is built, and its words.  To be
# sourced.  Such a script prints lines "ok - what" and "not ok - what" for
# tests/run.sh, and ends with `exit $status`.
# shellcheck shell=bash
#
#     $root    the sources, which are the working directory
#     $build   what was built, and $SQLOCK the command of it
#     $dir     a folder of the script's own, removed at its end with the processes
#              that it has named to `helper`
#     $about   begins what each line says, such as "sqlite: "

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
    # A background job that is ended before it has become another program runs
    # this trap, too.
    [ "$BASHPID" = "$$" ] || return 0
    kill_helpers
    rm -rf --one-file-system "$dir"
}
# A script that calls itself in a namespace hands its folder on, and removes it.
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

# Behind it, the output of the commands that it is about.
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

# Nothing of the script can be tested here.
skip_all() { # WHY
    echo "skip - $about$1"
    exit 77
}
