#!/bin/sh
# postgres-init.sh: run once by the PostgreSQL container when it makes its data.
# The owner of the tests' database is no superuser; the image can make only one.
set -eu
psql -X -q -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" -U postgres <<'SQL'
CREATE ROLE sqlock_test LOGIN PASSWORD :'password';
CREATE DATABASE sqlock OWNER sqlock_test;
SQL
