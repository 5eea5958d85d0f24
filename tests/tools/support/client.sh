# client.sh: run SQL by the database's own client program.  To be sourced.
# shellcheck disable=SC2154 # of the script
# $dir is the folder of the script, made by script.sh.
# shellcheck shell=bash

# Set "${client[@]}" to the command of the database's own client program, which
# reads SQL from standard input, and $kind to sqlite, postgres or mysql.
use_client() { # URL
    local user password host port name
    case $1 in
    sqlite:*)
        kind=sqlite
        client=(sqlite3 -bail -cmd '.timeout 20000' "${1#sqlite:}")
        ;;
    *)
        IFS=' ' read -r user password host port name < <(
            sed -E 's,.*//([^:]*):([^@]*)@([^:]*):([0-9]*)/([^?]*).*,\1 \2 \3 \4 \5,' \
                <<<"$1")
        case $1 in
        postgres*)
            kind=postgres
            export PGPASSWORD=$password
            client=(bash tests/tools/servers/psql.sh -X -q -A -t -v ON_ERROR_STOP=1 -h "$host"
                -p "$port" -U "$user" -d "$name")
            ;;
        *)
            kind=mysql
            printf '[client]\nuser=%s\npassword=%s\nhost=%s\nport=%s\nprotocol=tcp\n' \
                "$user" "$password" "$host" "$port" >"$dir/my.cnf"
            client=("$(command -v mariadb || echo mysql)"
                "--defaults-file=$dir/my.cnf" --batch --unbuffered
                --skip-column-names "$name")
            ;;
        esac
        ;;
    esac
}

ask() { # SQL
    echo "$1;" | "${client[@]}" 2>>"$dir/out.ask"
}
