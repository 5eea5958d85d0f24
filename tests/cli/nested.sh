#!/usr/bin/env bash
# nested.sh: a sqlock within the command of `sqlock run` finds the same table,
# without a password in its environment.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson
export SQLOCK

# Do not export the variables of the tests: they hold passwords, too.
for variable in $(compgen -e SQLOCK_TEST_); do
    export -n "${variable?}"
done

within() { # COMMAND: a string for a shell in which the lock "outer" is held
    run run -w 60 outer -- sh -c "$1"
}

same_table() {
    within 'cd / && "$SQLOCK" show outer --json'
    is "a nested command finds the table" "$status" 0
    is "in which the lock around it is held" "$(json state <<<"$out")" held
    within '"$SQLOCK" run inner sh -c "echo \$SQLOCK_NAME; cd /
        exec \"\$SQLOCK\" run innermost sh -c \"echo \\\$SQLOCK_NAME\""'
    is "run in run in run" "$status/$out" $'0/inner\ninnermost'
    is "all of them in one table" \
        "$(sq ls --all --json | json locks)" 3
    [ -n "${SQLOCK_URL-}" ] || return
    within 'env | grep -c "^SQLOCK_URL="'
    is "the URL is passed on once" "$out" 1
}

itself() {
    within 'timeout 20 "$SQLOCK" run -w 60 outer echo in'
    is "the lock around it is refused" "$status" 64
    is_one_line "and it is said"
    has "which one" "$err" 'the lock "outer"'
    within '"$SQLOCK" --region "$SQLOCK_REGION.2" run -n outer echo in'
    is "in another region, it is another lock" "$status/$out" 0/in
    within '"$SQLOCK" run inner timeout 20 "$SQLOCK" run -w 60 outer echo in'
    is "the lock around that one is refused, too" "$status" 64
    is_one_line "and it is said"
    has "which one" "$err" 'the lock "outer"'
    out=$(SQLOCK_LEASES=$(sq run -w 60 outer -- sh -c 'echo "$SQLOCK_LEASE"') \
        sq run -w 60 outer -- echo in 2>"$dir/err")
    is "a lease that is over is no lock around us" "$?/$out" 0/in
    run run -w 60 --shared outer -- \
        sh -c 'timeout 20 "$SQLOCK" run -w 60 --shared outer echo in'
    is "the lock that is shared around it is refused" "$status/$out" 64/
    is_one_line "and it is said"
    out=$(SQLOCK_LEASES=$(sq run -w 60 -s outer -- sh -c 'echo "$SQLOCK_LEASE"') \
        sq run -w 60 --shared outer -- echo in 2>"$dir/err")
    is "a share that is over is no lock around us" "$?/$out" 0/in
}

# Two commands each hold a lock, and want the other's by a run within them.
crosswise() {
    local way
    rm -f "$dir"/crosswise.*
    for way in "one two" "two one"; do
        # shellcheck disable=SC2086
        set -- $way
        {
            sq run "$1" -- sh -c "touch '$dir/crosswise.$1'
                until [ -e '$dir/crosswise.$2' ]; do sleep 0.05; done
                \"\$SQLOCK\" -q run -w 60 $2 -- echo both" \
                >>"$dir/crosswise.out" 2>>"$dir/crosswise.err"
            echo $? >>"$dir/crosswise.status"
        } &
    done
    wait
    is "one of two in a deadlock is told" \
        "$(sort "$dir/crosswise.status" | tr '\n' ' ')" "0 75 "
    is "and the other gets both" "$(cat "$dir/crosswise.out")" both
    has "what it says" "$(cat "$dir/crosswise.err")" "waits, directly or through"
}

settings() {
    local expected
    "$SQLOCK" -q init --table-prefix CLI_N_ --layout spring6
    expected="raw 5s CLI_N_"
    out=$("$SQLOCK" --table-prefix CLI_N_ \
        --rule raw --peer-ttl 5s run name \
        sh -c 'echo "$SQLOCK_RULE $SQLOCK_PEER_TTL $SQLOCK_TABLE_PREFIX"')
    is "options are passed on as variables" "$out" "$expected"
    out=$(SQLOCK_TABLE_PREFIX=CLI_N_ SQLOCK_RULE=raw SQLOCK_PEER_TTL=5s \
        "$SQLOCK" run name sh -c '"$SQLOCK" show name --json')
    is "variables are read" "$(json key <<<"$out")" name
    out=$(SQLOCK_RULE=nonsense "$SQLOCK" key name 2>&1)
    is "a wrong one is refused" "$?" 64
}

