/*
 * circle.c - look for circles of waits through other processes (circle.h)
 */
#include "lock/circle.h"

#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/waits.h"
#include "lock/acquisition.h"
#include "lock/hold.h"
#include "lock/registry.h"
#include "sqlock/operator.h"

#define LOOK_NS (700 * LK_NS_PER_MS)
#define LOOK_LEAST_NS (100 * LK_NS_PER_MS) /* time for a look */

/* Return whose mark the CLIENT_IDs of an owner's parts have: that of the lease
 * which it got first.  The caller of the functions down to rename_held() holds
 * the mutex. */
static uint64_t marked_as(const sqlock_registry *registry, uint64_t owner)
{
    const struct lk_hold *first = NULL;

    if (!registry->has_finished)
        return owner;
    for (const struct lk_slot *slot = registry->slots; slot != NULL;
         slot = slot->hh.next) {
        const struct lk_hold *hold = lk_hold_of(slot, owner);

        if (hold != NULL &&
            (first == NULL || hold->acquired_boot_ns < first->acquired_boot_ns))
            first = hold;
    }
    return first != NULL ? first->lease.owner : owner;
}

/* Choose the marks of the parts, most of which are one owner's. */
static void choose_marks(struct lk_acquisition *a)
{
    const struct lk_part *last = NULL;

    pthread_mutex_lock(&lk_mutex);
    for (struct lk_part *part = a->parts; part < a->parts + a->count; part++) {
        part->marked_as = last != NULL && last->owner == part->owner
                              ? last->marked_as
                              : marked_as(a->registry, part->owner);
        last = part;
    }
    pthread_mutex_unlock(&lk_mutex);
}

static bool is_wanted(const struct lk_acquisition *a)
{
    return a->store->options.detect_deadlocks;
}

void lk_circle_begin(struct lk_acquisition *a)
{
    bool may_look = a->store->statements[SQLOCK_SQL_WAITS].text != NULL;

    a->circle.look_ns =
        may_look && a->self.wait_ms != 0 ? a->began_ns + LOOK_NS : LK_NEVER;
    if (may_look && is_wanted(a))
        choose_marks(a);
}

static bool keeps_rows(const struct lk_acquisition *a)
{
    return lk_kept_look_ns(a) != LK_NEVER;
}

int64_t lk_circle_look_ns(const struct lk_acquisition *a)
{
    int64_t kept_since_ns = a->kept.give_back_ns - a->kept.longest_ns;

    if (is_wanted(a))
        return a->circle.look_ns;
    return keeps_rows(a) ? lk_later(a->circle.look_ns, kept_since_ns + LOOK_NS)
                         : LK_NEVER;
}

/* Return the mark of whoever has the lock, or the turn to get it; of `other`
 * if nobody has. */
static uint32_t mark_of(const struct lk_slot *slot, uint32_t other)
{
    const struct lk_hold *hold = lk_present(slot);

    if (slot->turn != NULL)
        return lk_store_mark(slot->store, slot->turn->marked_as);
    return hold != NULL ? lk_client_id_mark(hold->lease.client_id) : other;
}

/* Add the waits in the FIFOs of this registry. */
static bool add_own(const sqlock_registry *registry, struct lk_waits *waits)
{
    bool is_complete = true;

    for (const struct lk_slot *slot = registry->slots; slot != NULL;
         slot = slot->hh.next) {
        const struct lk_part *part;

        DL_FOREACH2(slot->parts, part, next)
        {
            uint32_t waiter = lk_store_mark(&registry->store, part->marked_as);

            if (part->state == LK_PART_QUEUED)
                is_complete =
                    is_complete &&
                    lk_waits_add(waits, waiter, mark_of(slot, waiter));
        }
    }
    return is_complete;
}

static bool rename_mark(struct lk_waits *waits, uint32_t from, uint32_t to)
{
    bool is_found = false;

    for (size_t i = 0; from != to && i < waits->count; i++) {
        if (waits->all[i].owner != from)
            continue;
        waits->all[i].owner = to;
        is_found = true;
    }
    return is_found;
}

/* Give all leases of the owner that mark.  Return whether others wait for any
 * that had another one. */
