/*
 * patience.c - a wait goes on while the database is away.  An outage, a server
 * that is full, or one that is a standby, is waited for like a holder: until the
 * caller's time is over, with pauses that grow.  What stays wrong until somebody
 * puts it right ends the wait at once.
 */
#include "locks/patience.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "locks/entry.h"

/* Pauses between attempts, drawn from the upper half: 50 ms to a second. */
#define FIRST_PAUSE_MS 50
#define DOUBLINGS 5
#define LAST_PAUSE_MS 1000

bool lk_is_passing(const sqlock_registry *registry, int rc)
{
    switch (rc) {
    case SQLOCK_EUNREACHABLE:
    case SQLOCK_EUNCERTAIN:
    case SQLOCK_ERESOURCE:
    case SQLOCK_ERETRY:
    case SQLOCK_ETIMEDOUT: /* the claim outlived its lease */
    case SQLOCK_EBUSY:     /* not the lock: a file, or a table being changed */
        return true;
    case SQLOCK_EREADONLY: /* a standby; but a file stays as it is */
        return (registry->db.driver->capabilities & SQLOCK_CAP_ONE_WRITER) == 0;
    default:
        return false;
    }
}

/* A row, or a file, that others fight for. */
static bool is_of_others(int rc)
{
    return rc == SQLOCK_ERETRY || rc == SQLOCK_ETIMEDOUT || rc == SQLOCK_EBUSY;
}

bool lk_patience_pause(struct lk_patience *patience, sqlock_lock *lock,
                       struct lk_waiter *self, int rc)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t pause_ms = LAST_PAUSE_MS;

    if (self->wait_ms == 0 || self->options->fail_fast ||
        now >= self->deadline_ns || !lk_is_passing(lock->registry, rc))
        return false;
    if (patience->failures < DOUBLINGS)
        pause_ms = (int64_t)FIRST_PAUSE_MS << patience->failures++;
    self->paused_until_ns = lk_sooner(
        now + lk_random_between(pause_ms / 2, pause_ms) * LK_NS_PER_MS,
        self->deadline_ns);
    lk_note_outage(lock, is_of_others(rc) ? 0 : rc);
    return true;
}

int lk_patience_await(struct lk_waiter *self, sqlock_error *err)
{
    int rc = 0;

    if (self->paused_until_ns == 0)
        return 0;
    if (self->on_wake == NULL)
        rc = lk_waiter_sleep(self, self->paused_until_ns, err);
    else if (lk_waiter_is_cancelled(self))
        rc = lk_canceled(err);
    else if (sqlock_monotonic_ns() < self->paused_until_ns)
        return LK_PARKED;
    self->paused_until_ns = 0;
    return rc;
}

void lk_patience_end(struct lk_patience *patience, sqlock_lock *lock)
{
    if (patience->failures == 0)
        return;
    patience->failures = 0;
    lk_note_outage(lock, 0);
}

int lk_patience_result(const struct lk_waiter *self,
                       const struct lk_lease *lease, int rc, sqlock_error *err)
{
    if (rc == SQLOCK_ERETRY || (rc == SQLOCK_EBUSY && self->wait_ms != 0))
        return lk_error(err,
                        self->wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT,
                        "the claim met other transactions until its time was "
                        "over");
    if (!lease->is_in_doubt || rc == SQLOCK_EUNCERTAIN ||
        rc == SQLOCK_ECANCELED)
        return rc;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection broke under a claim, and the database did "
                    "not say before the end of the wait what became of it");
}