passwords() { # URL PASSWORD
    within 'echo "$SQLOCK_URL"'
    is "the URL has lost its password" "$(grep -cF -e "$2" <<<"$out")" 0
    is "and nothing else" "$out" "${1/:$2@/@}"
    within '"$SQLOCK" ls'
    if [ "$status" -ne 0 ]; then
        is "without a password there is no entry" "$status" 77
        has "and it is said why" "$err" "does not pass the URL"
    else
        skip "no entry without a password" "this server wants none"
    fi
    out=$(SQLOCK_URL=${1/:$2@/@} PGPASSWORD=$2 sq run -w 60 outer -- \
        sh -c '"$SQLOCK" show outer --json' 2>"$dir/err")
    case $1 in
    postgres*)
        is "libpq's own variable stays" "$(json state <<<"$out")" held
        as_parameter "$@"
        ;;
    esac
    mkdir -p "$dir/config/sqlock"
    echo "url = $1" >"$dir/config/sqlock/config"
    chmod 600 "$dir/config/sqlock/config"
    out=$(unset SQLOCK_URL
        XDG_CONFIG_HOME=$dir/config sq run -w 60 outer -- \
            sh -c 'echo "${SQLOCK_URL-none}"; "$SQLOCK" show outer --json' \
            2>"$dir/err")
    is "a file with the password is read again" "$?" 0
    is "and no URL is passed on" "${out%%$'\n'*}" none
}

# The password is the last parameter of the URL: what is left is a URL, too.
as_parameter() { # URL PASSWORD
    local url=${1/:$2@/@} sign
    case $url in
    *\?*) sign='&' ;;
    *) sign='?' ;;
    esac
    out=$(SQLOCK_URL=$url${sign}password=$2 sq run -w 60 outer -- \
        sh -c 'echo "$SQLOCK_URL"; PGPASSWORD=$1 "$SQLOCK" ls >&2' sh "$2" \
        2>"$dir/err")
    is "a password as a parameter: a command within connects" "$?" 0
    is "and its URL has all else" "$out" "$url"
}

# A relative path of SQLite is found from everywhere, whatever the folder.
whole_path() {
    local folder="$dir/my dir %41?#^ü"$'\xff'
    mkdir "$folder"
    out=$(cd "$folder" && export SQLOCK_URL=sqlite:a%20b.db &&
        "$SQLOCK" -q init && "$SQLOCK" run outer -- \
        sh -c 'cd / && "$SQLOCK" show outer --json' 2>"$dir/err")
    is "in a folder with an odd name a command within finds the file" \
        "$?/$(json state <<<"$out")" 0/held
}

# Compare the URL that a command gets, for URLs that no test server has.
odd_urls() {
    local url expected source=$here/../..
    "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -I"$source/include" -I"$source/src" \
        "$here/child_url.c" "$source"/src/cli/url.c \
        "$source"/src/base/{error,secret,text,url,writer}.c \
        -o "$dir/child_url" || {
        not_ok "child_url" "it cannot be compiled"
        return
    }
    while read -r url expected; do
        out=$("$dir/child_url" "$url")
        is "$url" "$out" "$expected"
    done <<'END'
postgresql://me:secret@host/db postgresql://me@host/db
postgresql://me:se:cr@et@host/db NULL
postgresql://me:secret@[::1]:5,b/db?x=%20 postgresql://me@[::1]:5,b/db?x=%20
postgresql://me:se/cret@host/db NULL
postgresql://host/db?user=me&password=secret&x=1 postgresql://host/db?user=me&x=1
postgresql://host/db?password=secret postgresql://host/db
postgresql://host/db?user=me&password=secret postgresql://host/db?user=me
postgresql://host/db?pass%77ord=secret&x=1 postgresql://host/db?x=1
postgresql://host/db?x=1&%73slpassword=a postgresql://host/db?x=1
postgresql://host/db?oauth_client_secret=a&x=1 postgresql://host/db?x=1
postgresql://me:@host/db postgresql://me:@host/db
postgresql://host/db?sslpassword=a&sslkey=b postgresql://host/db?sslkey=b
postgresql://me@host:5432/db postgresql://me@host:5432/db
mysql://me:s@host/db?password_env=NAME mysql://me@host/db?password_env=NAME
mysql://me@host/db?password_env=NAME mysql://me@host/db?password_env=NAME
sqlite:/whole/path?x=1 sqlite:/whole/path?x=1
END
    is "a relative path becomes whole" \
        "$(cd /usr && "$dir/child_url" sqlite:a/b.db)" sqlite:/usr/a/b.db
}

for one in $(databases); do
    use "$one" || continue
    case $SQLOCK_URL in
    *://*:*@*)
        password=${SQLOCK_URL#*://*:}
        passwords "$SQLOCK_URL" "${password%%@*}"
        # The tests below read the URL from a configuration file, as a user
        # would have it.
        mkdir -p "$dir/nested/sqlock"
        echo "url = $SQLOCK_URL" >"$dir/nested/sqlock/config"
        chmod 600 "$dir/nested/sqlock/config"
        export XDG_CONFIG_HOME=$dir/nested
        unset SQLOCK_URL
        ;;
    esac
    same_table
    crosswise
    itself
    settings
    [ "$one" != sqlite ] || whole_path
    export XDG_CONFIG_HOME=/nonexistent
done
database=
odd_urls
skip_missing
done_testing
