#!/usr/bin/env bash
# psql.sh ARGUMENT...: run psql, the installed one or that of postgres-bin.sh.
# Debian may install a psql that only looks for another psql, and may find none.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
psql=psql
psql --version >/dev/null 2>&1 || psql=$(bash "$here/postgres-bin.sh")/psql
exec "$psql" "$@"
