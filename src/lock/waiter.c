/*
 * waiter.c - let a thread sleep, or a request be suspended, until it is woken
 * or cancelled
 */
#include "lock/waiter.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "db/driver.h"

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options)
{
    memset(waiter, 0, sizeof *waiter);
    lk_condition_init(&waiter->woken);
    (void)pthread_mutex_init(&waiter->mutex, NULL);
    waiter->wait_ms = wait_ms;
    waiter->deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    waiter->options = options;
    waiter->alarm_ns = LK_NEVER;
}

void lk_waiter_clear(struct lk_waiter *waiter)
{
    (void)pthread_mutex_destroy(&waiter->mutex);
    (void)pthread_cond_destroy(&waiter->woken);
}

void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason)
{
    pthread_mutex_lock(&waiter->mutex);
    waiter->reason = reason;
    pthread_cond_signal(&waiter->woken);
    if (waiter->on_wake != NULL)
        waiter->on_wake(waiter);
    pthread_mutex_unlock(&waiter->mutex);
}

void lk_waiter_yield(struct lk_waiter *waiter)
{
    pthread_mutex_lock(&waiter->mutex);
    waiter->is_to_yield = true;
    pthread_cond_signal(&waiter->woken);
    pthread_mutex_unlock(&waiter->mutex);
}

void lk_waiter_prepare(struct lk_waiter *self)
{
    pthread_mutex_lock(&self->mutex);
    self->reason = LK_WAKE_NONE;
    pthread_mutex_unlock(&self->mutex);
}

/* Sleep until the condition is signalled (return true) or until_ns comes
 * (false).  The caller holds the mutex. */
static bool wait_until(struct lk_waiter *self, int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (until_ns == LK_NEVER)
        return pthread_cond_wait(&self->woken, &self->mutex) == 0;
    return pthread_cond_timedwait(&self->woken, &self->mutex, &at) != ETIMEDOUT;
}

static bool is_past(int64_t at_ns)
{
    return at_ns != LK_NEVER && sqlock_monotonic_ns() >= at_ns;
}

int lk_waiter_park(struct lk_waiter *self, int64_t until_ns, bool hears_cancel)
{
    int rc = 0;

    pthread_mutex_lock(&self->mutex);
    while (rc == 0 && self->reason == LK_WAKE_NONE &&
           !(hears_cancel && self->is_cancelled) && !is_past(until_ns)) {
        if (self->is_to_yield || is_past(self->alarm_ns)) {
            rc = LK_ALARM;
        } else if (self->on_wake == NULL) {
            (void)wait_until(self, lk_sooner(until_ns, self->alarm_ns));
        } else {
            self->until_ns = until_ns;
            rc = LK_SUSPENDED;
        }
    }
    pthread_mutex_unlock(&self->mutex);
    return rc;
}

int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns, sqlock_error *err)
{
    bool cancelled;

    pthread_mutex_lock(&self->mutex);
    while (!self->is_cancelled && wait_until(self, until_ns))
        ;
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    return cancelled ? lk_canceled(err) : 0;
}

bool lk_waiter_is_cancelled(struct lk_waiter *self)
{
    bool cancelled;

    pthread_mutex_lock(&self->mutex);
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    return cancelled;
}

int64_t lk_waiter_statement_deadline(const struct lk_waiter *self,
                                     const struct lk_store *store)
{
    if (self->wait_ms == 0) /* a single attempt, whenever it is made */
        return lk_store_deadline(store);
    return lk_sooner(
        lk_store_deadline(store),
        lk_after_ms(self->deadline_ns, store->options.statement_timeout_ms));
}

int lk_canceled(sqlock_error *err)
{
    return lk_error(err, SQLOCK_ECANCELED,
                    "the wait for the lock was cancelled");
}

int lk_not_in_time(int64_t wait_ms, sqlock_error *err)
{
    if (wait_ms == 0)
        return lk_error(err, SQLOCK_EBUSY, "the lock is held by another owner");
    return lk_error(err, SQLOCK_ETIMEDOUT,
                    "the lock was not free within %lld ms", (long long)wait_ms);
}
