# lib.sh: functions that the scripts of this folder share.  tests/run.sh runs
# each script.  By hand, SQLOCK may name the command, and SQLOCK_TEST_*_URL the
# databases.
# shellcheck shell=bash

. "$(dirname "${BASH_SOURCE[0]}")/../tools/support/signals.sh"
set -u
ulimit -S -c 0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${SQLOCK:=$here/../../build/bin/sqlock}"
unset SQLOCK_URL SQLOCK_REGION SQLOCK_TABLE_PREFIX SQLOCK_RULE SQLOCK_PEER_TTL
unset SQLOCK_CLIENT_ID NO_COLOR
export XDG_CONFIG_HOME=/nonexistent

dir=$(mktemp -d "${SQLOCK_TEST_DIR:-/tmp}/cli.XXXXXX") || exit 1
: "${SQLOCK_TEST_SQLITE_URL=sqlite:$dir/test.db}"
region=cli.$$ # tables are shared, regions are not
number=0
failures=0
skips=0
. "$here/../tools/support/helpers.sh"

finish() {
    # A background job that is ended before it has become another program runs
    # this trap, too.
    [ "$BASHPID" = "$$" ] || return 0
    kill_helpers
    rm -rf "$dir"
}
trap finish EXIT

ok() { # WHAT
    number=$((number + 1))
    echo "ok $number - ${database:+$database: }$1"
}

not_ok() { # WHAT [WHY]
    number=$((number + 1))
    failures=$((failures + 1))
    echo "not ok $number - ${database:+$database: }$1${2:+: $2}"
    [ ! -s "$dir/err" ] || sed 's/^/# stderr: /' "$dir/err"
}

skip() { # WHAT WHY
    skips=$((skips + 1))
    echo "skip - ${database:+$database: }$1: $2"
}

is() { # WHAT GOT EXPECTED
    if [ "$2" = "$3" ]; then
        ok "$1"
    else
        not_ok "$1" "got \"$2\", not \"$3\""
    fi
}

like() { # WHAT GOT PATTERN
    # shellcheck disable=SC2053 # it is a pattern
    if [[ $2 == $3 ]]; then
        ok "$1"
    else
        not_ok "$1" "got \"$2\", not like \"$3\""
    fi
}

has() { # WHAT GOT PART
    if [[ $2 == *"$3"* ]]; then
        ok "$1"
    else
        not_ok "$1" "got \"$2\", without \"$3\""
    fi
}

# A script that has skipped all is no failure here; tests/run.sh counts skips.
done_testing() {
    [ "$((number + skips))" -gt 0 ] || echo "not ok - nothing was tested"
    echo "1..$number"
    [ "$failures" -eq 0 ] && [ "$((number + skips))" -gt 0 ]
    exit
}

# Run the command on the table that use() has made.
sq() {
    "$SQLOCK" --table-prefix "$prefix" "$@"
}

# Run the command.  Set $out to its output, $err to its messages, which are also
# in $dir/err, and $status to its exit status.
run() {
    out=$(sq "$@" 2>"$dir/err")
    status=$?
    # shellcheck disable=SC2034 # for the caller
    err=$(cat "$dir/err")
}

# Repeat a command until it succeeds.  Return 1 if it has not after 30 s.
until_true() { # COMMAND...
    local end=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

# Return whether a time that was printed is a moment ago.
is_now() { # TIME
    local ago=$(($(date +%s) - $(date -d "$1" +%s)))
    [ "$ago" -ge -1 ] && [ "$ago" -lt 600 ]
}

is_held() { # KEY
    [ "$(sq show "$1" --json 2>/dev/null | json state)" = held ]
}

# Return whether that process holds the lock: an earlier holder's lease may not
# have ended yet.  Where the table does not record the holder (null, peer), any
# holder counts.
is_held_by() { # KEY PID
    local shown
    shown=$(sq show "$1" --json 2>/dev/null) &&
        [ "$(json state <<<"$shown")" = held ] || return
    case $(json holder <<<"$shown") in
    *" $2 "* | null | peer) true ;;
    *) false ;;
    esac
}

# Hold a lock in the background, until a signal ends it.  Set $holder to the
# number of the sqlock process.  Report a failure if it does not get the lock.
hold() { # KEY OPTION...
    local key=$1
    shift
    env --default-signal=INT,QUIT "$SQLOCK" --table-prefix "$prefix" run "$@" \
        "$key" -- sleep 600 2>"$dir/holder.err" &
    holder=$!
    helper "$holder"
    until_true is_held_by "$key" "$holder" ||
        not_ok "hold $key" "it does not get the lock"
}
let_go() { # the holder's exit status is left in $status
    kill -TERM "$holder"
    ends
    status=$?
}

# Wait for the end of $holder, which is killed after 30 s.  Return its exit
# status.
ends() {
    until_true is_gone "$holder" || kill -KILL "$holder"
    wait "$holder" 2>/dev/null
}

