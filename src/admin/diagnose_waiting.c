/*
 * diagnose_waiting.c - check that this login can be rung, where the bell is a
 * file beside the database
 *
 * A process that cannot have that file polls the row of a lock, which is slower
 * and costs statements.  Where bells are sessions, they are checked elsewhere:
 * by the check for a pooler, and by sqlock_capabilities_of().
 */
#include "base/random.h"
#include "admin/diagnose.h"
#include "lease/bell.h"

static void report(struct lk_checks *checks, int rc, const sqlock_error *err)
{
    if (rc == 0)
        lk_check(checks, "waiting", SQLOCK_FINE, NULL,
                 "a release wakes the next waiter");
    else
        lk_check(checks, "waiting", SQLOCK_WARNING,
                 "let all users of the database write to its directory",
                 "waiters of this login poll the row every poll_ms instead of "
                 "being woken: %s",
                 err->message);
}

void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns)
{
    const sqlock_bell *bell = db->driver->bell;
    struct lk_connection *connection;
    char id[SQLOCK_KEY_SIZE];
    char name[LK_BELL_SIZE]; /* the name of no registry's bell */
    sqlock_error err = {0};
    int rc;

    if (bell == NULL || layout != SQLOCK_LAYOUT_SQLOCK ||
        !db->driver->has_one_writer)
        return;
    rc = lk_pool_take(&db->pool, deadline_ns, &connection, &err);
    if (rc < 0) {
        lk_check(checks, "waiting", SQLOCK_FAILURE, NULL, "%s", err.message);
        return;
    }
    lk_random_uuid(id);
    lk_bell_name_of(id, name);
    rc = bell->begin(connection->state, name, deadline_ns, deadline_ns, &err);
    report(checks, rc, &err);
    lk_pool_discard(&db->pool, connection);
}
