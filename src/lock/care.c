/*
 * care.c - begin and end the renewals and the watch of a held lock (care.h)
 */
#include "lock/care.h"

int lk_begin_care(sqlock_lock *lock, uint64_t grant,
                  const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_slot *slot = lock->slot;
    sqlock_registry *registry = lock->registry;
    int64_t token;
    bool is_current;
    bool is_watched;
    int rc = 0;

    pthread_mutex_lock(&slot->mutex);
    is_current = lk_is_granted(slot, grant);
    token = slot->lease.token;
    if (is_current) {
        lk_lost_fd_clear(lock);
        slot->is_to_be_told = slot->is_to_be_told || lock->lost_fd >= 0;
    }
    is_watched = options->auto_renew || slot->is_to_be_told;
    pthread_mutex_unlock(&slot->mutex);
    if (!is_current) /* over, and the lock may have another holder */
        return 0;
    lk_tell(lock, SQLOCK_EVENT_ACQUIRED, token, 0);
    if (is_watched)
        rc = lk_expiry_watch(&registry->expiry, lock, grant, err);
    else
        lk_expiry_forget(&registry->expiry, lock, grant, false);
    if (rc == 0 && options->auto_renew)
        rc = lk_renewer_add(&registry->renewer, lock, grant, err);
    else
        lk_renewer_remove(&registry->renewer, lock, grant);
    return rc;
}

void lk_end_care(sqlock_lock *lock, uint64_t grant)
{
    lk_renewer_remove(&lock->registry->renewer, lock, grant);
    lk_expiry_forget(&lock->registry->expiry, lock, grant, true);
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
