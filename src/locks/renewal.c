/*
 * renewal.c - see renewal.h
 */
#include "locks/renewal.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/lease.h"
#include "locks/registry.h"

void lk_renewal_begin(sqlock_lock *lock, struct lk_renewal *renewal,
                      uint32_t ttl_ms)
{
    struct lk_renewal *other;

    if (lock->cap_ms != 0 && ttl_ms > lock->cap_ms)
        ttl_ms = lock->cap_ms;
    renewal->old_ttl_ms = lock->ttl_ms;
    renewal->until_ns = lk_believe_until(lock->store, lk_boottime_ns(), ttl_ms);
    renewal->others_ns = LK_NEVER;
    DL_FOREACH(lock->renewals, other)
    {
        other->others_ns = lk_sooner(other->others_ns, renewal->until_ns);
        renewal->others_ns = lk_sooner(renewal->others_ns, other->until_ns);
    }
    DL_APPEND2(lock->renewals, renewal, previous, next);
    lock->deadline_boot_ns =
        lk_sooner(lock->deadline_boot_ns, renewal->until_ns);
}

/* A statement about the lease with that TTL, sent last at that moment, may
 * still be on its way; 0: there is none. */
static void cap(sqlock_lock *lock, uint32_t cap_ms, int64_t sent_boot_ns)
{
    int64_t latest;

    if (cap_ms == 0)
        return;
    if (lock->cap_ms == 0 || cap_ms < lock->cap_ms)
        lock->cap_ms = cap_ms;
    if (lock->ttl_ms > lock->cap_ms)
        lock->ttl_ms = lock->cap_ms;
    latest = lk_believe_until(lock->store, sent_boot_ns, lock->cap_ms);
    lock->deadline_boot_ns = lk_sooner(lock->deadline_boot_ns, latest);
}

/* Alone, its copy knows, whatever came of it: also that nothing was changed.
 * Beside others it only knows what it has done itself. */
static void believe(sqlock_lock *lock, const struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc)
{
    if (renewal->others_ns == LK_NEVER)
        lock->deadline_boot_ns = lease->deadline_boot_ns;
    else if (rc == 0)
        lock->deadline_boot_ns =
            lk_sooner(lease->deadline_boot_ns, renewal->others_ns);
    if (rc == 0 && lease->ttl_ms != renewal->old_ttl_ms)
        lock->ttl_ms = lease->ttl_ms;
}

bool lk_renewal_end(sqlock_lock *lock, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    if (strcmp(lock->client_id, lease->client_id) != 0)
        return false;
    DL_DELETE2(lock->renewals, renewal, previous, next);
    if (lock->phase != LK_OCCUPIED)
        return false;
    if (lock->lost == 0)
        believe(lock, renewal, lease, rc);
    if (sent_boot_ns != 0)
        cap(lock, lease->cap_ms, sent_boot_ns);
    /* One beside it may have got no answer. */
    cap(lock, lock->cap_ms, lk_boottime_ns());
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        lock->lost != SQLOCK_ELOST)
        lock->lost = rc;
    return true;
}
