#!/usr/bin/env bash
# hopeless.sh: a wait for a database ends at once where waiting puts nothing
# right: an address that leads nowhere, another kind of server, a refused login.
# It goes on where the database may come back.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

# Each command that waits ends by itself, with that status and one line that
# has the given words.
hopeless() { # WHAT STATUS PART URL
    local word
    for word in "run key -- true" "acquire --for $$ key"; do
        # shellcheck disable=SC2086 # words
        out=$(timeout 60 "$SQLOCK" --url "$4" $word 2>"$dir/err")
        is "$1: $word: exit status" "$?/$out" "$2/"
        is_one_line "$1: $word: it is said"
        has "$1: $word: with the cause" "$(cat "$dir/err")" "$3"
    done
    out=$(timeout 60 "$SQLOCK" --url "$4" doctor 2>"$dir/err")
    is "$1: doctor: exit status" "$?" "$2"
    has "$1: doctor: with the cause" "$out$(cat "$dir/err")" "$3"
}

# A wait that may end well goes on until the time of --wait is over.
hopeful() { # WHAT URL
    out=$(timeout 60 "$SQLOCK" --url "$2" run -w 2 key -- echo "it runs" \
        2>"$dir/err")
    is "$1: exit status" "$?/$out" 69/
    is "$1: it is said that it waits" \
        "$(grep -c "^sqlock: waiting: " "$dir/err")" 1
}

ok_at_last() { # WHAT URL
    local sqlock=("$SQLOCK" --url "$2" --table-prefix "CLI_${$}_")
    out=$(timeout 60 "${sqlock[@]}" init 2>&1 &&
        timeout 60 "${sqlock[@]}" run key -- echo "it runs" 2>&1)
    is "$1" "$?/$(tail -n 1 <<<"$out")" "0/it runs"
}

# Print the URL of a database with another part after user and password.
at() { # DATABASE "HOST:PORT/NAME?..."
    sed -E "s|@.*|@$2|" <<<"$(url_of "$1")"
}
place() { # DATABASE: "HOST:PORT" of its server
    sed -E 's,.*@([^/]*)/.*,\1,' <<<"$(url_of "$1")"
}

addresses() { # DATABASE
    local server
    server=$(place "$1")
    hopeless "$1: port 99999" 64 "1 to 65535" "$(at "$1" "127.0.0.1:99999/db")"
    hopeless "$1: port 0" 64 "1 to 65535" "$(at "$1" "127.0.0.1:0/db")"
    hopeless "$1: an unknown host" 64 "no-such-host.invalid" \
        "$(at "$1" "no-such-host.invalid:1/db")"
    hopeless "$1: a parameter that nobody knows" 64 "parameter number 1" \
        "$(at "$1" "$server/db?nonsense=1")"
    hopeful "$1: nobody listens" "$(at "$1" "127.0.0.1:1/db")"
    hopeful "$1: of several hosts, one may come back" \
        "$(at "$1" "no-such-host.invalid:1,127.0.0.1:1/db")"
    ok_at_last "$1: of several hosts, the last one answers" \
        "$(at "$1" "no-such-host.invalid:1,127.0.0.1:1,$server/sqlock")"
    names "$1"
}

# Run a command where a name server takes questions and answers none.
cat >"$dir/silent" <<'END'
ip link set lo up
mount --bind "$dir/resolv" /etc/resolv.conf
python3 -c '
import socket, sys, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
open(sys.argv[1], "w")
time.sleep(100)' "$dir/bound" &
server=$!
until [ -e "$dir/bound" ]; do sleep .1; done
"$@"
status=$?
kill "$server"
rm "$dir/bound"
exit "$status"
END
printf 'nameserver 127.0.0.1\noptions timeout:30 attempts:4\n' >"$dir/resolv"

# No name server can be reached, or none answers, for which the resolver would
# wait two minutes: a wait lasts as long as it may.
names() { # DATABASE
    local url how began
    url=$(at "$1" "no-such-host.invalid:1/db")
    if ! unshare -rnm true 2>/dev/null; then
        skip "$1: no name server answers" "no namespaces here"
        return
    fi
    for how in env "sh $dir/silent"; do
        began=$(date +%s)
        # shellcheck disable=SC2086 # words
        out=$(dir=$dir unshare -rnm $how timeout 60 "$SQLOCK" run -w 2 key \
            --url "$url" -- true 2>"$dir/err")
        is "$1: $how: no name server answers: it waits" "$?/$out" 69/
        [ $(($(date +%s) - began)) -lt 30 ]
        is "$1: $how: no longer than it may" "$?" 0
    done
}

