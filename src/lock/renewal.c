/*
 * renewal.c - renewals of leases under way (renewal.h).  No calls of the
 * database in here.
 */
#include "lock/renewal.h"

#include <utlist.h>

#include "base/clock.h"
#include "base/thread.h"
#include "lock/hold.h"
#include "lock/part.h"
#include "lock/registry.h"

/* Signals the end of a call or of a renewal. */
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;

/* In a child process the threads that wait here are no more. */
static void forget_parent(void)
{
    has_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent);
}

void lk_renewal_await_end(void)
{
    int before = lk_cancel_defer();

    (void)pthread_cond_wait(&has_ended, &lk_mutex);
    lk_cancel_allow(before);
}

void lk_renewal_tell_end(void)
{
    (void)pthread_cond_broadcast(&has_ended);
}

/* Return the TTL that the row needs for the readers of this process who rely on
 * its share: for the whole TTL of those who are renewed with it. */
static uint32_t row_ttl_ms(const struct lk_hold *hold, uint32_t ttl_ms)
{
    const sqlock_options *options = &hold->slot->store->options;
    const struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        int64_t left_ns = lk_remaining_ns(other);
        uint32_t needed_ms = other->lease.asked.ttl_ms;

        if (other == hold || left_ns == 0 || !lk_is_same_lease(other, hold))
            continue;
        if (!other->renewing.is_listed)
            needed_ms = (uint32_t)(left_ns / LK_NS_PER_MS) + 1 +
                        lk_margin_ms(options, needed_ms);
        if (needed_ms > ttl_ms)
            ttl_ms = needed_ms;
    }
    return ttl_ms;
}

void lk_renewal_begin(struct lk_hold *hold, struct lk_renewal *renewal,
                      uint32_t ttl_ms)
{
    struct lk_slot *slot = hold->slot;
    struct lk_renewal *other;

    hold->pins++;
    renewal->hold = hold;
    renewal->ttl_ms = ttl_ms;
    renewal->old_ttl_ms = hold->lease.asked.ttl_ms;
    renewal->row_ttl_ms = row_ttl_ms(hold, ttl_ms);
    renewal->until_ns =
        lk_believe_until(slot->store, lk_boottime_ns(), renewal->row_ttl_ms);
    renewal->others_ns = LK_NEVER;
    DL_FOREACH(slot->renewals, other)
    {
        if (!lk_is_same_lease(other->hold, hold))
            continue;
        other->others_ns = lk_sooner(other->others_ns, renewal->until_ns);
        renewal->others_ns = lk_sooner(renewal->others_ns, other->until_ns);
    }
    DL_APPEND2(slot->renewals, renewal, previous, next);
    hold->lease.believed.until_boot_ns =
        lk_sooner(hold->lease.believed.until_boot_ns, renewal->until_ns);
    lk_wake_in_time(slot);
}

uint32_t lk_shortest_ttl_ms(const struct lk_hold *hold)
{
    uint32_t shortest = hold->lease.asked.ttl_ms;
    const struct lk_renewal *renewal;

    DL_FOREACH(hold->slot->renewals, renewal)
    {
        if (renewal->hold == hold && renewal->ttl_ms < shortest)
            shortest = renewal->ttl_ms;
    }
    return shortest;
}

bool lk_is_being_renewed(const struct lk_hold *hold)
{
    const struct lk_renewal *renewal;

    DL_FOREACH(hold->slot->renewals, renewal)
    {
        if (renewal->hold == hold)
            return true;
    }
    return false;
}

/* Limit TTL and deadline, because a statement about the lease has got no answer
 * and may still arrive.  Its TTL is cap_ms (0: there is none), and it was last
 * sent at sent_boot_ns. */
static void cap(struct lk_hold *hold, uint32_t cap_ms, int64_t sent_boot_ns)
{
    int64_t latest;

    if (cap_ms == 0)
        return;
    lk_lease_cap(&hold->lease, cap_ms);
    latest = lk_believe_until(hold->slot->store, sent_boot_ns,
                              hold->lease.believed.cap_ms);
    hold->lease.believed.until_boot_ns =
        lk_sooner(hold->lease.believed.until_boot_ns, latest);
}

/* Set the deadline after a renewal.  If no other renewal overlapped, the
 * deadline in the copy of the lease is right, even if nothing was changed.  If
 * others did, only a success counts, limited by what the others allow. */
