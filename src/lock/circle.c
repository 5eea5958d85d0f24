/*
 * circle.c - look for circles of waits through other processes (circle.h)
 */
#include "lock/circle.h"

#include <utlist.h>

#include "base/clock.h"
#include "lease/waits.h"
#include "lock/acquisition.h"
#include "lock/hold.h"
#include "lock/registry.h"

#define LOOK_NS (700 * LK_NS_PER_MS)

void lk_circle_begin(struct lk_acquisition *a)
{
    const sqlock_options *options = &a->store->options;
    bool is_wanted = (options->detect_deadlocks || options->acts_for != NULL) &&
                     a->store->statements[SQLOCK_SQL_WAITS].text != NULL &&
                     a->self.wait_ms != 0;

    a->circle.look_ns = is_wanted ? a->began_ns + LOOK_NS : LK_NEVER;
}

/* Return the mark of whoever has the lease.  A lease that a request got keeps
 * the request's mark in the table when a thread has finished that.  A
 * registry's lease has a mark of nobody. */
static uint32_t mark_of_holder(const struct lk_hold *hold)
{
    const struct lk_store *store = hold->slot->store;

    return store->options.ownership == SQLOCK_OWNED_BY_REGISTRY
               ? lk_client_id_mark(hold->lease.client_id)
               : lk_store_mark(store, hold->owner);
}

/* Return the mark of whoever has the lock, or the turn to get it; of `other`
 * if nobody has.  The caller of the functions down to rename_held() holds the
 * mutex. */
static uint32_t mark_of(const struct lk_slot *slot, uint32_t other)
{
    const struct lk_hold *hold = lk_present(slot);

    if (slot->turn != NULL)
        return lk_store_mark(slot->store, slot->turn->owner);
    return hold != NULL ? mark_of_holder(hold) : other;
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
            uint32_t waiter = lk_store_mark(&registry->store, part->owner);

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

/* Give the leases that requests got for the owner its own mark.  Return whether
 * others wait for any of them. */
static bool rename_held(const sqlock_registry *registry, uint64_t owner,
                        struct lk_waits *waits)
{
    bool is_found = false;

    for (const struct lk_slot *slot = registry->slots; slot != NULL;
         slot = slot->hh.next) {
        const struct lk_hold *hold = lk_hold_of(slot, owner);

        if (hold != NULL &&
            rename_mark(waits, lk_client_id_mark(hold->lease.client_id),
                        mark_of_holder(hold)))
            is_found = true;
    }
    return is_found;
}

/* Return whether the owner holds a lock: otherwise nobody waits for it. */
static bool holds(const sqlock_registry *registry, uint64_t owner)
{
    bool is_holder = registry->store.options.acts_for != NULL;

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

/* Return whether the owner is in a circle that no other process can see, since
 * only this one knows who has finished a request.  Then the owner is told
 * whether or not it began to wait last. */
static bool is_seen_here_alone(const sqlock_registry *registry, uint64_t owner,
                               struct lk_waits *waits)
{
    uint32_t self = lk_store_mark(&registry->store, owner);
    bool is_renamed;

    forget_order(waits);
    if (lk_waits_are_closed(waits, self))
        return false;
    pthread_mutex_lock(&lk_mutex);
    is_renamed = rename_held(registry, owner, waits);
    pthread_mutex_unlock(&lk_mutex);
    return is_renamed && lk_waits_are_closed(waits, self);
}

/* Return whether the wait of the part would never end, as far as can be seen
 * now. */
static bool is_seen(const struct lk_part *part)
{
    const sqlock_registry *registry = part->slot->registry;
    struct lk_store *store = part->slot->store;
    struct lk_waits waits = {.all = NULL};
    bool is_complete;
    bool is_closed;

    if (!holds(registry, part->owner))
        return false;
    is_complete = lk_waits_read(store, &waits, NULL) == 0;
    pthread_mutex_lock(&lk_mutex);
    is_complete = is_complete && add_own(registry, &waits);
    pthread_mutex_unlock(&lk_mutex);
    is_closed =
        is_complete &&
        (lk_waits_are_closed(&waits, lk_store_mark(store, part->owner)) ||
         is_seen_here_alone(registry, part->owner, &waits));
    lk_waits_clear(&waits);
    return is_closed;
}

void lk_circle_look(struct lk_acquisition *a)
{
    bool was_seen = a->circle.was_seen;

    if (sqlock_monotonic_ns() < a->circle.look_ns)
        return;
    a->circle.was_seen = is_seen(a->first);
    a->circle.look_ns = sqlock_monotonic_ns() + LOOK_NS;
    if (!was_seen || !a->circle.was_seen)
        return;
    pthread_mutex_lock(&lk_mutex);
    a->self.is_deadlocked = true;
    pthread_mutex_unlock(&lk_mutex);
}
