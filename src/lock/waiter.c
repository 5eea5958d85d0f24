/*
 * waiter.c - let a thread sleep, or a request be suspended, until it is woken
 * or cancelled
 */
#include "lock/waiter.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "db/driver.h"
#include "lock/slot.h"

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options)
{
    memset(waiter, 0, sizeof *waiter);
    lk_condition_init(&waiter->woken);
    waiter->wait_ms = wait_ms;
    waiter->deadline_ns = wait_ms == SQLOCK_FOREVER
                              ? LK_NEVER
                              : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    waiter->options = options;
    waiter->alarm_ns = LK_NEVER;
}

void lk_waiter_clear(struct lk_waiter *waiter)
{
    (void)pthread_cond_destroy(&waiter->woken);
}

/* Let the waiter see what has changed. */
static void signal_change(struct lk_waiter *waiter)
{
    (void)pthread_cond_signal(&waiter->woken);
    if (waiter->on_wake != NULL)
        waiter->on_wake(waiter);
}

void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason)
{
    waiter->reason = reason;
    signal_change(waiter);
}

void lk_waiter_yield(struct lk_waiter *waiter)
{
    waiter->is_to_yield = true;
    signal_change(waiter);
}

void lk_waiter_cancel(struct lk_waiter *waiter)
{
    waiter->is_cancelled = true;
    signal_change(waiter);
}

/* Sleep until the condition is signalled, or until_ns. */
static void sleep_until(struct lk_waiter *self, int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (until_ns == LK_NEVER)
        (void)pthread_cond_wait(&self->woken, &lk_mutex);
    else
        (void)pthread_cond_timedwait(&self->woken, &lk_mutex, &at);
}

static bool is_past(int64_t at_ns)
{
    return at_ns != LK_NEVER && sqlock_monotonic_ns() >= at_ns;
}

int lk_waiter_park(struct lk_waiter *self, int64_t until_ns, bool hears_cancel)
{
    while (self->reason == LK_WAKE_NONE &&
           !(hears_cancel && (self->is_cancelled || self->is_deadlocked)) &&
           !is_past(until_ns)) {
        if (self->is_to_yield || is_past(self->alarm_ns))
            return LK_ALARM;
        if (self->on_wake != NULL) {
            self->until_ns = lk_sooner(until_ns, self->alarm_ns);
            return LK_SUSPENDED;
        }
        sleep_until(self, lk_sooner(until_ns, self->alarm_ns));
    }
    return 0;
}

void lk_waiter_prepare(struct lk_waiter *self)
{
    pthread_mutex_lock(&lk_mutex);
    self->reason = LK_WAKE_NONE;
    pthread_mutex_unlock(&lk_mutex);
}

bool lk_waiter_is_cancelled(const struct lk_waiter *self)
{
    bool is_cancelled;

    pthread_mutex_lock(&lk_mutex);
    is_cancelled = self->is_cancelled;
    pthread_mutex_unlock(&lk_mutex);
    return is_cancelled;
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
