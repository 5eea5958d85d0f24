/*
 * wait.c - waiting for another process's row: looking at it without locking
 * anything, no longer than its lease, nor than the caller wants to wait.
 *
 * Observing before stealing is for peers whose clocks are not known: an expired
 * row is believed only after it has stayed the same for a TTL on this host's
 * own clock, whatever its time stamp says.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "locks/entry.h"

/* An expired row as it was first seen. */
struct sighting {
    char client_id[SQLOCK_KEY_SIZE];
    int64_t expires_at_us;
    int64_t since_ns; /* CLOCK_MONOTONIC; 0: none yet */
};

/* How long a row must stay unchanged: the TTL by which its owner renews it. */
static int64_t patience_ns(const sqlock_registry *registry)
{
    uint32_t ttl_ms = registry->layout == SQLOCK_LAYOUT_SPRING6
                          ? registry->options.peer_ttl_ms
                          : registry->options.ttl_ms;

    return (int64_t)ttl_ms * LK_NS_PER_MS;
}

/* How long to go on looking at a row that is expired by its time stamp, in ns;
 * 0: it may be taken over. */
static int64_t observe(const sqlock_registry *registry, struct sighting *seen,
                       const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t left;

    if (!registry->options.observe_before_steal || row->client_id[0] == '\0')
        return 0;
    if (seen->since_ns == 0 || seen->expires_at_us != row->expires_at_us ||
        strcmp(seen->client_id, row->client_id) != 0) {
        memcpy(seen->client_id, row->client_id, sizeof seen->client_id);
        seen->expires_at_us = row->expires_at_us;
        seen->since_ns = now;
    }
    left = seen->since_ns + patience_ns(registry) - now;
    return left > 0 ? left : 0;
}

/* Look at the row: 0 in *left_ns when it may be claimed, or else how long that
 * will last by what is known now. */
static int look(sqlock_lock *lock, struct sighting *seen, int64_t *left_ns,
                sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    struct lk_row row;
    int rc;

    rc = lk_lease_read(registry, lock->key, lk_statement_deadline(registry),
                       &row, err);
    if (rc == 0)
        *left_ns = row.is_taken ? (row.remaining_us + 1) * LK_NS_PER_US
                                : observe(registry, seen, &row);
    return rc;
}

static int64_t next_look(const sqlock_registry *registry, int64_t now,
                         int64_t left_ns, int64_t deadline_ns)
{
    int64_t poll_us = (int64_t)registry->options.poll_ms * 1000;
    int64_t pause_ns =
        lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;

    return lk_sooner(now + lk_sooner(pause_ns, left_ns), deadline_ns);
}

int lk_wait_for_row(sqlock_lock *lock, struct lk_waiter *self,
                    sqlock_error *err)
{
    struct sighting seen = {0};

    for (;;) {
        int64_t left_ns = 0;
        int64_t now;
        int rc;

        rc = look(lock, &seen, &left_ns, err);
        if (rc < 0 || left_ns == 0)
            return rc;
        now = sqlock_monotonic_ns();
        if (now >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        lk_sleep_until(
            next_look(lock->registry, now, left_ns, self->deadline_ns));
    }
}

/* All at a time: what was seen of the first is not old when the last may be
 * taken. */
static int look_at_all(sqlock_lock *const *locks, size_t count,
                       struct sighting *seen, bool *may_take, int64_t *left_ns,
                       sqlock_error *err)
{
    *left_ns = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t left = 0;
        int rc = look(locks[i], &seen[i], &left, err);

        if (rc < 0)
            return rc;
        may_take[i] = left == 0;
        if (left > *left_ns)
            *left_ns = left;
    }
    return 0;
}

int lk_wait_for_rows(sqlock_lock *const *locks, size_t count,
                     struct lk_waiter *self, bool *may_take, sqlock_error *err)
{
    struct sighting *seen = calloc(count, sizeof *seen);
    int rc = seen == NULL ? lk_error_nomem(err) : 0;

    while (rc == 0) {
        int64_t left_ns;
        int64_t now;

        rc = look_at_all(locks, count, seen, may_take, &left_ns, err);
        if (rc < 0 || left_ns == 0)
            break;
        now = sqlock_monotonic_ns();
        if (now >= self->deadline_ns)
            rc = lk_not_in_time(self->wait_ms, err);
        else
            lk_sleep_until(
                next_look(locks[0]->registry, now, left_ns, self->deadline_ns));
    }
    free(seen);
    return rc;
}
