/*
 * hold.c - the leases of a slot, until their holders have released them
 * (hold.h).  No calls of the database in here.
 */
#include "lock/hold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "lease/sharer.h"
#include "lock/call.h"
#include "lock/expiry.h"
#include "lock/peers.h"
#include "lock/registry.h"

/* The states that may follow each state. */
#define TO(state) (1U << (state))
static const unsigned followers[] = {
    [LK_HOLD_NEW] = TO(LK_HOLD_HELD),
    /* over: the handle of an owner that has ended is freed */
    [LK_HOLD_HELD] =
        TO(LK_HOLD_RELEASING) | TO(LK_HOLD_ASIDE) | TO(LK_HOLD_OVER),
    [LK_HOLD_RELEASING] = TO(LK_HOLD_OVER),
    [LK_HOLD_ASIDE] = TO(LK_HOLD_OVER),
};

static void go_to(struct lk_hold *hold, enum lk_hold_state state)
{
    assert(followers[hold->state] & TO(state));
    hold->state = state;
}

/* --- finding --- */

bool lk_is_share(const struct lk_hold *hold)
{
    return hold->lease.weight > 0;
}

struct lk_hold *lk_present(const struct lk_slot *slot)
{
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->state != LK_HOLD_ASIDE && !lk_is_share(hold))
            return hold;
    }
    return NULL;
}

static struct lk_hold *find(const struct lk_slot *slot, uint64_t owner,
                            enum lk_hold_state state)
{
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->state == state && hold->owner == owner &&
            !hold->is_left_behind)
            return hold;
    }
    return NULL;
}

struct lk_hold *lk_hold_of(const struct lk_slot *slot, uint64_t owner)
{
    return find(slot, owner, LK_HOLD_HELD);
}

struct lk_hold *lk_aside_of(const struct lk_slot *slot, uint64_t owner)
{
    return find(slot, owner, LK_HOLD_ASIDE);
}

struct lk_hold *lk_hold_to_release(const struct lk_slot *slot, uint64_t owner)
{
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->owner == owner && !hold->is_left_behind &&
            hold->state != LK_HOLD_RELEASING && lk_remaining_ns(hold) == 0)
            return hold;
    }
    return lk_hold_of(slot, owner);
}

uint32_t lk_hold_count(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_hold *hold;
    uint32_t count = 0;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->owner == owner && !hold->is_left_behind &&
            hold->state != LK_HOLD_RELEASING)
            count += hold->count;
    }
    return count;
}

struct lk_hold *lk_hold_by_grant(const struct lk_slot *slot, uint64_t grant)
{
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->grant == grant && hold->state != LK_HOLD_RELEASING)
            return hold;
    }
    return NULL;
}

int64_t lk_remaining_ns(const struct lk_hold *hold)
{
    int64_t left = hold->lease.deadline_boot_ns - lk_boottime_ns();

    return hold->lost != 0 || left < 0 ? 0 : left;
}

/* --- beginning and ending --- */

/* Note whether the end of the lease is to be told: from the grant on, so that
 * the lease cannot be set aside untold. */
static void begin_to_tell(struct lk_hold *hold)
{
    if (hold->is_left_behind) {
        hold->asked.on_lost = NULL;
        return;
    }
    lk_lost_fd_clear(hold->lock);
    hold->is_to_be_told =
        hold->asked.on_lost != NULL || hold->lock->lost_fd >= 0;
}

/* As lk_hold_begin(), but let no next part of the FIFO begin. */
static void begin(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_hold *hold = part->hold;
    struct lk_slot *slot = part->slot;

    part->hold = NULL;
    part->grant = ++slot->grants;
    lk_part_holds(part);
    hold->slot = slot;
    slot->references++;
    hold->lock = part->lock;
    hold->owner = part->owner;
    hold->grant = part->grant;
    hold->asked = *part->waiter->options;
    hold->is_left_behind = part->waiter->is_abandoned;
    hold->count = 1;
    hold->lease = *lease;
    hold->lease.asked_ns = 0;
    begin_to_tell(hold);
    hold->acquired_boot_ns = lk_boottime_ns();
    go_to(hold, LK_HOLD_HELD);
    DL_PREPEND2(slot->holds, hold, previous, next);
}

