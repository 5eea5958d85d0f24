#!/bin/bash
# postgres.sh: entry point of the local PostgreSQL image.  Does what
# ../compose.yaml asks of the official image: makes the data at the first start,
# without TCP, runs /docker-entrypoint-initdb.d/*.sh, then becomes the server.
set -eu
data=/var/lib/postgresql/data
run=/run/postgresql
mkdir -p "$data" "$run"
chown postgres:postgres "$data" "$run"
chmod 700 "$data"
as_server=(setpriv --reuid postgres --regid postgres --clear-groups)

if [ ! -s "$data/PG_VERSION" ]; then
    install -o postgres -m 600 /dev/null "$run/password"
    printf '%s\n' "$POSTGRES_PASSWORD" >"$run/password"
    "${as_server[@]}" initdb -D "$data" -U postgres -N -E UTF8 --locale=C \
        --auth-local=trust --auth-host=scram-sha-256 --pwfile="$run/password"
    rm "$run/password"
    echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
    "${as_server[@]}" pg_ctl -D "$data" -w -s start \
        -o "-c listen_addresses= -k $run"
    for script in /docker-entrypoint-initdb.d/*.sh; do
        [ ! -e "$script" ] || "${as_server[@]}" sh "$script"
    done
    "${as_server[@]}" pg_ctl -D "$data" -w -s stop
fi
exec "${as_server[@]}" "$@" -D "$data" -k "$run" -c 'listen_addresses=*'
