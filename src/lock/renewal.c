/*
 * renewal.c - combine overlapping renewals of one lease (renewal.h)
 */
#include "lock/renewal.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/lease.h"
#include "lock/slot.h"

void lk_renewal_begin(struct lk_slot *slot, struct lk_renewal *renewal,
                      uint32_t ttl_ms)
{
    struct lk_renewal *other;

    renewal->ttl_ms = ttl_ms;
    renewal->old_ttl_ms = slot->lease.ttl_ms;
    renewal->until_ns = lk_believe_until(slot->store, lk_boottime_ns(), ttl_ms);
    renewal->others_ns = LK_NEVER;
    DL_FOREACH(slot->renewals, other)
    {
        other->others_ns = lk_sooner(other->others_ns, renewal->until_ns);
        renewal->others_ns = lk_sooner(renewal->others_ns, other->until_ns);
    }
    DL_APPEND2(slot->renewals, renewal, previous, next);
    slot->lease.deadline_boot_ns =
        lk_sooner(slot->lease.deadline_boot_ns, renewal->until_ns);
}

uint32_t lk_shortest_ttl_ms(const struct lk_slot *slot)
{
    uint32_t shortest = slot->lease.ttl_ms;
    const struct lk_renewal *renewal;

    DL_FOREACH(slot->renewals, renewal)
    {
        if (renewal->ttl_ms < shortest)
            shortest = renewal->ttl_ms;
    }
    return shortest;
}

/* Limit TTL and deadline, because a statement about the lease has got no answer
 * and may still arrive.  Its TTL is cap_ms (0: there is none), and it was last
 * sent at sent_boot_ns. */
static void cap(struct lk_slot *slot, uint32_t cap_ms, int64_t sent_boot_ns)
{
    int64_t latest;

    if (cap_ms == 0)
        return;
    lk_lease_cap(&slot->lease, cap_ms);
    latest = lk_believe_until(slot->store, sent_boot_ns, slot->lease.cap_ms);
    slot->lease.deadline_boot_ns =
        lk_sooner(slot->lease.deadline_boot_ns, latest);
}

/* Set the deadline after a renewal.  If no other renewal overlapped, the
 * deadline in the copy of the lease is right, even if nothing was changed.  If
 * others did, only a success counts, limited by what the others allow. */
static void believe(struct lk_slot *slot, const struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc)
{
    if (renewal->others_ns == LK_NEVER)
        slot->lease.deadline_boot_ns = lease->deadline_boot_ns;
    else if (rc == 0)
        slot->lease.deadline_boot_ns =
            lk_sooner(lease->deadline_boot_ns, renewal->others_ns);
    if (rc == 0 && lease->ttl_ms != renewal->old_ttl_ms)
        slot->lease.ttl_ms = lease->ttl_ms;
}

bool lk_renewal_end(struct lk_slot *slot, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    if (strcmp(slot->lease.client_id, lease->client_id) != 0)
        return false;
    DL_DELETE2(slot->renewals, renewal, previous, next);
    if (slot->phase != LK_OCCUPIED)
        return false;
    if (rc == 0)
        lk_count(&slot->store->db.stats, LK_COUNT_RENEWED);
    if (slot->lost == 0)
        believe(slot, renewal, lease, rc);
    if (sent_boot_ns != 0)
        cap(slot, lease->cap_ms, sent_boot_ns);
    /* A renewal that overlapped may have got no answer. */
    cap(slot, slot->lease.cap_ms, lk_boottime_ns());
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        slot->lost != SQLOCK_ELOST)
        (void)lk_lose(slot, rc);
    return true;
}