void lk_hold_begin(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_slot *slot = part->slot;

    begin(part, lease);
    slot->joined = 0;
    if (lease->weight > 0)
        lk_pass_turn(slot);
    lk_wake_in_time(slot); /* this lease may be shorter than the last one */
    if (slot->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_let_all_in(slot);
}

void lk_hold_begin_release(struct lk_hold *hold)
{
    const struct lk_slot *slot = hold->slot;

    lk_count_released(&slot->store->db.stats, slot->key,
                      lk_boottime_ns() - hold->acquired_boot_ns);
    go_to(hold, LK_HOLD_RELEASING);
}

static void free_unused(struct lk_hold *hold)
{
    if (hold->state != LK_HOLD_OVER || hold->pins > 0)
        return;
    lk_slot_drop(hold->slot);
    free(hold);
}

void lk_hold_end(struct lk_hold *hold)
{
    DL_DELETE2(hold->slot->holds, hold, previous, next);
    go_to(hold, LK_HOLD_OVER);
    free_unused(hold);
}

void lk_hold_unpin(struct lk_hold *hold)
{
    hold->pins--;
    free_unused(hold);
}

int lk_lose(struct lk_hold *hold, int code)
{
    if (hold->lost == 0)
        lk_count_over(&hold->slot->store->db.stats, hold->slot->key, code);
    hold->lost = code;
    return code;
}

/* --- readers of this process, which share a share --- */

bool lk_is_same_lease(const struct lk_hold *a, const struct lk_hold *b)
{
    return a->slot == b->slot &&
           strcmp(a->lease.client_id, b->lease.client_id) == 0;
}

/* Return whether the hold is one whose share a reader may join. */
static bool is_open(const struct lk_hold *hold)
{
    return hold->state == LK_HOLD_HELD && hold->lease.weight == 1 &&
           hold->lease.permits == LK_NO_LIMIT && !hold->is_left_behind &&
           !hold->is_closed && lk_remaining_ns(hold) > 0;
}

/* Return whether what is left of the lease is enough for the part: a holder
 * that asked for a TTL gets most of it. */
static bool lasts(const struct lk_hold *hold, const struct lk_part *part)
{
    const sqlock_acquire_options *wanted = part->waiter->options;
    int64_t now_ns = lk_boottime_ns();
    int64_t all_ns =
        lk_believe_until(part->slot->store, now_ns, wanted->ttl_ms) - now_ns;

    return lk_remaining_ns(hold) >=
           (wanted->auto_renew ? all_ns / 2 : all_ns - all_ns / 8);
}

/* Return the hold whose share the part may join; NULL: none. */
static const struct lk_hold *joinable(const struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;
    const struct lk_hold *best = NULL;
    const struct lk_hold *hold;

    if (!part->may_join || slot->is_asked ||
        slot->joined >= slot->store->options.handoff_limit ||
        lk_peers_are_due(slot))
        return NULL;
    DL_FOREACH(slot->holds, hold)
    {
        if (is_open(hold) && (best == NULL || hold->lease.deadline_boot_ns >
                                                  best->lease.deadline_boot_ns))
            best = hold;
    }
    return best != NULL && lasts(best, part) ? best : NULL;
}

bool lk_join(struct lk_part *part)
{
    const struct lk_hold *hold = joinable(part);
    struct lk_slot *slot = part->slot;
    struct lk_lease lease;

    if (hold == NULL)
        return false;
    lease = hold->lease;
    lease.place = (struct lk_place){0};
    lease.ttl_ms = lk_capped_ms(&lease, part->waiter->options->ttl_ms);
    lease.deadline_boot_ns = lk_sooner(
        lease.deadline_boot_ns,
        lk_believe_until(slot->store, lk_boottime_ns(), lease.ttl_ms));
    slot->joined++;
    part->asks = slot->joined == slot->store->options.handoff_limit;
    slot->is_asked = part->asks;
    begin(part, &lease);
    return true;
}

void lk_joined(struct lk_part *part, bool is_alone)
{
    struct lk_slot *slot = part->slot;
    const struct lk_hold *own = lk_hold_by_grant(slot, part->grant);
    struct lk_hold *hold;

    part->asks = false;
    slot->is_asked = false;
    if (is_alone)
        slot->joined = 0;
    DL_FOREACH(slot->holds, hold)
    {
        if (!is_alone && own != NULL && lk_is_same_lease(hold, own))
            hold->is_closed = true;
    }
    if (slot->turn == NULL && lk_present(slot) == NULL)
        lk_pass_turn(slot);
}

bool lk_is_joined(const struct lk_hold *hold)
{
    const struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        if (other != hold && other->state == LK_HOLD_HELD &&
            lk_remaining_ns(other) > 0 && lk_is_same_lease(other, hold))
            return true;
    }
    return false;
}

