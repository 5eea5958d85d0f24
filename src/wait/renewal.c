/*
 * renewal.c - combine overlapping renewals of one lease (renewal.h)
 */
#include "wait/renewal.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/lease.h"
#include "wait/entry.h"

void lk_renewal_begin(struct lk_entry *entry, struct lk_renewal *renewal,
                      uint32_t ttl_ms)
{
    struct lk_renewal *other;

    renewal->ttl_ms = ttl_ms;
    renewal->old_ttl_ms = entry->lease.ttl_ms;
    renewal->until_ns =
        lk_believe_until(entry->store, lk_boottime_ns(), ttl_ms);
    renewal->others_ns = LK_NEVER;
    DL_FOREACH(entry->renewals, other)
    {
        other->others_ns = lk_sooner(other->others_ns, renewal->until_ns);
        renewal->others_ns = lk_sooner(renewal->others_ns, other->until_ns);
    }
    DL_APPEND2(entry->renewals, renewal, previous, next);
    entry->lease.deadline_boot_ns =
        lk_sooner(entry->lease.deadline_boot_ns, renewal->until_ns);
}

uint32_t lk_shortest_ttl_ms(const struct lk_entry *entry)
{
    uint32_t shortest = entry->lease.ttl_ms;
    const struct lk_renewal *renewal;

    DL_FOREACH(entry->renewals, renewal)
    {
        if (renewal->ttl_ms < shortest)
            shortest = renewal->ttl_ms;
    }
    return shortest;
}

/* Limit TTL and deadline, because a statement about the lease has got no answer
 * and may still arrive.  Its TTL is cap_ms (0: there is none), and it was last
 * sent at sent_boot_ns. */
static void cap(struct lk_entry *entry, uint32_t cap_ms, int64_t sent_boot_ns)
{
    int64_t latest;

    if (cap_ms == 0)
        return;
    lk_lease_cap(&entry->lease, cap_ms);
    latest = lk_believe_until(entry->store, sent_boot_ns, entry->lease.cap_ms);
    entry->lease.deadline_boot_ns =
        lk_sooner(entry->lease.deadline_boot_ns, latest);
}

/* Set the deadline after a renewal.  If no other renewal overlapped, the
 * deadline in the copy of the lease is right, even if nothing was changed.  If
 * others did, only a success counts, limited by what the others allow. */
static void believe(struct lk_entry *entry, const struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc)
{
    if (renewal->others_ns == LK_NEVER)
        entry->lease.deadline_boot_ns = lease->deadline_boot_ns;
    else if (rc == 0)
        entry->lease.deadline_boot_ns =
            lk_sooner(lease->deadline_boot_ns, renewal->others_ns);
    if (rc == 0 && lease->ttl_ms != renewal->old_ttl_ms)
        entry->lease.ttl_ms = lease->ttl_ms;
}

bool lk_renewal_end(struct lk_entry *entry, struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    if (strcmp(entry->lease.client_id, lease->client_id) != 0)
        return false;
    DL_DELETE2(entry->renewals, renewal, previous, next);
    if (entry->phase != LK_OCCUPIED)
        return false;
    if (rc == 0)
        lk_count(&entry->store->db.stats, LK_COUNT_RENEWED);
    if (entry->lost == 0)
        believe(entry, renewal, lease, rc);
    if (sent_boot_ns != 0)
        cap(entry, lease->cap_ms, sent_boot_ns);
    /* A renewal that overlapped may have got no answer. */
    cap(entry, entry->lease.cap_ms, lk_boottime_ns());
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        entry->lost != SQLOCK_ELOST)
        (void)lk_lose(entry, rc);
    return true;
}
