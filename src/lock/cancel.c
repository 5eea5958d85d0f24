/*
 * cancel.c - cancel waits, from any thread
 *
 * The waiter is woken wherever it sleeps.  A claim that was sent is still
 * completed.
 */
#include "lock/cancel.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/error.h"
#include "lock/slot.h"

void lk_slot_cancel(struct lk_slot *slot, uint64_t owner)
{
    struct lk_part *part;

    pthread_mutex_lock(&lk_mutex);
    DL_FOREACH2(slot->parts, part, next)
    {
        if (owner == 0 || part->owner == owner)
            lk_waiter_cancel(part->waiter);
    }
    pthread_mutex_unlock(&lk_mutex);
}

/* --- descriptors --- */

/* A descriptor of the application, and the waiters that it cancels. */
struct lk_cancel_fd {
    int fd;
    struct lk_waiter *waiters;
    UT_hash_handle hh;
};

/* Return whether the descriptor is readable, hung up or closed by now. */
static bool is_ready(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    return poll(&wait, 1, 0) > 0;
}

/* Stop watching the descriptor, if it has no waiters left.  The caller holds
 * the mutex. */
static void forget_unused(struct lk_canceller *canceller,
                          struct lk_cancel_fd *watched)
{
    if (watched->waiters != NULL)
        return;
    lk_handler_unwatch(&canceller->handler, watched->fd);
    HASH_DEL(canceller->watched, watched);
    free(watched);
}

/* Take the waiter off its descriptor's list.  The caller holds the mutex. */
static void unlist(struct lk_canceller *canceller, struct lk_waiter *waiter)
{
    struct lk_cancel_fd *watched = waiter->cancel.watched;

    DL_DELETE2(watched->waiters, waiter, cancel.previous, cancel.next);
    waiter->cancel.watched = NULL;
    forget_unused(canceller, watched);
}

/* Cancel each waiter of the descriptor once.  The caller holds the mutex. */
static void cancel_all_of(struct lk_canceller *canceller, int fd)
{
    struct lk_cancel_fd *watched;

    for (;;) {
        struct lk_waiter *waiter;

        HASH_FIND_INT(canceller->watched, &fd, watched);
        if (watched == NULL)
            return;
        waiter = watched->waiters;
        unlist(canceller, waiter);
        lk_waiter_cancel(waiter);
    }
}

/* Handler: cancel the waiters of a descriptor that was ready, if it still is;
 * otherwise go on watching it.  Meanwhile the descriptor may have been closed,
 * and other waiters may watch a new file with the same number. */
static void cancel_waiters(void *owner, int fd)
{
    struct lk_canceller *canceller = owner;
    const struct lk_cancel_fd *watched;

    pthread_mutex_lock(&lk_mutex);
    HASH_FIND_INT(canceller->watched, &fd, watched);
    if (is_ready(fd))
        cancel_all_of(canceller, fd);
    else if (watched != NULL)
        (void)lk_handler_watch(&canceller->handler, fd, NULL);
    pthread_mutex_unlock(&lk_mutex);
}

void lk_canceller_init(struct lk_canceller *canceller,
                       struct lk_service *events)
{
    memset(canceller, 0, sizeof *canceller);
    lk_handler_init(&canceller->handler, events, NULL, cancel_waiters,
                    canceller);
}

/* Find or create the struct of a descriptor; NULL: out of memory.  The caller
 * holds the mutex. */
static struct lk_cancel_fd *watched_of(struct lk_canceller *canceller, int fd)
{
    struct lk_cancel_fd *watched;

    HASH_FIND_INT(canceller->watched, &fd, watched);
    if (watched != NULL)
        return watched;
    watched = calloc(1, sizeof *watched);
    if (watched == NULL)
        return NULL;
    watched->fd = fd;
    HASH_ADD_INT(canceller->watched, fd, watched);
    if (watched->hh.tbl == NULL) {
        free(watched);
        return NULL;
    }
    return watched;
}

/* Add the waiter to its descriptor's list.  Return 0, ENOMEM or ERESOURCE.  The
 * caller holds the mutex. */
static int list(struct lk_canceller *canceller, struct lk_waiter *waiter,
                int fd, sqlock_error *err)
{
    struct lk_cancel_fd *watched = watched_of(canceller, fd);
    int rc;

    if (watched == NULL)
        return lk_error_nomem(err);
    /* Watch the descriptor even if it is watched: its number may have belonged
     * to a file that is closed now. */
    rc = lk_handler_watch(&canceller->handler, fd, err);
    if (rc < 0) {
        forget_unused(canceller, watched);
        return rc;
    }
    waiter->cancel.watched = watched;
    DL_APPEND2(watched->waiters, waiter, cancel.previous, cancel.next);
    return 0;
}

int lk_canceller_watch(struct lk_canceller *canceller, struct lk_waiter *waiter,
                       int fd, sqlock_error *err)
{
    int rc = 0;

    if (fd == 0)
        return 0;
    if (!is_ready(fd))
        rc = lk_handler_start(&canceller->handler, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    if (is_ready(fd)) {
        lk_waiter_cancel(waiter);
    } else {
        waiter->cancel_fd = fd;
        rc = list(canceller, waiter, fd, err);
    }
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter)
{
    if (waiter->cancel_fd == 0)
        return;
    pthread_mutex_lock(&lk_mutex);
    if (waiter->cancel.watched != NULL)
        unlist(canceller, waiter);
    pthread_mutex_unlock(&lk_mutex);
}