/* --- leases that are over, and not released --- */

/* Return whether nothing but time keeps the hold from being overdue. */
static bool may_be_overdue(const struct lk_hold *hold)
{
    const sqlock_options *options = &hold->slot->store->options;

    return hold->state == LK_HOLD_HELD && hold->guards == 0 &&
           hold->calls == 0 && options->ownership != SQLOCK_OWNED_BY_REGISTRY;
}

bool lk_hold_is_overdue(const struct lk_hold *hold)
{
    return may_be_overdue(hold) && lk_remaining_ns(hold) == 0 &&
           !hold->is_to_be_told;
}

bool lk_is_overdue(const struct lk_slot *slot)
{
    const struct lk_hold *hold = lk_present(slot);

    return hold != NULL && lk_hold_is_overdue(hold);
}

int64_t lk_overdue_at(const struct lk_slot *slot)
{
    const struct lk_hold *hold = lk_present(slot);

    if (hold == NULL || !may_be_overdue(hold) ||
        (hold->is_to_be_told && lk_remaining_ns(hold) == 0))
        return LK_NEVER;
    return hold->lost != 0 ? 0 : hold->lease.deadline_boot_ns;
}

void lk_set_aside(struct lk_slot *slot)
{
    struct lk_hold *hold = lk_present(slot);

    if (hold->lost == 0)
        (void)lk_lose(hold, SQLOCK_EEXPIRED);
    go_to(hold, LK_HOLD_ASIDE);
    slot->handoffs = 0;
}

struct lk_place lk_place_aside(struct lk_slot *slot)
{
    struct lk_place place = {0};
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->state == LK_HOLD_ASIDE && place.connection == NULL) {
            place = hold->lease.place;
            hold->lease.place = (struct lk_place){0};
        }
    }
    return place;
}

/* --- renewals --- */

/* Return the TTL that the row needs for the readers of this process who rely on
 * its share: for the whole TTL of those who are renewed with it. */
static uint32_t row_ttl_ms(const struct lk_hold *hold, uint32_t ttl_ms)
{
    const sqlock_options *options = &hold->slot->store->options;
    const struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        int64_t left_ns = lk_remaining_ns(other);
        uint32_t needed_ms = other->lease.ttl_ms;

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
    renewal->old_ttl_ms = hold->lease.ttl_ms;
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
    hold->lease.deadline_boot_ns =
        lk_sooner(hold->lease.deadline_boot_ns, renewal->until_ns);
    lk_wake_in_time(slot);
}

uint32_t lk_shortest_ttl_ms(const struct lk_hold *hold)
{
    uint32_t shortest = hold->lease.ttl_ms;
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
    latest =
        lk_believe_until(hold->slot->store, sent_boot_ns, hold->lease.cap_ms);
    hold->lease.deadline_boot_ns =
        lk_sooner(hold->lease.deadline_boot_ns, latest);
}

/* Set the deadline after a renewal.  If no other renewal overlapped, the
 * deadline in the copy of the lease is right, even if nothing was changed.  If
 * others did, only a success counts, limited by what the others allow. */
