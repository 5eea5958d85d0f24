#!/bin/sh
# worker.sh: what a worker of compose.yaml does: a job of two seconds under a lock
# in one database, then in the other, until it is told to end.  The job that runs
# then is ended by `sqlock run`, which releases the lock.
set -u
job=
stop() {
    [ -n "$job" ] || exit 0
    kill "$job" 2>/dev/null
    wait "$job"
    case $? in
    0 | 143) exit 0 ;; # the job was done, or ended
    esac
    exit 1
}
trap stop INT TERM

turn() { # URL
    SQLOCK_URL=$1 sqlock run nightly-report -- sh -c \
        'echo "$1 has the lock in ${SQLOCK_URL%%:*}, token $SQLOCK_TOKEN"
         exec sleep 2' sh "$(hostname)" &
    job=$!
    wait "$job"
}
while :; do
    turn "$POSTGRES_URL"
    turn "$MARIADB_URL"
done
