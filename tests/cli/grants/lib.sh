# lib.sh: the scripts sql/DATABASE/grants-ROLE.sql: a login with the rights of a
# role can do the work of that role and nothing else, whichever tables there
# are.  tests/run.sh runs each script of this folder.  By hand, SQLOCK may name
# the command, and SQLOCK_TEST_*_URL the databases.
# shellcheck shell=bash disable=SC2154 # `database` is the script's
#
# A script sets `database`, and defines
#     admin SQL...           run statements as the administrator
#     grant ROLE PREFIX      run the script of a role for its login
#     ask ROLE SQL           run statements as the role's login
#     url_of ROLE            print the URL of the role's login
#     make_logins            make a login for each role, and $schema
#     drop_all               drop what the tests have made
# and calls roles_on SCHEMA with a schema (on MySQL, a database) that is not the
# default one.  The role `owner` owns the tables.

# shellcheck source=tests/tools/support/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/support/script.sh"
roles=(application reaper observer operator)
prefix=''
denied=77 # EX_NOPERM

# Skip all tests if VARIABLE, the URL of the database or of its administrator,
# is not set.  Set $about, $password and $schema.
needs() { # VARIABLE
    about="$database: "
    [ -n "${!1:-}" ] || skip_all "$1 is not set"
    password=gr$RANDOM$RANDOM
    schema=gr${$}_schema
}
finish_all() {
    drop_all
    finish
}

login_of() { # ROLE
    echo "gr${$}_$1"
}
sq() { # ROLE ARGUMENT...
    local role=$1
    shift
    SQLOCK_URL=$(url_of "$role") "$SQLOCK" --table-prefix "$prefix" "$@"
}
can() { # ROLE ARGUMENT...
    sq "$@" >"$dir/out" 2>"$dir/err"
    is "$1 can ${*:2:3}" $? 0
}
cannot() { # ROLE ARGUMENT...
    sq "$@" >"$dir/out" 2>"$dir/err"
    is "$1 cannot ${*:2:3}" $? "$denied"
}
may() { # ROLE SQL
    ask "$@" >"$dir/out" 2>"$dir/err"
    is "$1 may $2" $? 0
}
may_not() { # ROLE SQL
    ask "$@" >"$dir/out" 2>"$dir/err"
    is "$1 may not $2" "$(($? != 0)) $(grep -ciE 'denied|owner' "$dir/err")" \
        "1 1"
}
prints() { # WHAT: in what the last one printed
    is "prints $1" "$(grep -cF "$1" "$dir/out")" 1
}

# Wait until the lock is held, 60 s at most.
await_held() { # KEY
    local end=$((SECONDS + 60))
    until sq owner show "$1" --json 2>/dev/null | grep -q '"held"' ||
        [ "$SECONDS" -ge "$end" ]; do
        sleep 0.05
    done
}
token_of() { # KEY
    sq observer show "$1" --json | sed -n 's/.*"token": \([0-9]*\).*/\1/p'
}

grant_all() {
    local role
    for role in "${roles[@]}"; do
        grant "$role" "$prefix" >"$dir/out" 2>"$dir/err"
        is "grants-$role.sql runs" "$? $(cat "$dir/err")" "0 "
    done
}

application_sells() {
    can application run job -- true
    can application run --once step -- true
    can application stock set hat 9
    can application stock deduct hat 1 --order one
    can application stock reserve hat 2 --order two --for 1ms
    can application stock reserve hat 2 --order three --for 1h
    can application stock cancel three
    can application stock ls
    can application ls
    cannot application reap
    may_not application "SELECT NAME FROM ${prefix}LOCK_NOW"
    may_not application "DELETE FROM ${prefix}DONE"
    may_not application "DELETE FROM ${prefix}STOCK_ENTRY"
    may_not application "DROP TABLE ${prefix}LOCK"
}

reaper_reaps() {
    can reaper ls
    can reaper reap --older-than 0 --json
    prints '"removed": '
    prints '"expired": 1'
    is "leaves no row" "$(sq observer ls --json | grep -c '"key"')" 0
    is "gives the reservation back" "$(sq observer stock show hat)" 8
    cannot reaper run job -- true
    can reaper stock reap --older-than 1h --json
    cannot reaper stock deduct hat 1 --order four
    may_not reaper "DELETE FROM ${prefix}DONE"
    may_not reaper "UPDATE ${prefix}LOCK SET CLIENT_ID = NULL"
}

observer_observes() {
    can application run job -- true
    can observer ls
    can observer show job
    can observer stock show hat
    may observer "SELECT NAME, STATE FROM ${prefix}LOCK_NOW"
    may observer "SELECT LOCK_NAME FROM ${prefix}DONE"
    cannot observer run job -- true
    cannot observer reap --older-than 0
    cannot observer stock set hat 3
}

operator_operates() {
    local holder
    # exec: the signal below must reach sqlock, not a shell that waits for
    # sqlock.
    SQLOCK_URL=$(url_of application) exec "$SQLOCK" --table-prefix "$prefix" \
        run -t 60 held -- sleep 600 2>"$dir/holder.err" &
    holder=$!
    helper "$holder"
    await_held held
    cannot observer break held --token "$(token_of held)" --reason test
    cannot observer permits held 3
    can operator permits held 3
    may operator "SELECT NAME, STATE FROM ${prefix}LOCK_NOW"
    can operator break held --token "$(token_of held)" --reason test
    kill -TERM "$holder"
    wait "$holder"
    # Other findings of doctor are about the server, and are not judged here.
    sq operator doctor --json >"$dir/out" 2>"$dir/err"
    is "operator's doctor finds no right missing" \
        "$(grep -A 2 '"check": "rights"' "$dir/out" | grep -c '"ok"')" 1
    can operator doctor --after-restore --yes
    can operator reap --older-than 0
    may operator "DELETE FROM ${prefix}DONE"
    may_not operator "DROP TABLE ${prefix}LOCK"
    cannot operator stock set hat 3
}

# With all tables, in the default schema.
with_all_tables() {
    about="$database: sqlock " prefix=GR${$}_
    can owner init --layout sqlock
    can owner init --once
    can owner stock init
    grant_all
    application_sells
    reaper_reaps
    observer_observes
    operator_operates
}

# With the lock table alone, in another schema: no tables of stock and --once.
with_the_lock_table_alone() { # SCHEMA
    about="$database: spring7 " prefix=$1.GR${$}_
    can owner init --layout spring7
    grant_all
    can application run job -- true
    cannot observer run job -- true
    can reaper reap --older-than 0
    cannot reaper run job -- true
}

roles_on() { # SCHEMA
    trap finish_all EXIT
    make_logins
    with_all_tables
    with_the_lock_table_alone "$1"
    exit $status
}
