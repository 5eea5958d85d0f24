/*
 * lock.c - handles: one per LOCK_KEY while anyone refers to it, and what can be
 * asked of them without any I/O.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/holding.h"
#include "lease/lease.h"
#include "locks/overdue.h"

void lk_lock_free(sqlock_lock *lock)
{
    if (lock == NULL)
        return;
    (void)pthread_mutex_destroy(&lock->mutex);
    if (lock->lost_fd >= 0)
        (void)close(lock->lost_fd);
    while (lock->overdue != NULL)
        lk_overdue_end(lock, lock->overdue);
    free(lock->name);
    free(lock);
}

static sqlock_lock *new_lock(sqlock_registry *registry, const char *key,
                             const char *name)
{
    sqlock_lock *lock = calloc(1, sizeof *lock);

    if (lock == NULL)
        return NULL;
    (void)pthread_mutex_init(&lock->mutex, NULL);
    lock->registry = registry;
    lock->store = &registry->store;
    lock->lost_fd = -1;
    memcpy(lock->key, key, sizeof lock->key);
    lock->name = strdup(name);
    if (lock->name == NULL) {
        lk_lock_free(lock);
        return NULL;
    }
    return lock;
}

int sqlock_obtain(sqlock_lock **out, sqlock_registry *registry,
                  const char *name, sqlock_error *err)
{
    char key[SQLOCK_KEY_SIZE] = "";
    struct lk_store *store;
    sqlock_lock *lock;
    int rc;

    if (out == NULL)
        return lk_error(err, SQLOCK_EINVAL, "no place for the lock");
    *out = NULL;
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    rc = sqlock_key_of(key, name, store->options.key_rule, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&registry->mutex);
    HASH_FIND_STR(registry->locks, key, lock);
    if (lock == NULL) {
        lock = new_lock(registry, key, name);
        if (lock != NULL)
            HASH_ADD_STR(registry->locks, key, lock);
        if (lock != NULL && lock->hh.tbl == NULL) {
            lk_lock_free(lock);
            lock = NULL;
        }
    }
    if (lock != NULL)
        lock->references++;
    pthread_mutex_unlock(&registry->mutex);
    if (lock == NULL)
        return lk_error_nomem(err);
    *out = lock;
    return 0;
}

/* By somebody but requests that were abandoned and are not over yet. */
static bool is_in_use(sqlock_lock *lock)
{
    bool in_use;

    pthread_mutex_lock(&lock->mutex);
    in_use = (lock->phase != LK_FREE && !lock->is_left_behind &&
              !(lk_is_overdue(lock) && lk_has_ended(lock->owner))) ||
             lk_is_missed(lock) || lk_fifo_has_waiters(&lock->fifo);
    pthread_mutex_unlock(&lock->mutex);
    return in_use;
}

/* Called with the registry's mutex held. */
static void free_if_unused(sqlock_registry *registry, sqlock_lock *lock)
{
    if (lock->references > 0 || lock->pins > 0)
        return;
    HASH_DEL(registry->locks, lock);
    lk_lock_free(lock);
}

int sqlock_drop(sqlock_lock *lock, sqlock_error *err)
{
    sqlock_registry *registry;
    int rc;

    if (lock == NULL)
        return 0;
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    registry = lock->registry;
    pthread_mutex_lock(&registry->mutex);
    if (lock->references > 1) {
        lock->references--;
    } else if (is_in_use(lock)) {
        rc = lk_error(err, SQLOCK_EINUSE,
                      "the last reference to a lock that is held or waited "
                      "for: release it first");
    } else {
        lock->references = 0;
        free_if_unused(registry, lock);
    }
    pthread_mutex_unlock(&registry->mutex);
    return rc;
}

void lk_lock_unpin(sqlock_registry *registry, sqlock_lock *lock)
{
    lock->pins--;
    free_if_unused(registry, lock);
}

bool lk_is_owned_by(const sqlock_lock *lock, uint64_t owner)
{
    if (lock->phase != LK_OCCUPIED)
        return false;
    return lock->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY ||
           lock->owner == owner;
}

bool lk_is_mine(const sqlock_lock *lock)
{
    return lk_is_owned_by(lock, lk_thread_id());
}

int64_t lk_remaining_ns(const sqlock_lock *lock)
{
    int64_t left = lock->deadline_boot_ns - lk_boottime_ns();

    return lock->lost != 0 || left < 0 ? 0 : left;
}

/* What the caller has of the lock; nothing in a child process. */
static void look(sqlock_lock *lock, uint32_t *count, int64_t *left_ns,
                 int64_t *token)
{
    *count = 0;
    *left_ns = 0;
    *token = 0;
    if (lk_lock_check(lock, NULL) < 0)
        return;
    pthread_mutex_lock(&lock->mutex);
    if (lk_is_mine(lock)) {
        *count = lock->hold_count;
        *left_ns = lk_remaining_ns(lock);
        *token = lock->token;
    } else if (lk_overdue_of(lock, lk_thread_id()) != NULL) {
        *count = lk_overdue_of(lock, lk_thread_id())->hold_count;
    }
    pthread_mutex_unlock(&lock->mutex);
}

bool sqlock_is_held(sqlock_lock *lock)
{
    uint32_t count;
    int64_t left_ns;
    int64_t token;

    look(lock, &count, &left_ns, &token);
    return left_ns > 0;
}

uint32_t sqlock_hold_count(sqlock_lock *lock)
{
    uint32_t count;
    int64_t left_ns;
    int64_t token;

    look(lock, &count, &left_ns, &token);
    return count;
}

int64_t sqlock_remaining_ms(sqlock_lock *lock)
{
    uint32_t count;
    int64_t left_ns;
    int64_t token;

    look(lock, &count, &left_ns, &token);
    return left_ns / LK_NS_PER_MS;
}

int64_t sqlock_token(sqlock_lock *lock)
{
    uint32_t count;
    int64_t left_ns;
    int64_t token;

    look(lock, &count, &left_ns, &token);
    return token;
}

void sqlock_client_id(sqlock_lock *lock, char client_id[SQLOCK_KEY_SIZE])
{
    client_id[0] = '\0';
    if (lk_lock_check(lock, NULL) < 0)
        return;
    pthread_mutex_lock(&lock->mutex);
    if (lk_is_mine(lock))
        memcpy(client_id, lock->client_id, sizeof lock->client_id);
    pthread_mutex_unlock(&lock->mutex);
}

const char *sqlock_name(const sqlock_lock *lock)
{
    return lock != NULL ? lock->name : NULL;
}

const char *sqlock_key(const sqlock_lock *lock)
{
    return lock != NULL ? lock->key : NULL;
}
