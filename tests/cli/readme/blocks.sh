#!/usr/bin/env bash
# blocks.sh: every block of commands or code in the manual pages of sections 1
# and 7 does what it shows.  A line before a block says what the block is:
#
#     .\" example: text             nothing that runs
#     .\" example: config           a configuration file of the command
#     .\" example: c                compiles without a warning
#     .\" example: c++ program      is built and run, in an empty folder
#     .\" example: c++              so, with all others of the page in main(),
#         where `registry` is open
#     .\" example: python [registry]   runs so, or where it is open
#     .\" example: make             names a target of the Makefile
#     .\" example: sh [FIXTURE...]  runs in an empty folder, on SQLite, with
#         init        the table of locks
#         held        ... and the lock "nightly-report", which is held
#         psql        on PostgreSQL, with the tables that the block uses
#         migrations  a folder of migrations
#         scripts     programs deploy.sh, import.sh, invoices.sh, report.sh
#         tools WORD  if the command WORD is installed
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
# shellcheck source=tests/tools/support/client.sh
. tests/tools/support/client.sh
export PATH=$build/bin:$root/src/examples/migration:$PATH

# Write each block of a page to a file NUMBER, and what the line before it says
# to NUMBER.is.
split() { # PAGE FOLDER
    awk -v into="$2" '
    /^\.\\" example: / { is = substr($0, 13); next }
    /^\.Bd/ {
        name = sprintf("%s/%02d", into, ++n); inside = 1
        print is >(name ".is"); is = ""; printf "" >name; next
    }
    /^\.Ed/ { inside = 0; is = "" }
    inside { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print >name }' "$1"
}

compiles() { # BLOCK
    read -ra cc <<<"${CC:-cc}"
    # shellcheck disable=SC2046 # lists of flags
    "${cc[@]}" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror \
        -Wno-unused-parameter -I"$root/include" \
        $(pkg-config --cflags libpq 2>/dev/null) -x c -fsyntax-only "$1"
}

# The page's statements in C++ make one program, since its headers take long to
# compile.
cpp_program() { # BLOCK...
    local block
    printf '#include <%s>\n' iostream shared_mutex sqlock.hpp \
        sqlock/shared.hpp sqlock/leader.hpp sqlock/quorum.hpp sqlock/many.hpp \
        sqlock/async.hpp sqlock/tx.hpp sqlock/stock.hpp sqlock/once.hpp sqlock/stats.hpp
    cat <<'EOF'
int main()
{
    using namespace std::chrono_literals;
    sqlock::create_schema("sqlite:locks.db");
    auto registry = sqlock::registry::open("sqlite:locks.db");
EOF
    for block; do
        printf '{\n%s\n}\n' "$(cat "$block")"
    done
    echo '}'
}

runs_as_cpp() { # PROGRAM
    local -a cxx libs
    read -ra cxx <<<"${CXX:-c++}"
    read -ra libs <<<"$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config \
        --static --libs-only-l sqlock)"
    mkdir "$1.d"
    "${cxx[@]}" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$root/include" \
        -pthread -x c++ "$1" -o "$1.d/program" -L"$build/lib" "${libs[@]}" \
        -Wl,-rpath,"$build/lib" && (cd "$1.d" && ./program)
}

runs_as_python() ( # BLOCK [registry]
    mkdir "$1.d"
    cd "$1.d" || return 1
    {
        [ "${2-}" != registry ] || cat <<'EOF'
import sqlock
sqlock.create_schema("sqlite:locks.db")
registry = sqlock.open("sqlite:locks.db")
EOF
        cat "$1"
    } >"$1.py"
    SQLOCK_LIBRARY=$build/lib/libsqlock.so PYTHONPATH=$root/src/python \
        PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" "$1.py"
)

is_config() { # BLOCK
    mkdir -p "$dir/config/sqlock"
    cp "$1" "$dir/config/sqlock/config"
    XDG_CONFIG_HOME=$dir/config sqlock --json init --print --url postgresql: \
        >/dev/null
}

is_target() { # BLOCK
    local target
    target=$(sed -n 's/^make \([a-z-]*\).*/\1/p' "$1")
    grep -q "^$target:" "$root/Makefile" "$root/tests/run.mk"
}

prepare() { # FIXTURE...
    local id
    while [ $# -gt 0 ]; do
        case $1 in
        init) sqlock -q init ;;
        held)
            sqlock -q init && id=$(sqlock acquire nightly-report) &&
                sqlite3 locks.db 'UPDATE INT_LOCK SET FENCE = 1769860800000000' &&
                [ -n "$id" ]
            ;;
        psql)
            use_client "$SQLOCK_TEST_POSTGRES_URL"
            export SQLOCK_URL=$SQLOCK_TEST_POSTGRES_URL
            # The block connects to the reader's database "shop": this psql
            # takes the tests' database instead.
            mkdir -p "$dir/bin"
            printf '#!/usr/bin/env bash\n[ "${*: -1}" = shop ] || exit\n%s%s\n' \
                "cd $root && PATH=$PATH exec ${client[*]@Q}" \
                ' "${@:1:$#-1}"' >"$dir/bin/psql"
            chmod +x "$dir/bin/psql"
            (cd "$root" &&
                ask 'CREATE TABLE IF NOT EXISTS price (amount INTEGER)') &&
                echo 'UPDATE price SET amount = amount;' >prices.sql &&
                sqlock -q init
            ;;
        migrations) cp -R "$root/src/examples/migration/sqlite" migrations ;;
        scripts)
            for id in deploy import invoices report; do
                printf '#!/bin/sh\nexit 0\n' >$id.sh && chmod +x $id.sh
            done
            ;;
        tools) shift ;;
        esac || return 1
        shift
    done
}