static void believe(struct lk_hold *hold, const struct lk_renewal *renewal,
                    const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    uint32_t ttl_ms =
        lease->ttl_ms < renewal->ttl_ms ? lease->ttl_ms : renewal->ttl_ms;
    int64_t until_ns = lk_sooner(lease->deadline_boot_ns, renewal->others_ns);

    if (rc == 0 && renewal->row_ttl_ms > ttl_ms)
        until_ns = lk_sooner(until_ns, lk_believe_until(hold->slot->store,
                                                        sent_boot_ns, ttl_ms));
    if (rc == 0 || renewal->others_ns == LK_NEVER)
        hold->lease.deadline_boot_ns = until_ns;
    if (rc == 0 && ttl_ms != renewal->old_ttl_ms)
        hold->lease.ttl_ms = ttl_ms;
}

void lk_renewal_ride(struct lk_hold *hold, const struct lk_renewal *renewal,
                     const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    int64_t until_ns = lk_sooner(
        lk_sooner(renewal->others_ns, lease->deadline_boot_ns),
        lk_believe_until(hold->slot->store, sent_boot_ns, hold->lease.ttl_ms));

    if (rc < 0 || lk_remaining_ns(hold) == 0)
        return;
    hold->lease.deadline_boot_ns =
        lk_later(hold->lease.deadline_boot_ns, until_ns);
    lk_count(&hold->slot->store->db.stats, LK_COUNT_RENEWED);
}

/* The renewal found that a downgrade without an answer was carried out. */
static void become_share(struct lk_hold *hold, const struct lk_lease *lease)
{
    hold->lease.weight = lease->weight;
    hold->lease.may_be_share = false;
    lk_pass_turn(hold->slot);
}

/* Note what became of a renewal of a lease that is still held. */
static void settle(struct lk_hold *hold, const struct lk_renewal *renewal,
                   const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    if (hold->lost == 0)
        believe(hold, renewal, lease, rc, sent_boot_ns);
    if (lease->weight > 0 && !lk_is_share(hold))
        become_share(hold, lease);
    if (rc == 0)
        hold->lease.may_be_share = lease->may_be_share;
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
        cap(hold, lease->cap_ms, sent_boot_ns);
    /* A renewal that overlapped may have got no answer. */
    cap(hold, hold->lease.cap_ms, lk_boottime_ns());
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        hold->lost != SQLOCK_ELOST)
        (void)lk_lose(hold, rc);
    /* The answer may come when the lease is over already. */
    else if (rc == 0 && lk_remaining_ns(hold) == 0 && hold->lost == 0)
        (void)lk_lose(hold, SQLOCK_EEXPIRED);
}

int lk_renewal_end(struct lk_hold *hold, struct lk_renewal *renewal,
                   const struct lk_lease *lease, int rc, int64_t sent_boot_ns)
{
    struct lk_slot *slot = hold->slot;
    struct lk_hold *other;

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
        lk_call_wake();
    if (rc == 0)
        rc = hold->lost;
    lk_wake_in_time(slot);
    lk_hold_unpin(hold);
    return rc;
}

int lk_not_owner(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EOWNER, "the caller does not own this lock");
}

int lk_hold_over(int lost, sqlock_error *err)
{
    return lk_error(err, lost, "the lease of this lock is %s: release it",
                    lost == SQLOCK_ELOST ? "lost" : "over");
}

int lk_hold_usable(const struct lk_slot *slot, uint64_t owner,
                   bool may_be_guarded, struct lk_hold **out, sqlock_error *err)
{
    struct lk_hold *hold = lk_hold_of(slot, owner);
    const struct lk_hold *aside = lk_aside_of(slot, owner);

    *out = hold;
    if (hold == NULL && aside == NULL)
        return lk_not_owner(err);
    if (hold == NULL)
        return lk_hold_over(aside->lost, err);
    if (hold->lost != 0)
        return lk_hold_over(hold->lost, err);
    if (lk_remaining_ns(hold) == 0)
        return lk_hold_over(SQLOCK_EEXPIRED, err);
    return hold->guards > 0 && !may_be_guarded
               ? lk_error(err, SQLOCK_EINUSE,
                          "an open transaction guards this lock: end it first")
               : 0;
}