static bool rename_held(const sqlock_registry *registry, uint64_t owner,
                        uint32_t mark, struct lk_waits *waits)
{
    bool is_found = false;

    for (const struct lk_slot *slot = registry->slots; slot != NULL;
         slot = slot->hh.next) {
        const struct lk_hold *hold = lk_hold_of(slot, owner);

        if (hold != NULL &&
            rename_mark(waits, lk_client_id_mark(hold->lease.client_id), mark))
            is_found = true;
    }
    return is_found;
}

/* Return whether the owner holds a lock: otherwise nobody waits for it. */
static bool holds(const sqlock_registry *registry, uint64_t owner)
{
    bool is_holder = registry->store.acts_for[0] != '\0';

    pthread_mutex_lock(&lk_mutex);
    for (const struct lk_slot *slot = registry->slots;
         !is_holder && slot != NULL; slot = slot->hh.next)
        is_holder = lk_hold_of(slot, owner) != NULL;
    pthread_mutex_unlock(&lk_mutex);
    return is_holder;
}

/* Forget which wait began last. */
static void forget_order(struct lk_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        waits->all[i].since_us = 0;
}

/* Return whether the owner of the part is in a circle that no other process can
 * see, since only this one knows which leases are one owner's.  Then the owner
 * is told whether or not it began to wait last. */
static bool is_seen_here_alone(const struct lk_part *part, uint32_t self,
                               struct lk_waits *waits)
{
    bool is_renamed;

    forget_order(waits);
    if (lk_waits_are_closed(waits, self))
        return false;
    pthread_mutex_lock(&lk_mutex);
    is_renamed = rename_held(part->slot->registry, part->owner, self, waits);
    pthread_mutex_unlock(&lk_mutex);
    return is_renamed && lk_waits_are_closed(waits, self);
}

/* Return whether the wait of the acquisition would never end, as far as can be
 * seen now; or, if it keeps rows, not before it gives them back. */
static bool is_seen(const struct lk_acquisition *a)
{
    const struct lk_part *part = a->first;
    const sqlock_registry *registry = part->slot->registry;
    struct lk_store *store = part->slot->store;
    struct lk_waits waits = {.all = NULL};
    uint32_t self = lk_store_mark(store, part->marked_as);
    bool is_complete;
    bool is_closed;

    if (!keeps_rows(a) && !holds(registry, part->owner))
        return false;
    is_complete =
        lk_waits_read(store, part->waiter->deadline_ns, &waits, NULL) == 0;
    pthread_mutex_lock(&lk_mutex);
    is_complete = is_complete && add_own(registry, &waits);
    pthread_mutex_unlock(&lk_mutex);
    if (keeps_rows(a))
        forget_order(&waits);
    is_closed = is_complete && (lk_waits_are_closed(&waits, self) ||
                                is_seen_here_alone(part, self, &waits));
    lk_waits_clear(&waits);
    return is_closed;
}

bool lk_circle_look(struct lk_acquisition *a)
{
    bool was_seen = a->circle.was_seen;
    int64_t now_ns = sqlock_monotonic_ns();
    bool is_closed;

    if (now_ns < lk_circle_look_ns(a))
        return true;
    /* A look that is cut short costs its connection. */
    if (a->self.deadline_ns != LK_NEVER &&
        a->self.deadline_ns - now_ns < LOOK_LEAST_NS) {
        a->circle.look_ns = LK_NEVER;
        return true;
    }
    is_closed = is_seen(a);
    a->circle.was_seen = is_closed && !keeps_rows(a);
    a->circle.look_ns = sqlock_monotonic_ns() + LOOK_NS;
    if (is_closed && keeps_rows(a))
        return false;
    if (!was_seen || !a->circle.was_seen)
        return true;
    pthread_mutex_lock(&lk_mutex);
    a->self.is_deadlocked = true;
    pthread_mutex_unlock(&lk_mutex);
    return true;
}

int sqlock_act_for(sqlock_registry *registry, const char *client_id,
                   sqlock_error *err)
{
    struct lk_store *store;
    int rc = lk_store_of(registry, &store, err);

    if (rc < 0)
        return rc;
    if (client_id == NULL || strlen(client_id) != SQLOCK_KEY_SIZE - 1)
        return lk_error(err, SQLOCK_EINVAL,
                        "give the CLIENT_ID of a lease, of 36 characters");
    memcpy(store->acts_for, client_id, SQLOCK_KEY_SIZE);
    store->options.detect_deadlocks = true;
    return 0;
}
