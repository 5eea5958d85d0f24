/*
 * hold.c - the leases of a slot, until their holders have released them
 * (hold.h).  No calls of the database in here.
 */
#include "lock/hold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
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
    return hold->lease.asked.weight > 0;
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
    int64_t left = hold->lease.believed.until_boot_ns - lk_boottime_ns();

    return hold->lost != 0 || left < 0 ? 0 : left;
}

/* --- beginning and ending --- */

/* Note whether the end of the lease is to be told: from the grant on, so that
 * the lease cannot be set aside untold. */
static void begin_to_tell(struct lk_hold *hold)
{
    uint64_t count;

    if (hold->is_left_behind) {
        hold->asked.on_lost = NULL;
        return;
    }
    if (hold->lock->lost_fd >= 0) /* not readable for this lease yet */
        (void)!read(hold->lock->lost_fd, &count, sizeof count);
    hold->is_to_be_told =
        hold->asked.on_lost != NULL || hold->lock->lost_fd >= 0;
}

void lk_hold_begin(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_hold *hold = part->hold;
    struct lk_slot *slot = part->slot;

    part->hold = NULL;
    part->grant = ++slot->grants;
    hold->slot = slot;
    slot->references++;
    hold->lock = part->lock;
    hold->owner = part->owner;
    hold->grant = part->grant;
    hold->asked = *part->waiter->options;
    hold->is_left_behind = part->waiter->is_abandoned;
    hold->count = 1;
    hold->lease = *lease;
    hold->lease.asked.at_ns = 0;
    begin_to_tell(hold);
    hold->acquired_boot_ns = lk_boottime_ns();
    go_to(hold, LK_HOLD_HELD);
    DL_PREPEND2(slot->holds, hold, previous, next);
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
    return hold->lost != 0 ? 0 : hold->lease.believed.until_boot_ns;
}

void lk_set_aside(struct lk_slot *slot)
{
    struct lk_hold *hold = lk_present(slot);

    if (hold->lost == 0)
        (void)lk_lose(hold, SQLOCK_EEXPIRED);
    go_to(hold, LK_HOLD_ASIDE);
}

struct lk_place lk_place_aside(struct lk_slot *slot)
{
    struct lk_place place = {0};
    struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        if (hold->state == LK_HOLD_ASIDE && place.connection == NULL) {
            place = hold->lease.answered.place;
            hold->lease.answered.place = (struct lk_place){0};
        }
    }
    return place;
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