# Run a block, without prompts, in a shell that stops at the first failure.
runs() ( # BLOCK FIXTURE...
    local block=$1
    shift
    mkdir "$block.d" || return 1
    cd "$block.d" || return 1
    export SQLOCK_URL=sqlite:locks.db
    prepare "$@" || return 1
    sed -e 's/^\$ //' "$block" >"$block.sh"
    PATH=$dir/bin:$PATH bash -eu -o pipefail "$block.sh"
)

for page in src/man/*.[17]; do
    into=$dir/${page##*/}
    mkdir "$into"
    split "$page" "$into"
    statements=()
    for block in "$into"/[0-9][0-9]; do
        [ -e "$block" ] || continue
        what="${page##*/}, block ${block##*/}"
        read -r kind fixtures <"$block.is"
        [ -s "$block" ] || kind=empty
        case "$kind ${fixtures:-}" in
        sh*psql*)
            [ -n "${SQLOCK_TEST_POSTGRES_URL:-}" ] || {
                echo "skip - $what: there is no PostgreSQL"
                continue
            }
            ;;
        sh*tools*)
            command -v "${fixtures##*tools }" >/dev/null || {
                echo "skip - $what: there is no ${fixtures##*tools }"
                continue
            }
            ;;
        esac
        case $kind in
        text) ;;
        c) check "$what compiles" compiles "$block" ;;
        c++)
            if [ -n "$fixtures" ]; then
                check "$what runs" runs_as_cpp "$block"
            else
                statements+=("$block")
            fi
            ;;
        python) check "$what runs" runs_as_python "$block" ${fixtures:-} ;;
        config) check "$what is a configuration" is_config "$block" ;;
        make) check "$what is a target" is_target "$block" ;;
        # The fixtures are a list of words.
        sh)
            # shellcheck disable=SC2086
            check "$what runs" runs "$block" ${fixtures:-}
            ;;
        *) check "$what says what it is" false ;;
        esac
    done
    [ ${#statements[@]} -eq 0 ] || {
        cpp_program "${statements[@]}" >"$into/all"
        check "${page##*/}, its statements in C++ run" runs_as_cpp "$into/all"
    }
done
exit $status
