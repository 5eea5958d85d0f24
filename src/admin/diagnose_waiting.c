/*
 * diagnose_waiting.c - check that this login can open the file that is the wait
 * queue of a database without sessions
 *
 * A process that cannot open that file polls the row of a lock, which is slower
 * and costs statements.  Databases whose wait queue is formed by sessions are
 * checked elsewhere: by the check for a pooler, and by
 * sqlock_capabilities_of().
 */
#include "base/clock.h"
#include "admin/diagnose.h"

/* The number of no lock's queue: those are hashes of 61 bits. */
#define PROBE_QUEUE 2

static void report(struct lk_checks *checks, int rc, const sqlock_error *err)
{
    if (rc == 0 || rc == SQLOCK_EBUSY)
        lk_check(checks, "waiting", SQLOCK_FINE, NULL,
                 "a release wakes the next waiter");
    else
        lk_check(checks, "waiting", SQLOCK_WARNING,
                 "let all users of the database read and write the file: give "
                 "it the owner, group and mode of the database file",
                 "waiters of this login poll the row every poll_ms instead of "
                 "being woken: %s",
                 err->message);
}

void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns)
{
    const sqlock_wait_queue *wait_queue = db->driver->wait_queue;
    struct lk_connection *connection;
    sqlock_error err = {0};
    int rc;

    if (wait_queue == NULL || wait_queue->has_own_session != NULL ||
        (wait_queue->layouts & (1u << layout)) == 0)
        return;
    rc = lk_pool_take(&db->pool, deadline_ns, &connection, &err);
    if (rc < 0) {
        lk_check(checks, "waiting", SQLOCK_FAILURE, NULL, "%s", err.message);
        return;
    }
    rc = wait_queue->enqueue(connection->state, PROBE_QUEUE,
                             sqlock_monotonic_ns(), &err);
    report(checks, rc, &err);
    (void)wait_queue->leave(connection->state, PROBE_QUEUE, deadline_ns, NULL);
    lk_pool_discard(&db->pool, connection);
}
