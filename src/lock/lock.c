/*
 * lock.c - make and drop handles of locks, and answer queries that need no I/O
 *
 * With ownership by thread or by registry, a name has one handle as long as it
 * has references.  With ownership by handle, each sqlock_obtain() makes a
 * handle, which is an owner of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "lease/bell.h"
#include "lock/care.h"
#include "lock/hold.h"
#include "lock/registry.h"
#include "sqlock/lease.h"

/* The caller of the functions down to sqlock_obtain() holds the mutex. */

/* End the holds that the handle's owners have left: of a thread that has ended,
 * or of a registry that is being closed. */
static void end_holds(const sqlock_lock *lock)
{
    struct lk_hold *hold;
    struct lk_hold *next;

    DL_FOREACH_SAFE(lock->slot->holds, hold, next)
    {
        if (hold->lock == lock)
            lk_hold_end(hold);
    }
}

void lk_lock_free(sqlock_lock *lock)
{
    DL_DELETE2(lock->registry->locks, lock, previous, next);
    if (lock->hh.tbl != NULL)
        HASH_DEL(lock->registry->by_key, lock);
    end_holds(lock);
    lk_slot_drop(lock->slot);
    if (lock->lost_fd >= 0)
        (void)close(lock->lost_fd);
    free(lock);
}

/* Create a handle without references.  Its slot copies key and name.  Return
 * NULL when out of memory. */
static sqlock_lock *new_lock(sqlock_registry *registry, const char *key,
                             const char *name)
{
    sqlock_lock *lock = calloc(1, sizeof *lock);

    if (lock == NULL)
        return NULL;
    lock->registry = registry;
    lock->owner = lk_is_shared(registry) ? registry->owner : lk_owner_id();
    lock->lost_fd = -1;
    lock->slot = lk_slot_of(registry, key, name);
    if (lock->slot == NULL) {
        free(lock);
        return NULL;
    }
    DL_APPEND2(registry->locks, lock, previous, next);
    if (lk_is_shared(registry)) {
        HASH_ADD_KEYPTR(hh, registry->by_key, lock->slot->key,
                        strlen(lock->slot->key), lock);
        if (lock->hh.tbl == NULL) {
            lk_lock_free(lock);
            return NULL;
        }
    }
    return lock;
}

