#!/usr/bin/env bash
# psql.sh ARGUMENT...: psql, the installed one or that of the servers' programs.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$(command -v psql || echo "$(bash "$here/postgres-bin.sh")/psql")" "$@"
