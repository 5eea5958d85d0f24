/*
 * wait.c - waiting for another process's row: it is looked at without locking
 * anything, no longer than its lease, nor than the caller wants to wait.
 */
#include "wait/wait.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "lease/observe.h"

int64_t lk_wait_statement_deadline(const struct lk_store *store,
                                   const struct lk_waiter *self)
{
    uint32_t statement_ms = store->options.statement_timeout_ms;

    if (self->wait_ms == 0) /* it only looks, whenever that is */
        return lk_store_deadline(store);
    return lk_sooner(lk_store_deadline(store),
                     lk_after_ms(self->deadline_ns, statement_ms));
}

/* Look at the row now: 0 in *left_ns when it may be claimed. */
static int look(struct lk_entry *entry, const struct lk_waiter *self,
                struct lk_observed *seen, int64_t *left_ns, sqlock_error *err)
{
    struct lk_store *store = entry->store;
    struct lk_row row;
    int rc;

    rc = lk_lease_read(store, entry->key,
                       lk_wait_statement_deadline(store, self), &row, err);
    if (rc == 0)
        *left_ns = lk_row_blocked_ns(store, seen, &row);
    return rc;
}

/* Until the poller has something to tell; LK_SUSPENDED. */
static int await_news(struct lk_waiter *self, sqlock_error *err)
{
    int rc = SQLOCK_ETIMEDOUT;

    pthread_mutex_lock(&self->mutex);
    while (!self->is_cancelled && !self->is_told && self->on_wake == NULL &&
           lk_waiter_wait(self, self->deadline_ns) != ETIMEDOUT)
        ;
    if (self->on_wake != NULL && sqlock_monotonic_ns() < self->deadline_ns)
        rc = LK_SUSPENDED;
    if (self->is_cancelled) {
        rc = lk_canceled(err);
    } else if (self->is_told) {
        rc = self->told_rc;
        if (rc < 0 && err != NULL)
            *err = self->told;
    }
    pthread_mutex_unlock(&self->mutex);
    return rc;
}

int lk_wait_for_row(struct lk_entry *entry, struct lk_waiter *self,
                    sqlock_error *err)
{
    struct lk_poller *poller = &entry->all->poller;
    int64_t left_ns = 0;
    int rc = SQLOCK_ETIMEDOUT;

    if (self->wait_ms != 0) {
        rc = self->is_polling ? 0 : lk_poller_begin(poller, entry, self, err);
        if (rc < 0)
            return rc;
        rc = await_news(self, err);
        self->is_polling = rc == LK_SUSPENDED;
        if (rc == LK_SUSPENDED)
            return rc;
        lk_poller_end(poller, self);
    }
    if (rc != SQLOCK_ETIMEDOUT)
        return rc;
    /* Once more, at the end: what became free since the last look. */
    rc = look(entry, self, &self->subscription.seen, &left_ns, err);
    if (rc == 0 && left_ns > 0)
        rc = lk_not_in_time(self->wait_ms, err);
    return rc;
}

/* All at a time: what was seen of the first is not old when the last may be
 * taken. */
static int look_at_all(struct lk_entry *const *entries, size_t count,
                       const struct lk_waiter *self, struct lk_observed *seen,
                       bool *may_take, int64_t *left_ns, sqlock_error *err)
{
    *left_ns = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t left = 0;
        int rc = look(entries[i], self, &seen[i], &left, err);

        if (rc < 0)
            return rc;
        may_take[i] = left == 0;
        if (left > *left_ns)
            *left_ns = left;
    }
    return 0;
}

static int64_t next_look(const struct lk_store *store, int64_t now,
                         int64_t left_ns, int64_t deadline_ns)
{
    int64_t poll_us = (int64_t)store->options.poll_ms * 1000;
    int64_t pause_ns =
        lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;

    return lk_sooner(now + lk_sooner(pause_ns, left_ns), deadline_ns);
}

int lk_wait_for_rows(struct lk_entry *const *entries, size_t count,
                     struct lk_waiter *self, struct lk_observed *seen,
                     bool *may_take, sqlock_error *err)
{
    int rc = 0;

    while (rc == 0) {
        int64_t left_ns;
        int64_t now;

        rc = look_at_all(entries, count, self, seen, may_take, &left_ns, err);
        if (rc < 0 || left_ns == 0)
            break;
        now = sqlock_monotonic_ns();
        if (now >= self->deadline_ns)
            rc = lk_not_in_time(self->wait_ms, err);
        else
            rc = lk_waiter_sleep(
                self,
                next_look(entries[0]->store, now, left_ns, self->deadline_ns),
                err);
    }
    return rc;
}