int sqlock_obtain(sqlock_lock **out, sqlock_registry *registry,
                  const char *name, sqlock_error *err)
{
    char key[SQLOCK_KEY_SIZE] = "";
    struct lk_store *store;
    sqlock_lock *lock = NULL;
    int rc;

    if (out == NULL)
        return lk_error_null(err, "lock");
    *out = NULL;
    rc = lk_store_key(registry, name, &store, key, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    if (lk_is_shared(registry))
        HASH_FIND_STR(registry->by_key, key, lock);
    if (lock == NULL)
        lock = new_lock(registry, key, name);
    if (lock != NULL)
        lock->references++;
    pthread_mutex_unlock(&lk_mutex);
    if (lock == NULL)
        return lk_error_nomem(err);
    *out = lock;
    return 0;
}

void lk_lock_unpin(sqlock_lock *lock)
{
    if (--lock->pins == 0 && lock->references == 0)
        lk_lock_free(lock);
}

static bool is_one_of(uint64_t wanted, uint64_t owner)
{
    return wanted == 0 || wanted == owner;
}

/* Return whether an acquisition of that owner (0: any) is under way. */
static bool is_wanted(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_part *part;

    DL_FOREACH2(slot->parts, part, next)
    {
        if (is_one_of(owner, part->owner) && !part->waiter->is_abandoned)
            return true;
    }
    return false;
}

/* Return whether that owner (0: any) holds or releases the lock, or may come
 * back to release a lease that is over: a thread that has ended does not. */
static bool is_kept(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_hold *hold;

    DL_FOREACH(slot->holds, hold)
    {
        bool is_present = hold->state != LK_HOLD_ASIDE;

        if (hold->is_left_behind || !is_one_of(owner, hold->owner) ||
            (is_present && slot->turn != NULL && !lk_is_share(hold)))
            continue;
        if (!lk_has_ended(hold->owner) ||
            (is_present && !lk_hold_is_overdue(hold)))
            return true;
    }
    return false;
}

/* Return whether that owner (0: any) holds the lock, is acquiring or releasing
 * it, or may still release a lease of it that is over.  Abandoned requests do
 * not count. */
static bool is_in_use(const struct lk_slot *slot, uint64_t owner)
{
    return is_wanted(slot, owner) || is_kept(slot, owner);
}

/* Take the bell's session from the lease of a thread that has ended: one at
 * most, since the next claim of the lock gives up that of the last one. */
static struct lk_place take_place(const sqlock_lock *lock)
{
    struct lk_place place = {0};
    struct lk_hold *hold;

    DL_FOREACH(lock->slot->holds, hold)
    {
        if (hold->lock != lock || place.connection != NULL ||
            (hold->state != LK_HOLD_ASIDE && !lk_hold_is_overdue(hold)))
            continue;
        place = hold->lease.answered.place;
        hold->lease.answered.place = (struct lk_place){0};
    }
    return place;
}

/* Free a lock whose last reference was dropped: take it out of the table, and
 * end renewing and watching.  The caller holds the mutex, which is released
 * while a callback runs. */
static void retire(sqlock_registry *registry, sqlock_lock *lock)
{
    struct lk_hold *hold;

    lock->references = 0;
    if (lock->hh.tbl != NULL)
        HASH_DEL(registry->by_key, lock);
    lock->hh.tbl = NULL;
    lock->pins++;
    DL_FOREACH(lock->slot->holds, hold)
    {
        if (hold->lock == lock)
            lk_care_stop(hold);
    }
    lk_expiry_await_callback(&registry->expiry, lock);
    lk_lock_unpin(lock);
}

int sqlock_drop(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_place place = {0};
    sqlock_registry *registry;
    int rc;

    if (lock == NULL)
        return 0;
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    registry = lock->registry;
    pthread_mutex_lock(&lk_mutex);
    if (lock->references > 1) {
        lock->references--;
    } else if (is_in_use(lock->slot, lock->owner)) {
        rc = lk_error(err, SQLOCK_EINUSE,
                      "this is the last reference to a lock that is held or "
                      "waited for: release it first");
    } else if (lk_expiry_is_circle(&registry->expiry, lock)) {
        rc = lk_error(err, SQLOCK_EINUSE,
                      "on_lost of this lock waits until the callback that runs "
                      "in this thread has returned: drop the lock after that");
    } else {
        place = take_place(lock);
        retire(registry, lock);
    }
    pthread_mutex_unlock(&lk_mutex);
    /* The bell ends with its session, and the call waits for no server. */
    (void)lk_place_end(&registry->store, &place, false, true);
    return rc;
}

static struct lk_view look(const sqlock_lock *lock, bool by_id)
{
    struct lk_view view = {.count = 0};
    struct lk_hold *hold;

    if (lk_lock_ours(lock, NULL) < 0)
        return view;
    pthread_mutex_lock(&lk_mutex);
    hold = lk_hold_of(lock->slot, lk_caller(lock));
    if (hold != NULL) {
        view.left_ns = lk_remaining_ns(hold);
        view.token = hold->lease.answered.token;
        view.is_joined = lk_is_joined(hold);
        hold->is_closed = hold->is_closed || (by_id && !view.is_joined);
        if (view.left_ns > 0)
            memcpy(view.client_id, hold->lease.client_id,
                   sizeof view.client_id);
    }
    view.count = lk_hold_count(lock->slot, lk_caller(lock));
    pthread_mutex_unlock(&lk_mutex);
    return view;
}

struct lk_view lk_lock_look(const sqlock_lock *lock)
{
    return look(lock, false);
}

struct lk_view lk_lock_name(const sqlock_lock *lock)
{
    return look(lock, true);
}

bool sqlock_is_held(sqlock_lock *lock)
{
    return lk_lock_look(lock).left_ns > 0;
}

uint32_t sqlock_hold_count(sqlock_lock *lock)
{
    return lk_lock_look(lock).count;
}

int64_t sqlock_remaining_ms(sqlock_lock *lock)
{
    return lk_lock_look(lock).left_ns / LK_NS_PER_MS;
}

int64_t sqlock_token(sqlock_lock *lock)
{
    return lk_lock_look(lock).token;
}

void sqlock_client_id(sqlock_lock *lock, char client_id[SQLOCK_KEY_SIZE])
{
    if (client_id != NULL)
        memcpy(client_id, lk_lock_look(lock).client_id, SQLOCK_KEY_SIZE);
}

void sqlock_set_actor(sqlock_lock *lock, uint64_t actor)
{
    struct lk_hold *hold;

    if (lk_lock_ours(lock, NULL) < 0)
        return;
    pthread_mutex_lock(&lk_mutex);
    hold = lk_hold_of(lock->slot, lk_caller(lock));
    if (hold != NULL)
        hold->asked.actor = actor;
    pthread_mutex_unlock(&lk_mutex);
}

const char *sqlock_name(const sqlock_lock *lock)
{
    return lock != NULL ? lock->slot->name : NULL;
}

const char *sqlock_key(const sqlock_lock *lock)
{
    return lock != NULL ? lock->slot->key : NULL;
}
