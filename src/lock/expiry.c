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
#include "lock/hold.h"
#include "lock/part.h"
#include "lock/registry.h"
#include "sqlock/async.h"

static void raise_lost_fd(sqlock_lock *lock)
{
    uint64_t one = 1;

    if (lock->lost_fd >= 0)
        (void)!write(lock->lost_fd, &one, sizeof one);
}

void lk_expiry_add(struct lk_expiry *expiry, struct lk_hold *hold)
{
    if (!hold->expiring.is_listed)
        DL_APPEND2(expiry->expiring, hold, expiring.previous, expiring.next);
    hold->expiring.is_listed = true;
}

void lk_expiry_remove(struct lk_expiry *expiry, struct lk_hold *hold)
{
    if (hold->expiring.is_listed)
        DL_DELETE2(expiry->expiring, hold, expiring.previous, expiring.next);
    hold->expiring.is_listed = false;
}

/* Whose callback this thread runs; NULL: none. */
static _Thread_local struct lk_expiry *own;

bool lk_expiry_is_circle(const struct lk_expiry *expiry,
                         const sqlock_lock *lock)
{
    if (own == NULL || expiry->calling == NULL ||
        (lock != NULL && expiry->calling != lock))
        return false;
    while (expiry != NULL && expiry != own)
        expiry = expiry->awaited;
    return expiry != NULL;
}

void lk_expiry_note_wait(struct lk_expiry *expiry)
{
    if (own != NULL)
        own->awaited = expiry;
}

void lk_expiry_await_callback(struct lk_expiry *expiry, const sqlock_lock *lock)
{
    struct lk_expiry *before = own != NULL ? own->awaited : NULL;

    lk_expiry_note_wait(expiry);
    while (expiry->calling == lock && !lk_expiry_is_circle(expiry, lock))
        pthread_cond_wait(&expiry->idle, &lk_mutex);
    lk_expiry_note_wait(before);
}

/* Arguments of on_lost, copied to call it without the mutex. */
struct message {
    sqlock_lock *lock;
    sqlock_lost_fn on_lost;
    void *context;
    int code;
    int64_t token;
    bool is_event; /* and not the event of this lease a second time */
};

/* The caller of the functions down to tell() holds the mutex. */

/* Mark a lease that is over as lost, wake the first waiter, and return what is
 * to be reported. */
static struct message end(struct lk_hold *hold)
{
    struct message message;

    if (hold->lost == 0)
        (void)lk_lose(hold, SQLOCK_EEXPIRED);
    if (hold->is_to_be_told)
        raise_lost_fd(hold->lock);
    hold->is_to_be_told = false;
    lk_wake_in_time(hold->slot); /* the first may take the lock now */
    message = (struct message){.lock = hold->lock,
                               .on_lost = hold->asked.on_lost,
                               .context = hold->asked.lost_context,
                               .code = hold->lost,
                               .token = hold->lease.answered.token,
                               .is_event = !hold->is_reported};
    /* tell it once, even if the lease is watched again */
    hold->asked.on_lost = NULL;
    hold->is_reported = true;
    return message;
}

/* Return the first watched lease that is over; NULL: none is, and *soonest is
 * the next deadline. */
static struct lk_hold *first_over(const struct lk_expiry *expiry,
                                  int64_t *soonest)
{
    struct lk_hold *hold;

    *soonest = LK_NEVER;
    DL_FOREACH2(expiry->expiring, hold, expiring.next)
    {
        if (lk_remaining_ns(hold) == 0)
            return hold;
        *soonest = lk_sooner(*soonest, hold->lease.believed.until_boot_ns);
    }
    return NULL;
}

static void call_on_lost(const struct message *message)
{
    struct lk_callback callback;

    lk_callback_begin(&callback, &message->lock->registry->store,
                      message->lock);
    message->on_lost(message->context, message->lock, message->code);
    lk_callback_end(&callback);
}

/* Report a lease that is over to on_event and on_lost, without the mutex. */
static void tell(struct lk_expiry *expiry, const struct message *message)
{
    expiry->calling = message->lock;
    own = expiry;
    pthread_mutex_unlock(&lk_mutex);
    if (message->is_event)
        lk_tell(message->lock, SQLOCK_EVENT_LOST, message->token,
                message->code);
    if (message->on_lost != NULL)
        call_on_lost(message);
    pthread_mutex_lock(&lk_mutex);
    own = NULL;
    expiry->calling = NULL;
    pthread_cond_broadcast(&expiry->idle);
}

/* Run by the service: report one lease, and ask to be run again at once, so
 * that no other handler waits for more than one callback.  If there is none to
 * report, return the next deadline. */
static int64_t tell_of_one(void *owner)
{
    struct lk_expiry *expiry = owner;
    struct lk_hold *hold;
    int64_t next;

    pthread_mutex_lock(&lk_mutex);
    hold = first_over(expiry, &next);
    if (hold != NULL) {
        struct message message = end(hold);

        lk_expiry_remove(expiry, hold);
        tell(expiry, &message);
        next = 0;
    }
    pthread_mutex_unlock(&lk_mutex);
    return next;
}

void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events)
{
    memset(expiry, 0, sizeof *expiry);
    (void)pthread_cond_init(&expiry->idle, NULL);
    lk_handler_init(&expiry->handler, events, tell_of_one, NULL, expiry);
}

void lk_expiry_clear(struct lk_expiry *expiry)
{
    (void)pthread_cond_destroy(&expiry->idle);
}

/* Watch the leases that are held by the handle; the caller holds the mutex.
 * Where the last one is over and was set aside, nobody watches it: make the
 * descriptor readable at once.  Return whether there are any to watch. */
static bool watch_all(struct lk_expiry *expiry, sqlock_lock *lock)
{
    struct lk_hold *hold;
    bool is_held = false;

    DL_FOREACH(lock->slot->holds, hold) /* the last one comes first */
    {
        if (hold->lock != lock || hold->is_left_behind)
            continue;
        if (hold->state == LK_HOLD_ASIDE && !is_held)
            raise_lost_fd(lock);
        if (hold->state != LK_HOLD_HELD)
            continue;
        hold->is_to_be_told = true;
        lk_expiry_add(expiry, hold);
        is_held = true;
    }
    return is_held;
}

int sqlock_lost_fd(int *fd, sqlock_lock *lock, sqlock_error *err)
{
    struct lk_expiry *expiry;
    bool is_held;
    int rc;

    if (fd == NULL)
        return lk_error_null(err, "fd");
    rc = lk_lock_ours(lock, err);
    if (rc < 0)
        return rc;
    expiry = &lock->registry->expiry;
    pthread_mutex_lock(&lk_mutex);
    if (lock->lost_fd < 0)
        lock->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *fd = lock->lost_fd;
    is_held = *fd >= 0 && watch_all(expiry, lock);
    pthread_mutex_unlock(&lk_mutex);
    if (*fd < 0)
        return lk_error_limit(err, "cannot open an eventfd", errno);
    if (!is_held)
        return 0;
    rc = lk_handler_start(&expiry->handler, err);
    lk_handler_wake(&expiry->handler);
    return rc;
}
