/*
 * registry.c - the slots of a registry, and who may use its locks; layout,
 * epoch and statistics
 */
#include "lock/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/callback.h"
#include "base/check.h"
#include "base/error.h"
#include "base/owner.h"
#include "base/text.h"
#include "sqlock/stats.h"

#define NAME_SHOWN 200 /* bytes of a name in a message */

/* --- slots --- */

/* So many idle slots are kept, of some 700 bytes each. */
#define IDLE_MAX 1024

static void free_slot(struct lk_slot *slot)
{
    assert(slot->session == NULL);
    free(slot->name);
    free(slot->peers.queue);
    free(slot);
}

static struct lk_slot *new_slot(sqlock_registry *registry, const char *key,
                                const char *name)
{
    struct lk_slot *slot = calloc(1, sizeof *slot);

    if (slot == NULL)
        return NULL;
    slot->registry = registry;
    slot->store = &registry->store;
    slot->place = -1;
    memcpy(slot->key, key, sizeof slot->key);
    slot->name = strdup(name);
    if (slot->name != NULL)
        HASH_ADD_STR(registry->slots, key, slot);
    if (slot->name == NULL || slot->hh.tbl == NULL) {
        free_slot(slot);
        return NULL;
    }
    return slot;
}

static void leave_idle(struct lk_slot *slot)
{
    DL_DELETE2(slot->registry->idle, slot, previous, next);
    slot->registry->idle_count--;
}

static void end_slot(struct lk_slot *slot)
{
    HASH_DEL(slot->registry->slots, slot);
    free_slot(slot);
}

struct lk_slot *lk_slot_of(sqlock_registry *registry, const char *key,
                           const char *name)
{
    struct lk_slot *slot;

    HASH_FIND_STR(registry->slots, key, slot);
    if (slot != NULL && slot->references == 0 &&
        strcmp(slot->name, name) != 0) {
        leave_idle(slot);
        end_slot(slot);
        slot = NULL;
    }
    if (slot == NULL)
        slot = new_slot(registry, key, name);
    else if (slot->references == 0)
        leave_idle(slot);
    if (slot != NULL)
        slot->references++;
    return slot;
}

void lk_slot_drop(struct lk_slot *slot)
{
    sqlock_registry *registry = slot->registry;
    struct lk_slot *oldest;

    if (--slot->references > 0)
        return;
    if (!slot->is_unqueued && !slot->is_contended && slot->peers.due_ns == 0) {
        end_slot(slot);
        return;
    }
    DL_APPEND2(registry->idle, slot, previous, next);
    if (++registry->idle_count <= IDLE_MAX)
        return;
    oldest = registry->idle;
    leave_idle(oldest);
    end_slot(oldest);
}

void lk_slots_forget(sqlock_registry *registry)
{
    struct lk_slot *slot;
    struct lk_slot *next;

    HASH_ITER(hh, registry->slots, slot, next)
    {
        end_slot(slot);
    }
}

/* --- handles --- */

int lk_lock_ours(const sqlock_lock *lock, sqlock_error *err)
{
    if (lock == NULL)
        return lk_error_null(err, "lock");
    return lk_store_ours(&lock->registry->store, err);
}

int lk_lock_check(const sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_ours(lock, err);

    if (rc == 0)
        rc = lk_store_check(&lock->registry->store, err);
    if (rc == 0 && lk_callback_of_lock(lock))
        rc = lk_error(err, SQLOCK_EINUSE,
                      "on_lost of this lock runs in this thread: use the lock "
                      "after it has returned");
    return rc;
}

uint64_t lk_caller(const sqlock_lock *lock)
{
    return lock->owner != 0 ? lock->owner : lk_thread_id();
}

bool lk_is_shared(const sqlock_registry *registry)
{
    return registry->store.options.ownership != SQLOCK_OWNED_BY_HANDLE;
}

void lk_error_name(sqlock_error *err, const struct lk_slot *slot)
{
    const sqlock_error told = *err;

    (void)sqlock_error_set(
        err, told.code, told.native, told.sqlstate, "%.*s: %s",
        (int)lk_utf8_prefix(slot->name, NAME_SHOWN), slot->name, told.message);
}

void lk_tell(sqlock_lock *lock, sqlock_event_kind kind, int64_t token, int code)
{
    const struct lk_slot *slot = lock->slot;
    const struct lk_store *store = &lock->registry->store;
    const sqlock_event event = {.kind = kind,
                                .lock = slot->name,
                                .key = slot->key,
                                .token = token,
                                .code = code};

    if (code < 0)
        lk_store_tell(store, &event, "the lock %s: %s", slot->name,
                      sqlock_strerror(code));
    else
        lk_store_tell(store, &event, "the lock %s was %s", slot->name,
                      kind == SQLOCK_EVENT_ACQUIRED ? "acquired" : "released");
}

/* --- the calls --- */

sqlock_layout sqlock_registry_layout(const sqlock_registry *registry)
{
    return registry != NULL ? registry->store.layout : SQLOCK_LAYOUT_SQLOCK;
}

uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                               char epoch[SQLOCK_EPOCH_SIZE])
{
    if (epoch == NULL)
        return 0;
    *epoch = '\0';
    if (registry == NULL || lk_store_ours(&registry->store, NULL) < 0)
        return 0;
    return lk_epoch_last(&registry->store.db.epoch, epoch);
}

int sqlock_registry_stats(sqlock_registry *registry, sqlock_stats *out,
                          sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_stats", "SQLOCK_STATS_INIT",
                                          sizeof *out};
    sqlock_stats all = SQLOCK_STATS_INIT;
    int rc = lk_sized_check(&sized, out, err);

    if (rc < 0)
        return rc;
    if (registry == NULL)
        return lk_error_null(err, "registry");
    rc = lk_store_ours(&registry->store, err);
    if (rc < 0)
        return rc;
    lk_stats_read(&registry->store.db.stats, &all);
    lk_sized_write(out, &all);
    return 0;
}
