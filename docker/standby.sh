#!/bin/bash
# standby.sh COMMAND...: entry point of the standby of compose.standby.yaml: take
# the primary's data at the first start, then become the server.
set -eu
data=/var/lib/postgresql/data
mkdir -p /run/postgresql
chown postgres:postgres "$data" /run/postgresql
chmod 700 "$data"
as_server=(setpriv --reuid postgres --regid postgres --clear-groups)
if [ ! -s "$data/PG_VERSION" ]; then
    "${as_server[@]}" pg_basebackup -D "$data" -R -X stream -c fast \
        -d 'host=primary user=postgres application_name=standby'
    # Promoted, it waits for nobody.
    echo "synchronous_standby_names = ''" >>"$data/postgresql.auto.conf"
fi
exec "${as_server[@]}" "$@" -D "$data" -k /run/postgresql \
    -c 'listen_addresses=*'
