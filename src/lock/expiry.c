/*
 * expiry.c - report the watched leases that are over, by a handler that runs at
 * their earliest deadline
 *
 * The handler need not be woken when a renewal makes a deadline later: it runs
 * at the old deadline, and is due again at the new one.
 */
#include "lock/expiry.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/callback.h"
#include "base/clock.h"
#include "base/error.h"
#include "lock/care.h"
#include "lock/registry.h"
#include "sqlock/async.h"
#include "lock/turn.h"

static void raise_lost_fd(sqlock_lock *lock)
{
    uint64_t one = 1;

    if (lock->lost_fd >= 0)
        (void)!write(lock->lost_fd, &one, sizeof one);
}

void lk_lost_fd_clear(sqlock_lock *lock)
{
    uint64_t count;

    if (lock->lost_fd >= 0)
        (void)!read(lock->lost_fd, &count, sizeof count);
}

/* Arguments of on_lost, copied to call it without a mutex. */
struct message {
    sqlock_lock *lock;
    sqlock_lost_fn on_lost;
    void *context;
    int code;
    int64_t token;
};

/* If the watched lease of a lock is over, mark it as lost, wake the first
 * waiter, fill in *message and return true.  Otherwise set *deadline: to the
 * end of the lease, or to LK_NEVER if the lock has another lease or none. */
static bool is_over(sqlock_lock *lock, int64_t *deadline,
                    struct message *message)
{
    struct lk_slot *slot = lock->slot;
    bool is_current;
    bool over;

    pthread_mutex_lock(&slot->mutex);
    is_current = lk_is_granted(slot, lock->expiring.grant);
    over = is_current && lk_remaining_ns(slot) == 0;
    *deadline = is_current ? slot->lease.deadline_boot_ns : LK_NEVER;
    if (over) {
        if (slot->lost == 0)
            (void)lk_lose(slot, SQLOCK_EEXPIRED);
        raise_lost_fd(lock);
        slot->is_to_be_told = false;
        lk_wake_first(slot); /* the first waiter may take the lock now */
        message->lock = lock;
        message->on_lost = slot->asked.on_lost;
        message->context = slot->asked.lost_context;
        message->code = slot->lost;
        message->token = slot->lease.token;
        /* call it once, even if the lease is watched again */
        slot->asked.on_lost = NULL;
    }
    pthread_mutex_unlock(&slot->mutex);
    return over;
}

/* Remove the lock from the list.  The caller holds the expiry's mutex. */
static void unlist(struct lk_expiry *expiry, sqlock_lock *lock)
{
    if (lock->expiring.is_listed)
        DL_DELETE2(expiry->expiring, lock, expiring.previous, expiring.next);
    lock->expiring.is_listed = false;
}

/* Remove the first lease that is over from the list, and fill in *message.
 * Return false if there is none; *soonest is then the next deadline.  The
 * caller holds the expiry's mutex. */
static bool take_one_over(struct lk_expiry *expiry, struct message *message,
                          int64_t *soonest)
{
    sqlock_lock *lock;

    *soonest = LK_NEVER;
    DL_FOREACH2(expiry->expiring, lock, expiring.next)
    {
        int64_t deadline;

        if (is_over(lock, &deadline, message)) {
            unlist(expiry, lock);
            return true;
        }
        *soonest = lk_sooner(*soonest, deadline);
    }
    return false;
}

static void call_on_lost(const struct message *message)
{
    struct lk_callback callback;

    lk_callback_begin(&callback, &message->lock->registry->store,
                      message->lock);
    message->on_lost(message->context, message->lock, message->code);
    lk_callback_end(&callback);
}

/* Report a lease that is over to on_event and on_lost.  The caller holds the
 * expiry's mutex, which is released during the callbacks. */
static void tell(struct lk_expiry *expiry, const struct message *message)
{
    expiry->calling = message->lock;
    pthread_mutex_unlock(&expiry->mutex);
    lk_tell(message->lock, SQLOCK_EVENT_LOST, message->token, message->code);
    if (message->on_lost != NULL)
        call_on_lost(message);
    pthread_mutex_lock(&expiry->mutex);
    expiry->calling = NULL;
    pthread_cond_broadcast(&expiry->idle);
}

