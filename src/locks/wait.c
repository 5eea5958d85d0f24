/*
 * wait.c - waiting for another process's row: it is looked at without locking
 * anything, no longer than its lease, nor than the caller wants to wait.
 */
#include "locks/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "locks/entry.h"

/* How long a row must stay unchanged: the TTL by which its owner renews it. */
static int64_t patience_ns(const sqlock_registry *registry)
{
    uint32_t ttl_ms = registry->layout == SQLOCK_LAYOUT_SPRING6
                          ? registry->options.peer_ttl_ms
                          : registry->options.ttl_ms;

    return (int64_t)ttl_ms * LK_NS_PER_MS;
}

/* Observing before stealing, for peers whose clocks are not known: how long to
 * go on looking at a row that is expired by its time stamp; 0: it has stayed the
 * same for a TTL on this host's own clock. */
static int64_t observe(const sqlock_registry *registry, struct lk_post *post,
                       const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t left;

    if (!registry->options.observe_before_steal || row->client_id[0] == '\0')
        return 0;
    if (post->since_ns == 0 || post->expires_at_us != row->expires_at_us ||
        strcmp(post->client_id, row->client_id) != 0) {
        memcpy(post->client_id, row->client_id, sizeof post->client_id);
        post->expires_at_us = row->expires_at_us;
        post->since_ns = now;
    }
    left = post->since_ns + patience_ns(registry) - now;
    return left > 0 ? left : 0;
}

int64_t lk_wait_left_ns(const sqlock_registry *registry, struct lk_post *post,
                        const struct lk_row *row)
{
    return row->is_taken ? (row->remaining_us + 1) * LK_NS_PER_US
                         : observe(registry, post, row);
}

/* Look at the row now: 0 in *left_ns when it may be claimed. */
static int look(sqlock_lock *lock, struct lk_post *post, int64_t *left_ns,
                sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    struct lk_row row;
    int rc;

    rc = lk_lease_read(registry, lock->key, lk_statement_deadline(registry),
                       &row, err);
    if (rc == 0)
        *left_ns = lk_wait_left_ns(registry, post, &row);
    else if (rc == SQLOCK_ECANCELED) /* the statement, not the wait */
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "the database did not answer in time");
    return rc;
}

/* Called with the waiter's mutex held: 0 when woken, ETIMEDOUT. */
static int wait_woken(struct lk_waiter *self, int64_t until_ns)
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
    while (!self->is_cancelled && wait_woken(self, until_ns) != ETIMEDOUT)
        ;
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    return cancelled ? lk_canceled(err) : 0;
}

/* Until the lookout has something to tell; LK_PARKED. */
static int await_news(struct lk_waiter *self, sqlock_error *err)
{
    int rc = SQLOCK_ETIMEDOUT;

    pthread_mutex_lock(&self->mutex);
    while (!self->is_cancelled && !self->is_told && self->on_wake == NULL &&
           wait_woken(self, self->deadline_ns) != ETIMEDOUT)
        ;
    if (self->on_wake != NULL && sqlock_monotonic_ns() < self->deadline_ns)
        rc = LK_PARKED;
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

int lk_wait_for_row(sqlock_lock *lock, struct lk_waiter *self,
                    sqlock_error *err)
{
    struct lk_lookout *lookout = &lock->registry->lookout;
    int64_t left_ns = 0;
    int rc = SQLOCK_ETIMEDOUT;

    if (self->wait_ms != 0) {
        rc = self->is_looking ? 0 : lk_lookout_begin(lookout, lock, self, err);
        if (rc < 0)
            return rc;
        rc = await_news(self, err);
        self->is_looking = rc == LK_PARKED;
        if (rc == LK_PARKED)
            return rc;
        lk_lookout_end(lookout, self);
    }
    if (rc != SQLOCK_ETIMEDOUT)
        return rc;
    /* Once more, at the end: what became free since the last look. */
    rc = look(lock, &self->post, &left_ns, err);
    if (rc == 0 && left_ns > 0)
        rc = lk_not_in_time(self->wait_ms, err);
    return rc;
}

/* All at a time: what was seen of the first is not old when the last may be
 * taken. */
static int look_at_all(sqlock_lock *const *locks, size_t count,
                       struct lk_post *posts, bool *may_take, int64_t *left_ns,
                       sqlock_error *err)
{
    *left_ns = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t left = 0;
        int rc = look(locks[i], &posts[i], &left, err);

        if (rc < 0)
            return rc;
        may_take[i] = left == 0;
        if (left > *left_ns)
            *left_ns = left;
    }
    return 0;
}

static int64_t next_look(const sqlock_registry *registry, int64_t now,
                         int64_t left_ns, int64_t deadline_ns)
{
    int64_t poll_us = (int64_t)registry->options.poll_ms * 1000;
    int64_t pause_ns =
        lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;

    return lk_sooner(now + lk_sooner(pause_ns, left_ns), deadline_ns);
}

int lk_wait_for_rows(sqlock_lock *const *locks, size_t count,
                     struct lk_waiter *self, bool *may_take, sqlock_error *err)
{
    struct lk_post *posts = calloc(count, sizeof *posts);
    int rc = posts == NULL ? lk_error_nomem(err) : 0;

    while (rc == 0) {
        int64_t left_ns;
        int64_t now;

        rc = look_at_all(locks, count, posts, may_take, &left_ns, err);
        if (rc < 0 || left_ns == 0)
            break;
        now = sqlock_monotonic_ns();
        if (now >= self->deadline_ns)
            rc = lk_not_in_time(self->wait_ms, err);
        else
            rc = lk_waiter_sleep(
                self,
                next_look(locks[0]->registry, now, left_ns, self->deadline_ns),
                err);
    }
    free(posts);
    return rc;
}
