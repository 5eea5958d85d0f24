/*
 * cancel.c - ending waits from outside.  Wherever the waiter is, it is woken:
 * in the queue of its process, between two looks at the row, or blocked in the
 * database, which is left by breaking that connection off.  A statement that
 * writes is let finish.
 */
#include "locks/cancel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/error.h"
#include "base/thread.h"
#include "locks/registry.h"

/* Called with the waiter's mutex held. */
static void wake(sqlock_registry *registry, struct lk_waiter *waiter)
{
    waiter->is_cancelled = true;
    lk_waiter_wake(waiter);
    if (waiter->waits_on != NULL)
        registry->db.driver->abort(waiter->waits_on->state);
}

void lk_waiter_cancel(struct sqlock_registry *registry,
                      struct lk_waiter *waiter)
{
    sqlock_lock *lock;

    pthread_mutex_lock(&waiter->mutex);
    wake(registry, waiter);
    lock = waiter->queued_at;
    pthread_mutex_unlock(&waiter->mutex);
    if (lock == NULL)
        return;
    pthread_mutex_lock(&lock->mutex);
    if (waiter->is_queued) {
        lk_gate_unlink(&lock->gate, waiter);
        lk_gate_call(waiter, LK_CALL_CANCELED);
    }
    pthread_mutex_unlock(&lock->mutex);
}

int sqlock_cancel(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lock->mutex);
    lk_gate_call_all(&lock->gate, LK_CALL_CANCELED);
    if (lock->turn != NULL) {
        pthread_mutex_lock(&lock->turn->mutex);
        wake(lock->registry, lock->turn);
        pthread_mutex_unlock(&lock->turn->mutex);
    }
    pthread_mutex_unlock(&lock->mutex);
    return 0;
}

/* --- descriptors --- */

void lk_canceller_init(struct lk_canceller *canceller,
                       struct sqlock_registry *registry)
{
    memset(canceller, 0, sizeof *canceller);
    canceller->registry = registry;
    canceller->poke = -1;
    (void)pthread_mutex_init(&canceller->mutex, NULL);
}

/* Whatever it is ready for ends poll() at once: also that nobody can write to
 * it any more, or that it is closed. */
static bool is_ready(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    return poll(&wait, 1, 0) > 0;
}

/* Called with the mutex held.  Each is cancelled once. */
static void cancel_the_ready(struct lk_canceller *canceller)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    DL_FOREACH_SAFE2(canceller->watched, waiter, next, cancel.next)
    {
        if (!is_ready(waiter->cancel.fd))
            continue;
        DL_DELETE2(canceller->watched, waiter, cancel.previous, cancel.next);
        canceller->count--;
        waiter->cancel.fd = 0;
        lk_waiter_cancel(canceller->registry, waiter);
    }
}

/* Called with the mutex held: what to poll, the poke first.  To be freed. */
static struct pollfd *collect(const struct lk_canceller *canceller,
                              nfds_t *count)
{
    struct pollfd *waits = calloc(canceller->count + 1, sizeof *waits);
    const struct lk_waiter *waiter;

    *count = 0;
    if (waits == NULL)
        return NULL;
    waits[(*count)++] =
        (struct pollfd){.fd = canceller->poke, .events = POLLIN};
    DL_FOREACH2(canceller->watched, waiter, cancel.next)
    waits[(*count)++] =
        (struct pollfd){.fd = waiter->cancel.fd, .events = POLLIN};
    return waits;
}

static void *watch_descriptors(void *argument)
{
    struct lk_canceller *canceller = argument;

    pthread_mutex_lock(&canceller->mutex);
    while (!canceller->is_stopping) {
        struct pollfd *waits;
        nfds_t count;
        uint64_t drained;

        cancel_the_ready(canceller);
        waits = collect(canceller, &count);
        pthread_mutex_unlock(&canceller->mutex);
        /* Out of memory: look again a little later. */
        (void)poll(waits, count, waits != NULL ? -1 : 10);
        (void)!read(canceller->poke, &drained, sizeof drained);
        free(waits);
        pthread_mutex_lock(&canceller->mutex);
    }
    pthread_mutex_unlock(&canceller->mutex);
    return NULL;
}

/* Called with the mutex held. */
static int start(struct lk_canceller *canceller, sqlock_error *err)
{
    int rc;

    canceller->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (canceller->poke < 0)
        return lk_error(err, SQLOCK_ERESOURCE, "cannot open an eventfd: %s",
                        strerror(errno));
    rc = lk_thread_start(&canceller->thread, watch_descriptors, canceller, err);
    canceller->is_running = rc == 0;
    if (rc < 0)
        (void)close(canceller->poke);
    return rc;
}

static void poke(const struct lk_canceller *canceller)
{
    uint64_t one = 1;

    (void)!write(canceller->poke, &one, sizeof one);
}

void lk_canceller_stop(struct lk_canceller *canceller)
{
    bool was_running;

    pthread_mutex_lock(&canceller->mutex);
    was_running = canceller->is_running;
    canceller->is_running = false;
    canceller->is_stopping = true;
    pthread_mutex_unlock(&canceller->mutex);
    if (was_running) {
        poke(canceller);
        pthread_join(canceller->thread, NULL);
        (void)close(canceller->poke);
    }
}

int lk_canceller_watch(struct lk_canceller *canceller, struct lk_waiter *waiter,
                       int fd, sqlock_error *err)
{
    int rc = 0;

    if (fd <= 0)
        return 0;
    waiter->has_cancel_fd = true;
    pthread_mutex_lock(&canceller->mutex);
    if (!canceller->is_running)
        rc = start(canceller, err);
    if (rc == 0) {
        waiter->cancel.fd = fd;
        DL_APPEND2(canceller->watched, waiter, cancel.previous, cancel.next);
        canceller->count++;
        cancel_the_ready(canceller);
        poke(canceller);
    }
    pthread_mutex_unlock(&canceller->mutex);
    return rc;
}

void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter)
{
    if (!waiter->has_cancel_fd)
        return;
    pthread_mutex_lock(&canceller->mutex);
    if (waiter->cancel.fd > 0) {
        DL_DELETE2(canceller->watched, waiter, cancel.previous, cancel.next);
        canceller->count--;
        waiter->cancel.fd = 0;
        poke(canceller);
    }
    pthread_mutex_unlock(&canceller->mutex);
}