/* Run by the service: report one lease, and ask to be run again at once, so
 * that no other handler waits for more than one callback.  If there is none to
 * report, return the next deadline. */
static int64_t tell_of_one(void *owner)
{
    struct lk_expiry *expiry = owner;
    struct message message = {0};
    int64_t next;

    pthread_mutex_lock(&expiry->mutex);
    if (take_one_over(expiry, &message, &next)) {
        tell(expiry, &message);
        next = 0;
    }
    pthread_mutex_unlock(&expiry->mutex);
    return next;
}

void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events)
{
    memset(expiry, 0, sizeof *expiry);
    (void)pthread_mutex_init(&expiry->mutex, NULL);
    (void)pthread_cond_init(&expiry->idle, NULL);
    lk_handler_init(&expiry->handler, events, tell_of_one, NULL, expiry);
}

/* Return whether the lock is still held by that grant.  After its release it
 * must not be put on the list: it might be freed while it is listed. */
static bool is_still_held(sqlock_lock *lock, uint64_t grant)
{
    bool is_held;

    pthread_mutex_lock(&lock->slot->mutex);
    is_held = lk_is_granted(lock->slot, grant);
    pthread_mutex_unlock(&lock->slot->mutex);
    return is_held;
}

int lk_expiry_watch(struct lk_expiry *expiry, sqlock_lock *lock, uint64_t grant,
                    sqlock_error *err)
{
    int rc;

    pthread_mutex_lock(&expiry->mutex);
    rc = lk_handler_start(&expiry->handler, err);
    if (rc == 0 && is_still_held(lock, grant)) {
        lock->expiring.grant = grant;
        if (!lock->expiring.is_listed)
            DL_APPEND2(expiry->expiring, lock, expiring.previous,
                       expiring.next);
        lock->expiring.is_listed = true;
    }
    pthread_mutex_unlock(&expiry->mutex);
    if (rc == 0)
        lk_handler_wake(&expiry->handler);
    return rc;
}

/* The caller holds the expiry's mutex, which is released meanwhile. */
static void await_callback(struct lk_expiry *expiry, const sqlock_lock *lock)
{
    while (expiry->calling == lock)
        pthread_cond_wait(&expiry->idle, &expiry->mutex);
}

void lk_expiry_await_callback(struct lk_expiry *expiry, sqlock_lock *lock)
{
    pthread_mutex_lock(&expiry->mutex);
    await_callback(expiry, lock);
    pthread_mutex_unlock(&expiry->mutex);
}

void lk_expiry_forget(struct lk_expiry *expiry, sqlock_lock *lock,
                      uint64_t grant, bool waits)
{
    pthread_mutex_lock(&expiry->mutex);
    if (waits)
        await_callback(expiry, lock);
    if (grant == 0 || lock->expiring.grant <= grant)
        unlist(expiry, lock);
    pthread_mutex_unlock(&expiry->mutex);
}

/* Return whether the holder acquired the lock by this handle.  The caller holds
 * the slot's mutex. */
static bool is_of(const struct lk_slot *slot, const sqlock_lock *lock)
{
    return lock->owner == 0 || lock->owner == slot->owner;
}

int sqlock_lost_fd(int *fd, sqlock_lock *lock, sqlock_error *err)
{
    struct lk_slot *slot;
    uint64_t grant = 0; /* of the holder's lease; 0: not held */
    int rc;

    if (fd == NULL)
        return lk_error_null(err, "fd");
    rc = lk_lock_ours(lock, err);
    if (rc < 0)
        return rc;
    slot = lock->slot;
    pthread_mutex_lock(&slot->mutex);
    if (lock->lost_fd < 0)
        lock->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *fd = lock->lost_fd;
    if (*fd >= 0 && slot->phase == LK_OCCUPIED && is_of(slot, lock)) {
        grant = slot->grant;
        slot->is_to_be_told = true;
    }
    pthread_mutex_unlock(&slot->mutex);
    if (*fd < 0)
        return lk_error(err, SQLOCK_ERESOURCE, "cannot open an eventfd: %s",
                        strerror(errno));
    /* The descriptor was requested while the lock is held: watch the lease from
     * now on. */
    if (grant != 0)
        return lk_expiry_watch(&lock->registry->expiry, lock, grant, err);
    return 0;
}