static void believe(struct lk_hold *hold, const struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    uint32_t ttl_ms = lease->asked.ttl_ms < renewal->ttl_ms
                          ? lease->asked.ttl_ms
                          : renewal->ttl_ms;
    int64_t until_ns =
        lk_sooner(lease->believed.until_boot_ns, renewal->others_ns);

    if (rc == 0 && renewal->row_ttl_ms > ttl_ms)
        until_ns = lk_sooner(until_ns, lk_believe_until(hold->slot->store,
                                                        sent_boot_ns, ttl_ms));
    if (rc == 0 || renewal->others_ns == LK_NEVER)
        hold->lease.believed.until_boot_ns = until_ns;
    if (rc == 0 && ttl_ms != renewal->old_ttl_ms)
        hold->lease.asked.ttl_ms = ttl_ms;
}

void lk_renewal_ride(struct lk_hold *hold, const struct lk_renewal *renewal,
                     const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    int64_t until_ns =
        lk_sooner(lk_sooner(renewal->others_ns, lease->believed.until_boot_ns),
                  lk_believe_until(hold->slot->store, sent_boot_ns,
                                   hold->lease.asked.ttl_ms));

    if (rc < 0 || lk_remaining_ns(hold) == 0)
        return;
    hold->lease.believed.until_boot_ns =
        lk_later(hold->lease.believed.until_boot_ns, until_ns);
    lk_count(&hold->slot->store->db.stats, LK_COUNT_RENEWED);
}

/* The renewal found that a downgrade without an answer was carried out.  A
 * share has no bell: those who may share the lock, too, wait for its end. */
static void become_share(struct lk_hold *hold, struct lk_lease *lease)
{
    hold->lease.asked.weight = lease->asked.weight;
    hold->lease.believed.may_be_share = false;
    hold->lease.believed.has_text = false;
    lease->answered.place = hold->lease.answered.place;
    hold->lease.answered.place = (struct lk_place){0};
    lk_pass_turn(hold->slot);
}

/* Note what became of a renewal of a lease that is still held. */
static void settle(struct lk_hold *hold, const struct lk_renewal *renewal,
                   struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    if (hold->lost == 0)
        believe(hold, renewal, lease, rc, sent_boot_ns);
    if (lease->asked.weight > 0 && !lk_is_share(hold))
        become_share(hold, lease);
    if (rc == 0)
        hold->lease.believed.may_be_share = lease->believed.may_be_share;
    if (rc == 0 && hold->lost == 0 && lk_remaining_ns(hold) > 0)
        lk_count(&hold->slot->store->db.stats, LK_COUNT_RENEWED);
}

/* Note for each who has the lease that is renewed what limits it: a statement
 * without an answer, or its end. */
static void limit(struct lk_hold *hold, const struct lk_lease *lease, int rc,
                  int64_t sent_boot_ns)
{
    if (hold->state != LK_HOLD_HELD)
        return;
    if (sent_boot_ns != 0)
        cap(hold, lease->believed.cap_ms, sent_boot_ns);
    /* A renewal that overlapped may have got no answer. */
    cap(hold, hold->lease.believed.cap_ms, lk_boottime_ns());
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        hold->lost != SQLOCK_ELOST)
        (void)lk_lose(hold, rc);
    /* The answer may come when the lease is over already. */
    else if (rc == 0 && lk_remaining_ns(hold) == 0 && hold->lost == 0)
        (void)lk_lose(hold, SQLOCK_EEXPIRED);
}

int lk_renewal_end(struct lk_hold *hold, struct lk_renewal *renewal,
                   struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    struct lk_slot *slot = hold->slot;
    struct lk_hold *other;

    lease->answered.place = (struct lk_place){0}; /* the hold's */
    DL_DELETE2(slot->renewals, renewal, previous, next);
    if (hold->state == LK_HOLD_HELD)
        settle(hold, renewal, lease, rc, sent_boot_ns);
    limit(hold, lease, rc, sent_boot_ns);
    DL_FOREACH(slot->holds, other)
    {
        if (other != hold && lk_is_same_lease(other, hold))
            limit(other, lease, rc, sent_boot_ns);
    }
    if (hold->is_downgrading)
        lk_renewal_tell_end();
    if (rc == 0)
        rc = hold->lost;
    lk_wake_in_time(slot);
    lk_hold_unpin(hold);
    return rc;
}
