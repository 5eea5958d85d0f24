/*
 * open.c - open a registry, and close it, releasing what is still held
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/callback.h"
#include "base/error.h"
#include "base/owner.h"
#include "lease/batch.h"
#include "lease/open.h"
#include "lock/hold.h"
#include "lock/registry.h"
#include "lock/release.h"

/* Stop renewer, expiry, poller and canceller, but neither the store's
 * background service nor the executor.  May be called again. */
static void stop_services(sqlock_registry *registry)
{
    lk_service_stop(&registry->renewer.service);
    lk_handler_stop(&registry->expiry.handler);
    lk_handler_stop(&registry->poller.handler); /* refers to slots */
    lk_handler_stop(&registry->canceller.handler);
    lk_service_stop(&registry->events);
    lk_bell_stop(&registry->bell);
}

static void free_registry(sqlock_registry *registry)
{
    if (registry == NULL)
        return;
    stop_services(registry);
    lk_expiry_clear(&registry->expiry);
    lk_store_clear(&registry->store);
    lk_executor_stop(&registry->executor);
    lk_slots_forget(registry);
    free(registry);
}

int sqlock_registry_open(sqlock_registry **out, const char *url,
                         const sqlock_options *options, sqlock_error *err)
{
    sqlock_registry *registry;
    sqlock_error own = {0};
    int rc;

    if (out == NULL)
        return lk_error_null(err, "registry");
    *out = NULL;
    registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return lk_error_nomem(err);
    lk_store_init(&registry->store);
    lk_service_init(&registry->events);
    lk_bell_init(&registry->bell, registry);
    lk_poller_init(&registry->poller, registry);
    lk_canceller_init(&registry->canceller, &registry->events);
    lk_expiry_init(&registry->expiry, &registry->events);
    lk_renewer_init(&registry->renewer, registry);
    lk_executor_init(&registry->executor);
    rc = lk_store_open(&registry->store, url, options, &own);
    if (rc < 0) {
        free_registry(registry);
        return lk_error_pass(err, &own, rc);
    }
    if (registry->store.options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        registry->owner = lk_owner_id();
    *out = registry;
    return 0;
}

/* Collect the leases that have their locks alone, from *next on, as many as fit
 * into one statement.  *next becomes the first slot that was not looked at, or
 * NULL. */
static void collect_held(struct lk_batch *batch, struct lk_slot **next)
{
    struct lk_slot *slot = *next;

    batch->count = 0;
    for (; slot != NULL && batch->count < LK_BATCH_MAX; slot = slot->hh.next) {
        struct lk_hold *hold = lk_present(slot);

        if (hold != NULL)
            batch->items[batch->count++] =
                (struct lk_item){.lease = hold->lease, .owner = hold};
    }
    *next = slot;
}

/* Return what the release of the hold comes to, also if it was lost before. */
static int outcome(const struct lk_hold *hold, int rc, sqlock_error *err)
{
    rc = lk_release_outcome(hold, rc);
    if (rc != 0 && err != NULL) {
        (void)lk_error(err, rc, "%s", sqlock_strerror(rc));
        lk_error_name(err, hold->slot);
    }
    return rc;
}

/* Release the leases, whose holds own the items.  Return the first error. */
static int release_batch(sqlock_registry *registry, struct lk_batch *batch,
                         sqlock_error *err)
{
    int rc;

    lk_batch_sort(batch);
    batch->deadline_ns = lk_store_deadline(&registry->store);
    rc = lk_batch_release(&registry->store, batch, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++)
        rc = outcome(batch->items[i].owner, batch->items[i].rc, err);
    return rc;
}

/* Release the leases that have their locks alone, and return the first
 * error. */
static int release_alone(sqlock_registry *registry, sqlock_error *err)
{
    size_t room = HASH_COUNT(registry->slots);
    struct lk_slot *next = registry->slots;
    struct lk_batch batch = {0};
    int result = 0;

    if (room == 0)
        return 0;
    if (room > LK_BATCH_MAX)
        room = LK_BATCH_MAX;
    batch.items = calloc(room, sizeof *batch.items);
    if (batch.items == NULL)
        return lk_error_nomem(err);
    while (next != NULL) {
        int rc = 0;

        collect_held(&batch, &next);
        if (batch.count > 0)
            rc = release_batch(registry, &batch, result == 0 ? err : NULL);
        if (result == 0)
            result = rc;
    }
    free(batch.items);
    return result;
}

/* Return whether the lease was set aside for a holder that may come back. */
static bool is_aside(const struct lk_hold *hold)
{
    return hold->state == LK_HOLD_ASIDE && !hold->is_left_behind &&
           !lk_has_ended(hold->owner);
}

/* Return whether a reader behind the hold has the same share. */
static bool is_left_to_others(const struct lk_hold *hold)
{
    const struct lk_hold *other = hold->next;

    while (other != NULL && !lk_is_same_lease(other, hold))
        other = other->next;
    return other != NULL;
}

/* Release the shares, and the leases that were set aside, one by one.  After an
 * outage the latter are over without being released.  Return `result`, or if
 * that is 0, the first error. */
static int release_others(sqlock_registry *registry, int result,
                          sqlock_error *err)
{
    for (struct lk_slot *slot = registry->slots; slot != NULL;
         slot = slot->hh.next) {
        struct lk_hold *hold;

        DL_FOREACH(slot->holds, hold)
        {
            struct lk_batch batch;
            struct lk_item item;
            int rc;

            if (hold->state == LK_HOLD_ASIDE
                    ? !is_aside(hold) || lk_is_outage(result)
                    : !lk_is_share(hold))
                continue;
            lk_batch_of_one(&batch, &item, &hold->lease, 0);
            item.owner = hold;
            if (is_left_to_others(hold))
                rc = outcome(hold, 0, result == 0 ? err : NULL);
            else
                rc = release_batch(registry, &batch, result == 0 ? err : NULL);
            if (result == 0)
                result = rc;
        }
    }
    return result;
}

/* Before a callback of another registry waits for those of this one, note that,
 * unless one of these waits for it: return 0 or EINUSE. */
static int begin_to_wait(sqlock_registry *registry, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lk_mutex);
    if (lk_expiry_is_circle(&registry->expiry, NULL))
        rc = lk_error(err, SQLOCK_EINUSE,
                      "a callback of this registry waits until the one that "
                      "runs in this thread has returned: close the registry "
                      "after that");
    else
        lk_expiry_note_wait(&registry->expiry);
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int sqlock_registry_close(sqlock_registry *registry, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc;

    if (registry == NULL)
        return 0;
    rc = lk_store_ours(&registry->store, err);
    if (rc == 0 && lk_callback_of(&registry->store))
        rc = lk_error(err, SQLOCK_EINUSE,
                      "a callback of this registry runs in this thread: close "
                      "the registry after it has returned, or in another one");
    if (rc < 0)
        return rc;
    if (atomic_load(&registry->store.users) > 0)
        return lk_error(err, SQLOCK_EINUSE,
                        "the registry has open transactions or stocks: end "
                        "those first");
    rc = begin_to_wait(registry, err);
    if (rc < 0)
        return rc;
    atomic_store(&registry->store.closing_since_ns, sqlock_monotonic_ns());
    /* while the services that requests need still run */
    while (lk_requests_abandon_one(registry))
        ;
    lk_executor_stop(&registry->executor);
    stop_services(registry);
    rc = release_others(registry, release_alone(registry, &own), &own);
    pthread_mutex_lock(&lk_mutex);
    while (registry->locks != NULL)
        lk_lock_free(registry->locks);
    lk_expiry_note_wait(NULL);
    pthread_mutex_unlock(&lk_mutex);
    free_registry(registry);
    return lk_error_pass(err, &own, rc);
}