# Check that $dir/err is one line, which begins with "sqlock: ".
is_one_line() { # WHAT
    case $(grep -c '' "$dir/err") in
    1) like "$1" "$(cat "$dir/err")" 'sqlock: *' ;;
    *) not_ok "$1" "not one line" ;;
    esac
}

# Print the lines that have more columns.
too_long() { # COLUMNS
    local LC_ALL=C.UTF-8 line
    while IFS= read -r line; do
        [ "${#line}" -le "$1" ] || echo "$line"
    done
}

is_gone() {
    ! is_alive "$1"
}
state_is() { # PID STATE
    local state
    read_state "$1"
    [ "$state" = "$2" ]
}

watcher_of() { # SQLOCK
    ps -o pid= -o comm= --ppid "$1" | awk '$2 == "lock-watcher" { print $1 }'
}
supervisor_of() { # SQLOCK
    ps -o pid= -o comm= --ppid "$(watcher_of "$1")" |
        awk '$2 == "lock-supervisor" { print $1 }'
}
# Wait until a process has taken all signals that were sent to it.
has_taken() { # PID
    until_true grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"
}
# Stop a process, and wait until it is stopped.
stop() { # PID
    kill -STOP "$1"
    until_true state_is "$1" T
}

# Wait until the command of $holder has written the number of a daemon to
# $dir/daemon and then something to $dir/ready.  Set $daemon to that number.
# Report a failure if nothing is written.
started() {
    until_true test -s "$dir/ready" || not_ok "start" "the command does not run"
    daemon=$(cat "$dir/daemon")
    helper "$daemon"
}
# Take the lock "job" after $holder, and print whether $daemon still runs when
# the new command begins: "alive" or "gone".
next_sees() {
    # shellcheck disable=SC2016 # for the inner shell
    sq run -w 60 job -- sh -c 'stat=$(ps -o stat= -p "$1") &&
        case $stat in Z*) false ;; esac && echo alive || echo gone' \
        sh "$daemon" 2>>"$dir/err"
}

# Compile NAME.c of this folder into $dir/NAME, with libraries that pkg-config
# knows: tool NAME LIBRARY...  End the script if that fails.
tool() {
    local name=$1 flags=()
    shift
    [ $# -eq 0 ] || read -ra flags < <(pkg-config --cflags --libs "$@")
    "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 "$here/$name.c" \
        -o "$dir/$name" "${flags[@]}" && return
    echo "Bail out! cannot compile $name.c"
    exit 1
}
preload() { # NAME: $dir/NAME.so, to be named in LD_PRELOAD
    "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O1 -shared -fPIC "$here/$1.c" \
        -o "$dir/$1.so" && return
    echo "Bail out! cannot compile $1.c"
    exit 1
}
json() {
    "$dir/json" "$@"
}

# Print the names of the databases whose URLs are given.
databases() {
    [ -z "${SQLOCK_TEST_SQLITE_URL:-}" ] || echo sqlite
    [ -z "${SQLOCK_TEST_POSTGRES_URL:-}" ] || echo postgres
    [ -z "${SQLOCK_TEST_MYSQL_URL:-}" ] || echo mysql
}
url_of() { # DATABASE
    case $1 in
    sqlite) echo "$SQLOCK_TEST_SQLITE_URL" ;;
    postgres) echo "$SQLOCK_TEST_POSTGRES_URL" ;;
    mysql) echo "$SQLOCK_TEST_MYSQL_URL" ;;
    esac
}
# Run SQL in the database's own client, as an operator would.
client() { # reads SQL; $dir/err has what it says
    case $database in
    sqlite) sqlite3 -bail "${SQLOCK_URL#sqlite:}" ;;
    postgres) bash "$here/../tools/servers/psql.sh" -qAtX -v ON_ERROR_STOP=1 "$SQLOCK_URL" ;;
    mysql)
        local part=${SQLOCK_URL#*://}
        local user=${part%%:*} place=${part#*@}
        part=${part#*:}
        MYSQL_PWD=${part%%@*} mysql --no-defaults -u "$user" --protocol=tcp \
            -h "${place%%:*}" -P "$(sed 's/[^:]*:\([0-9]*\).*/\1/' <<<"$place")" \
            -N -B "$(sed 's,.*/\([^?]*\).*,\1,' <<<"$place")"
        ;;
    esac 2>"$dir/err"
}
# Choose a database: set $database, $prefix, SQLOCK_URL and SQLOCK_REGION, and
# make the lock table.  If that fails, report it and return 1.
use() { # DATABASE [LAYOUT]
    database=$1
    SQLOCK_URL=$(url_of "$1")
    SQLOCK_REGION=$region
    export SQLOCK_URL SQLOCK_REGION
    prefix=CLI_${2:-sqlock}_
    if ! "$SQLOCK" -q init --table-prefix "$prefix" --layout "${2:-sqlock}" \
        2>"$dir/err"; then
        not_ok "init" "there is no table to test with"
        return 1
    fi
}
skip_missing() {
    local one
    for one in sqlite postgres mysql; do
        [ -n "$(databases | grep -x "$one")" ] ||
            skip "$one" "there is no such database here"
    done
}
