/*
 * care.c - see care.h
 */
#include "locks/care.h"

/* With the entry's mutex held: what the acquisition asked for is the lock's. */
static void note_options(sqlock_lock *lock,
                         const sqlock_acquire_options *options)
{
    lock->is_fenced = options->fenced;
    lock->max_hold_ms = options->max_hold_ms;
    lock->on_lost = options->on_lost;
    lock->lost_context = options->lost_context;
    lk_lost_fd_clear(lock);
    if (lock->lost_fd >= 0)
        lock->entry->is_to_be_told = true;
}

int lk_begin_care(sqlock_lock *lock, uint64_t grant,
                  const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_entry *entry = lock->entry;
    sqlock_registry *registry = lock->registry;
    bool is_current;
    bool is_watched;
    int rc = 0;

    pthread_mutex_lock(&entry->mutex);
    is_current = entry->phase == LK_OCCUPIED && entry->grant == grant;
    if (is_current)
        note_options(lock, options);
    is_watched = options->auto_renew || entry->is_to_be_told;
    pthread_mutex_unlock(&entry->mutex);
    if (!is_current) /* over, and another's by now */
        return 0;
    if (is_watched)
        rc = lk_expiry_watch(&registry->expiry, lock, grant, err);
    else
        lk_expiry_unwatch(&registry->expiry, lock, grant);
    if (rc == 0 && options->auto_renew)
        rc = lk_renewer_add(&registry->renewer, lock, grant, err);
    else
        lk_renewer_remove(&registry->renewer, lock, grant);
    return rc;
}

void lk_end_care(sqlock_lock *lock, uint64_t grant)
{
    lk_renewer_remove(&lock->registry->renewer, lock, grant);
    lk_expiry_forget(&lock->registry->expiry, lock, grant);
}
