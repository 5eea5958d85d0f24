#!/usr/bin/env bash
# psql.sh ARGUMENT...: psql, the installed one or that of the servers' programs.
# Debian's packages may install a psql that only looks for one.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
psql=psql
psql --version >/dev/null 2>&1 || psql=$(bash "$here/postgres-bin.sh")/psql
exec "$psql" "$@"
