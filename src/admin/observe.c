/*
 * observe.c - wait until another leads, or has published another text
 *
 * One statement reads the row at a time; between two, the thread sleeps.  A
 * leader that has published a text tells of changes, where the database can
 * (lease/leader_text.h): then the thread sleeps until it is told.  It looks
 * when the lease is over, which nobody tells, and now and then, since what is
 * told may be lost.  Otherwise, and while nobody leads, it polls.
 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "admin/info.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/retry.h"
#include "lease/row.h"
#include "lock/observer.h"
#include "sqlock/leader.h"

/* How often the row of a leader that tells of changes is read anyway. */
#define LOOK_MS 28000

/* A read that fails for another reason is not tried again. */
static const struct lk_retry_policy policy = {
    .first_us = 50000,
    .longest_us = 1000000,
    .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_UNREACHABLE |
               LK_RETRY_FULL | LK_RETRY_STANDBY,
    .last = LK_RETRY_AT_DEADLINE,
};

static bool leads(const sqlock_info *row)
{
    return row->state == SQLOCK_HELD && row->mode == SQLOCK_EXCLUSIVE &&
           (row->holder == NULL || !lk_holder_is_break(row->holder));
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Return whether both rows, which may be NULL, have the same leader, with the
 * same text.  A late copy of a claim has its CLIENT_ID with another token. */
static bool is_same(const sqlock_info *a, const sqlock_info *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a->client_id, b->client_id) == 0 && a->token == b->token &&
           is_same_text(a->text, b->text);
}

/* Read the leader's row; NULL: nobody leads. */
static int read_leader(struct lk_store *store, const char *key,
                       sqlock_info **out, sqlock_error *err)
{
    int rc = lk_info_of_key(store, key, out, err);

    if (rc < 0)
        *out = NULL;
    if (*out == NULL || leads(*out))
        return rc == SQLOCK_ENOTFOUND ? 0 : rc;
    sqlock_info_free(*out, 1);
    *out = NULL;
    return 0;
}

/* Sleep until that time, or until the observer is told.  Return 0; ECANCELED if
 * the descriptor is readable or broken. */
static int pause_until(int64_t until_ns, const struct lk_observer *observer,
                       int cancel_fd, sqlock_error *err)
{
    struct pollfd fds[] = {
        {.fd = cancel_fd != 0 ? cancel_fd : -1, .events = POLLIN},
        {.fd = observer->fd, .events = POLLIN},
    };
    int64_t left_ns;

    do {
        left_ns = until_ns - sqlock_monotonic_ns();
        (void)poll(fds, 2, left_ns > 0 ? (int)(left_ns / LK_NS_PER_MS) + 1 : 0);
        if (fds[0].revents != 0)
            return lk_error(err, SQLOCK_ECANCELED, "the wait was cancelled");
    } while (left_ns > 0 && fds[1].revents == 0);
    return 0;
}

/* Return when to read the row again, of which is seen what it has: those who
 * observe do not read in step. */
static int64_t next_read_ns(const struct lk_store *store,
                            struct lk_observer *observer, sqlock_info *seen,
                            int64_t deadline_ns)
{
    int64_t poll_ns = (int64_t)store->options.poll_ms * LK_NS_PER_MS;
    int64_t next_ns =
        lk_after_ns(sqlock_monotonic_ns(),
                    lk_random_between(poll_ns * 3 / 4, poll_ns * 5 / 4));

    if (seen != NULL && lk_info_tells(seen) && lk_observer_hears(observer))
        next_ns = lk_sooner(lk_after_ms(next_ns, seen->remaining_ms),
                            lk_after_ms(next_ns, LOOK_MS));
    return lk_sooner(deadline_ns, next_ns);
}

/* Say that the time is over, and whether one leads, or nobody. */
static int fail_unchanged(int64_t wait_ms, const sqlock_info *leader,
                          sqlock_error *err)
{
    const char *who = leader != NULL ? "the same one leads" : "nobody leads";

    if (wait_ms == 0)
        return lk_error(err, SQLOCK_ETIMEDOUT, "%s, as before", who);
    return lk_error(err, SQLOCK_ETIMEDOUT, "%s, after %" PRId64 " ms as before",
                    who, wait_ms);
}

static int observe(struct lk_store *store, struct lk_observer *observer,
                   int64_t wait_ms, int cancel_fd, sqlock_info **seen,
                   sqlock_error *err)
{
    int64_t deadline_ns =
        wait_ms < 0 ? LK_NEVER : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    struct lk_retry retry;

    lk_retry_begin(&retry, &policy, deadline_ns);
    for (;;) {
        sqlock_info *now = NULL;
        int rc;

        lk_observer_expect(observer);
        rc = read_leader(store, observer->key, &now, err);
        if (rc == 0 && !is_same(*seen, now)) {
            sqlock_info_free(*seen, 1);
            *seen = now;
            return 0;
        }
        if (rc == 0 && sqlock_monotonic_ns() >= deadline_ns) {
            rc = fail_unchanged(wait_ms, now, err);
        } else if (rc == 0) {
            lk_retry_reset(&retry);
            retry.resume_ns = next_read_ns(store, observer, now, deadline_ns);
        } else if (lk_retry_decide(&retry, rc)) {
            rc = 0;
        }
        sqlock_info_free(now, 1);
        if (rc == 0)
            rc = pause_until(retry.resume_ns, observer, cancel_fd, err);
        if (rc < 0)
            return rc;
    }
}

int sqlock_observe(sqlock_registry *registry, const char *name, int64_t wait_ms,
                   int cancel_fd, sqlock_info **seen, sqlock_error *err)
{
    char key[SQLOCK_KEY_SIZE] = "";
    struct lk_observer observer;
    struct lk_store *store;
    sqlock_error own = {0};
    int rc;

    if (seen == NULL)
        return lk_error_null(err, "seen");
    rc = lk_store_key(registry, name, &store, key, err);
    if (rc < 0)
        return rc;
    rc = lk_check_wait(wait_ms, cancel_fd, err);
    if (rc < 0)
        return rc;
    lk_observer_begin(&observer, registry, key);
    rc = observe(store, &observer, wait_ms, cancel_fd, seen, &own);
    lk_observer_end(&observer);
    return lk_error_pass(err, &own, rc);
}
