#!/usr/bin/env bash
# limits.sh: a limit of the process (setrlimit(2)) that is too low for a command
# ends it at once, with the cause and what to raise: no wait raises it.  The
# other limits do no harm.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# The command ends under the limit with that status, and one line that has the
# words, which comes by a pipe: a file has a limit, too.
limited() { # LIMIT=VALUE STATUS WORDS COMMAND...
    local limit=$1 expected=$2 words=$3
    shift 3
    out=$(timeout 60 prlimit "--$limit" "$SQLOCK" -q "$@" 2>&1)
    like "$limit: $*: exit status" "$?" "$expected"
    is "$limit: $*: one line" "$(wc -l <<<"$out")" 1
    like "$limit: $*: the cause, and what to raise" "$out" "$words"
}

# Limits below which there is no room, and those that change nothing.
run_limited() {
    local files limit
    for files in 8 10 12; do
        limited "nofile=$files" 71 "*ulimit -n*" run key -- echo "it runs"
    done
    # one that is inherited, above those that are free
    limited nofile=12 71 "*ulimit -n*" run key -- echo "it runs" 9</dev/null
    limited nofile=8 71 "*ulimit -n*" lead key -- echo "it runs"
    limited data=3000000 71 "*ulimit -d*" lead key -- echo "it runs"
    limited nofile=16 "[07]*" "@(*ulimit -n*|it runs)" run key -- echo "it runs"
    limited nofile=32 0 "it runs" run key -- echo "it runs"
    limited stack=65536 0 "it runs" run key -- echo "it runs"
    limited as=20000000 71 "*ulimit -v*" run key -- echo "it runs"
    limited data=3000000 71 "*ulimit -d*" run key -- echo "it runs"
    for limit in core=0 locks=0 memlock=0 msgqueue=0 nice=0 rss=0 rtprio=0 \
        sigpending=0 cpu=10; do
        limited "$limit" 0 "it runs" run key -- echo "it runs"
    done
}

# The doctor says what is missing, and waits for no room that does not come: it
# makes its checks over one session where there is no room for a second one.
doctor_limited() {
    local files
    for files in 6 8 10 11 12 14 16 20; do
        out=$(timeout 60 prlimit "--nofile=$files" "$SQLOCK" -q doctor 2>&1)
        like "nofile=$files: doctor: exit status" "$?" "@([01]|71)"
        is "nofile=$files: doctor: nothing times out" \
            "$(grep -c 'timed out' <<<"$out")" 0
        like "nofile=$files: doctor: the cause, or all is checked" "$out" \
            "*@(ulimit -n|rights  )*"
    done
    out=$("$SQLOCK" -q doctor 2>&1)
    is "without a limit, doctor names none" "$(grep -c ulimit <<<"$out")" 0
}

# Too many processes of a user who is not root, whom this limit does not concern:
# of one whom nobody else is.
processes() {
    local url=sqlite:$dir/user/locks.db user=() limit
    mkdir "$dir/user"
    cp "$SQLOCK" "$dir/user/sqlock"
    "$SQLOCK" -q --url "$url" init
    if [ "$(id -u)" -eq 0 ]; then
        chmod 711 "$dir"
        chown -R 64321:64321 "$dir/user"
        user=(setpriv --reuid 64321 --regid 64321 --clear-groups env "HOME=$dir")
    fi
    for limit in 1 3 5; do
        out=$("${user[@]}" timeout 60 prlimit "--nproc=$limit" \
            "$dir/user/sqlock" -q --url "$url" run key -- true 2>&1)
        is "nproc=$limit: exit status" "$?" 71
        has "nproc=$limit: the cause, and what to raise" "$out" "ulimit -u"
        is "nproc=$limit: each line says so" "$(grep -vc 'ulimit -u' <<<"$out")" 0
    done
}

# A SQLite file takes room in files of this process.
file_size() {
    local url=sqlite:$dir/size.db size
    "$SQLOCK" -q --url "$url" init
    for size in 0 8192; do
        limited "fsize=$size" 71 "*ulimit -f*" --url "$url" run key -- true
        limited "fsize=$size" 71 "*ulimit -f*" --url "$url" acquire --for $$ key
        limited "fsize=$size" 71 "*ulimit -f*" --url "$url" reap
        limited "fsize=$size" 71 "*ulimit -f*" --url "sqlite:$dir/new.db" init
        rm -f "$dir"/new.db*
    done
    limited fsize=1000000 0 "it runs" --url "$url" run key -- echo "it runs"
}

# The library of MariaDB has no memory for the stack of a call that does not
# block.
no_stack() {
    case $("$SQLOCK" --version) in
    *libmariadb*) ;;
    *) skip "no memory for a stack" "another client library" && return ;;
    esac
    LEAST=60000 LD_PRELOAD=$dir/no_stack.so "$SQLOCK" -q ls >"$dir/out" 2>&1
    like "no memory for a stack: exit status" "$?" "@(69|71)"
}

preload no_stack
for one in $(databases); do
    use "$one" || continue
    "$SQLOCK" -q init
    run_limited
    doctor_limited
    [ "$one" != mysql ] || no_stack
done
database=
file_size
processes
skip_missing
done_testing
