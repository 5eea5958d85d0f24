/*
 * registry.c - the slots of a registry, and who may use its locks; layout,
 * epoch and statistics
 */
#include "lock/note.h"
#include "lock/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/callback.h"
#include "base/check.h"
#include "base/error.h"
#include "base/owner.h"
#include "base/text.h"
#include "sqlock/stats.h"

#define NAME_SHOWN 200 /* bytes of a name in a message */

/* --- slots --- */

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
    memcpy(slot->key, key, sizeof slot->key);
    slot->name = strdup(name);
    if (slot->name != NULL)
        HASH_ADD_STR(registry->slots, key, slot);
    if (slot->name == NULL || slot->hh.tbl == NULL) {
        free_slot(slot);
        return NULL;
    }
    lk_recall_slot(slot);
    return slot;
}

struct lk_slot *lk_slot_of(sqlock_registry *registry, const char *key,
                           const char *name)
{
    struct lk_slot *slot;

    HASH_FIND_STR(registry->slots, key, slot);
    if (slot == NULL)
        slot = new_slot(registry, key, name);
    if (slot != NULL)
        slot->references++;
    return slot;
}

void lk_slot_drop(struct lk_slot *slot)
{
    if (--slot->references > 0)
        return;
    lk_note_slot(slot);
    HASH_DEL(slot->registry->slots, slot);
    free_slot(slot);
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
