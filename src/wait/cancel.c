/*
 * cancel.c - ending waits from outside.  Wherever the waiter is, it is woken:
 * in the queue of its process, between two looks at the row, or blocked in the
 * database, which is left by breaking that connection off.  A statement that
 * writes is let finish.
 */
#include "wait/cancel.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/error.h"
#include "base/hash.h"
#include "wait/entry.h"

/* Called with the waiter's mutex held. */
static void wake(struct lk_entries *all, struct lk_waiter *waiter)
{
    waiter->is_cancelled = true;
    lk_waiter_wake(waiter);
    if (waiter->waits_on != NULL)
        all->store->db.driver->abort(waiter->waits_on->state);
}

void lk_waiter_cancel(struct lk_entries *all, struct lk_waiter *waiter)
{
    struct lk_entry *entry;

    pthread_mutex_lock(&waiter->mutex);
    wake(all, waiter);
    entry = waiter->queued_at;
    pthread_mutex_unlock(&waiter->mutex);
    if (entry == NULL)
        return;
    pthread_mutex_lock(&entry->mutex);
    if (waiter->is_queued) {
        lk_fifo_unlink(&entry->fifo, waiter);
        lk_fifo_wake(waiter, LK_WAKE_CANCELED);
    }
    pthread_mutex_unlock(&entry->mutex);
}

void lk_concern_add(struct lk_canceller *canceller, struct lk_concern *concern,
                    struct lk_entry *entry, struct lk_waiter *waiter)
{
    pthread_mutex_lock(&canceller->mutex);
    concern->entry = entry;
    concern->waiter = waiter;
    DL_APPEND2(canceller->concerns, concern, previous, next);
    pthread_mutex_unlock(&canceller->mutex);
}

void lk_concern_remove(struct lk_canceller *canceller,
                       struct lk_concern *concern)
{
    pthread_mutex_lock(&canceller->mutex);
    DL_DELETE2(canceller->concerns, concern, previous, next);
    pthread_mutex_unlock(&canceller->mutex);
}

/* Those who wait for several locks, and at another one now. */
static void cancel_concerned(struct lk_entry *entry, uint64_t owner)
{
    struct lk_canceller *canceller = &entry->all->canceller;
    struct lk_concern *concern;

    pthread_mutex_lock(&canceller->mutex);
    DL_FOREACH(canceller->concerns, concern)
    {
        if (concern->entry == entry &&
            (owner == 0 || concern->waiter->owner == owner))
            lk_waiter_cancel(canceller->all, concern->waiter);
    }
    pthread_mutex_unlock(&canceller->mutex);
}

void lk_entry_cancel(struct lk_entry *entry, uint64_t owner)
{
    pthread_mutex_lock(&entry->mutex);
    lk_fifo_wake_all(&entry->fifo, owner, LK_WAKE_CANCELED);
    if (entry->turn != NULL && (owner == 0 || entry->turn->owner == owner)) {
        pthread_mutex_lock(&entry->turn->mutex);
        wake(entry->all, entry->turn);
        pthread_mutex_unlock(&entry->turn->mutex);
    }
    pthread_mutex_unlock(&entry->mutex);
    cancel_concerned(entry, owner);
}

/* --- descriptors --- */

/* A descriptor of the caller's, and the waiters that it cancels. */
struct lk_cancel_fd {
    int fd;
    struct lk_waiter *waiters;
    UT_hash_handle hh;
};

/* Whatever it is ready for ends poll() at once: also that nobody can write to
 * it any more, or that it is closed. */
static bool is_ready(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    return poll(&wait, 1, 0) > 0;
}

/* Called with the mutex held: a descriptor without waiters is watched no
 * more. */
static void forget_unused(struct lk_canceller *canceller,
                          struct lk_cancel_fd *watched)
{
    if (watched->waiters != NULL)
        return;
    lk_handler_unwatch(&canceller->handler, watched->fd);
    HASH_DEL(canceller->watched, watched);
    free(watched);
}

/* Called with the mutex held: the waiter is watched no more. */
static void unlist(struct lk_canceller *canceller, struct lk_waiter *waiter)
{
    struct lk_cancel_fd *watched = waiter->cancel.watched;

    DL_DELETE2(watched->waiters, waiter, cancel.previous, cancel.next);
    waiter->cancel.watched = NULL;
    forget_unused(canceller, watched);
}

/* Called with the mutex held: each waiter is cancelled once. */
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
        lk_waiter_cancel(canceller->all, waiter);
    }
}

/* The handler: a descriptor is ready. */
static void cancel_waiters(void *owner, int fd)
{
    struct lk_canceller *canceller = owner;

    pthread_mutex_lock(&canceller->mutex);
    cancel_all_of(canceller, fd);
    pthread_mutex_unlock(&canceller->mutex);
}

void lk_canceller_init(struct lk_canceller *canceller, struct lk_entries *all)
{
    memset(canceller, 0, sizeof *canceller);
    canceller->all = all;
    (void)pthread_mutex_init(&canceller->mutex, NULL);
    lk_handler_init(&canceller->handler, &all->events, NULL, cancel_waiters,
                    canceller);
}

void lk_canceller_stop(struct lk_canceller *canceller)
{
    lk_handler_stop(&canceller->handler);
}

/* Called with the mutex held: the descriptor's entry, made where there is none.
 */
static struct lk_cancel_fd *entry_of(struct lk_canceller *canceller, int fd)
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

/* Called with the mutex held. */
static int list(struct lk_canceller *canceller, struct lk_waiter *waiter,
                int fd, sqlock_error *err)
{
    struct lk_cancel_fd *watched = entry_of(canceller, fd);
    int rc;

    if (watched == NULL)
        return lk_error_nomem(err);
    /* The number may have been another file's before, which is closed. */
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
    int rc;

    if (fd <= 0)
        return 0;
    if (is_ready(fd)) {
        lk_waiter_cancel(canceller->all, waiter);
        return 0;
    }
    waiter->has_cancel_fd = true;
    pthread_mutex_lock(&canceller->mutex);
    rc = lk_handler_start(&canceller->handler, err);
    if (rc == 0)
        rc = list(canceller, waiter, fd, err);
    pthread_mutex_unlock(&canceller->mutex);
    return rc;
}

void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter)
{
    if (!waiter->has_cancel_fd)
        return;
    pthread_mutex_lock(&canceller->mutex);
    if (waiter->cancel.watched != NULL)
        unlist(canceller, waiter);
    pthread_mutex_unlock(&canceller->mutex);
}