logins() { # DATABASE
    local url server
    url=$(url_of "$1")
    server=$(place "$1")
    hopeless "$1: a wrong password" 77 "" "$(sed 's,:[^:/]*@,:wrong@,' <<<"$url")"
    # To a user without rights MySQL does not say that a database is missing.
    if [ "$1" = mysql ]; then
        hopeless "$1: an unknown database" 77 "no_such_database" \
            "$(at "$1" "$server/no_such_database")"
        hopeless "$1: TLS that the server lacks" 77 "TLS" \
            "$(at "$1" "$server/sqlock?tls=require")"
        hopeless "$1: TLS to be verified" 77 "TLS" \
            "$(at "$1" "$server/sqlock?tls=verify\\&ca=/dev/null")"
        return
    fi
    hopeless "$1: an unknown database" 69 "no_such_database" \
        "$(at "$1" "$server/no_such_database")"
    hopeless "$1: TLS that the server lacks" 77 "SSL" \
        "$(at "$1" "$server/sqlock?sslmode=require")"
    hopeless "$1: a value that libpq refuses" 64 "nonsense" \
        "$(at "$1" "$server/sqlock?sslmode=nonsense")"
    hopeless "$1: a setting that the server refuses" 64 "nonsense" \
        "$(at "$1" "$server/sqlock?options=-cnonsense%3D1")"
    hopeless "$1: a socket's path that is too long" 64 "is too long" \
        "$(at "$1" "/db?host=/$(printf 'x%.0s' {1..200})")"
    hopeful "$1: a socket that is not there" "$(at "$1" "/db?host=$dir")"
}

# The URL of one kind of database, with the address of another kind's server.
other_kinds() {
    local mysql postgres
    mysql=$(place mysql)
    postgres=$(place postgres)
    hopeless "postgresql:// at MariaDB" 64 "use a mysql:// URL" \
        "$(at postgres "$mysql/db")"
    hopeless "postgresql:// at MariaDB, without TLS" 64 "use a mysql:// URL" \
        "$(at postgres "$mysql/db?sslmode=disable")"
    hopeless "mysql:// at PostgreSQL" 64 "use a postgresql:// URL" \
        "$(at mysql "$postgres/db")"
}

files() {
    local long
    long=$(printf 'x%.0s' {1..300})
    mkdir "$dir/folder"
    echo "this is a text, not a database" >"$dir/text"
    ln -s loop "$dir/loop"
    hopeless "no directory" 64 "No such file" "sqlite:$dir/none/a.db"
    hopeless "a path below a file" 64 "Not a directory" "sqlite:$dir/text/a.db"
    hopeless "a name that is too long" 64 "too long" "sqlite:$dir/$long"
    hopeless "a link to itself" 64 "symbolic links" "sqlite:$dir/loop"
    hopeless "a directory" 69 "it is a directory" "sqlite:$dir/folder"
    hopeless "another file" 69 "not a database" "sqlite:$dir/text"
    hopeless "no file" 69 "sqlock init" "sqlite:$dir/none.db"
}

# A database file that may not be written ends the wait, also before the lock is
# waited for.
read_only() {
    local url=sqlite:$dir/open/only.db as=(setpriv --reuid=65534 --regid=65534
        --clear-groups)
    mkdir -m 777 "$dir/open"
    chmod 711 "$dir"
    "$SQLOCK" -q --url "$url" init
    chmod 444 "$dir/open/only.db"
    rm -f "$dir/open/only.db-"*
    [ "$(id -u)" -eq 0 ] || as=()
    install -m 755 "$SQLOCK" "$dir/sqlock" # where another user finds it
    if ! "${as[@]}" "$dir/sqlock" --version >/dev/null 2>&1; then
        skip "a file that may not be written" "no other user can run sqlock"
        return
    fi
    out=$("${as[@]}" timeout 60 "$dir/sqlock" --url "$url" run -w 600 key -- true \
        2>"$dir/err")
    is "a file that may not be written: exit status" "$?/$out" 69/
    is_one_line "a file that may not be written: it is said"
    has "a file that may not be written: without a word of replicas" \
        "$(cat "$dir/err")" "may not write"
}

for one in $(databases); do
    [ "$one" != sqlite ] || continue
    use "$one" || continue
    addresses "$one"
    logins "$one"
done
database=
if [ "$(databases | grep -c -e postgres -e mysql)" -eq 2 ]; then
    other_kinds
else
    skip "another kind of server" "there are not both kinds"
fi
if [ -n "${SQLOCK_TEST_SQLITE_URL:-}" ]; then
    files
    read_only
fi
skip_missing
done_testing
