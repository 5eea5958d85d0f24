/*
 * waiter.c - who wants a lock: asleep until woken, told or cancelled.
 */
#include "wait/waiter.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "sqlock_driver.h"

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options)
{
    memset(waiter, 0, sizeof *waiter);
    lk_condition_init(&waiter->fifo_woken);
    lk_condition_init(&waiter->woken);
    (void)pthread_mutex_init(&waiter->mutex, NULL);
    waiter->wait_ms = wait_ms;
    waiter->deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    waiter->options = options;
}

void lk_waiter_clear(struct lk_waiter *waiter)
{
    (void)pthread_mutex_destroy(&waiter->mutex);
    (void)pthread_cond_destroy(&waiter->woken);
    (void)pthread_cond_destroy(&waiter->fifo_woken);
}

void lk_waiter_wake(struct lk_waiter *waiter)
{
    pthread_cond_signal(&waiter->woken);
    if (waiter->on_wake != NULL)
        waiter->on_wake(waiter);
}

int lk_waiter_wait(struct lk_waiter *self, int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (until_ns == LK_NEVER)
        return pthread_cond_wait(&self->woken, &self->mutex);
    return pthread_cond_timedwait(&self->woken, &self->mutex, &at);
}

int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns, sqlock_error *err)
{
    bool cancelled;

    pthread_mutex_lock(&self->mutex);
    while (!self->is_cancelled && lk_waiter_wait(self, until_ns) != ETIMEDOUT)
        ;
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    return cancelled ? lk_canceled(err) : 0;
}

int lk_canceled(sqlock_error *err)
{
    return lk_error(err, SQLOCK_ECANCELED,
                    "the wait for the lock was cancelled");
}

bool lk_waiter_is_cancelled(struct lk_waiter *waiter)
{
    bool cancelled;

    pthread_mutex_lock(&waiter->mutex);
    cancelled = waiter->is_cancelled;
    pthread_mutex_unlock(&waiter->mutex);
    return cancelled;
}

int lk_not_in_time(int64_t wait_ms, sqlock_error *err)
{
    if (wait_ms == 0)
        return lk_error(err, SQLOCK_EBUSY, "the lock is held by another owner");
    return lk_error(err, SQLOCK_ETIMEDOUT,
                    "the lock was not free within %lld ms", (long long)wait_ms);
}
