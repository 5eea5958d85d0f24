/*
 * retry.h - trying again what has failed: after which results, how often, and
 * after which pauses
 *
 * Everything that is tried again uses this loop, with a policy of its own:
 *
 *     lk_retry_begin(&retry, &policy, deadline_ns);
 *     do
 *         rc = attempt();
 *     while (lk_retry_goes_on(&retry, rc));
 *
 * Pauses double up to the longest.  Each is drawn from the upper half of its
 * length: two that collided do not collide again in step, and none is hot.
 */
#ifndef LK_RETRY_H
#define LK_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Results that a policy may admit; 0 and all others end the loop. */
enum lk_retry_class {
    /* ERETRY: rolled back in favour of another transaction */
    LK_RETRY_CONFLICT = 1 << 0,
    /* EBUSY, ETIMEDOUT: another session has a lock */
    LK_RETRY_BUSY = 1 << 1,
    LK_RETRY_VERSION = 1 << 2,     /* ECONFLICT: the row has changed */
    LK_RETRY_FULL = 1 << 3,        /* ERESOURCE: the server is full */
    LK_RETRY_UNREACHABLE = 1 << 4, /* EUNREACHABLE */
    /* EUNCERTAIN: only for what may be done twice */
    LK_RETRY_UNCERTAIN = 1 << 5,
    /* EREADONLY: only for a server that may be promoted */
    LK_RETRY_STANDBY = 1 << 6,
    /* ELOST, ECANCELED: a time limit, or the end of the connection, came before
     * the commit was sent */
    LK_RETRY_UNSENT = 1 << 7,
};

/* When the last attempt is made. */
enum lk_retry_last {
    LK_RETRY_WITHIN, /* before the deadline: no pause reaches it */
    /* at the deadline: the last pause is cut short */
    LK_RETRY_AT_DEADLINE,
};

struct lk_retry_policy {
    int64_t first_us;   /* the pause after the first failure, at most */
    int64_t longest_us; /* no pause is longer */
    uint32_t attempts;  /* maximum; 0: as many as there is time for */
    unsigned classes;   /* enum lk_retry_class, or'ed */
    enum lk_retry_last last;
};

/* One loop.  The policy and the deadline may be changed between two
 * attempts. */
struct lk_retry {
    struct lk_retry_policy policy;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
    /* CLOCK_MONOTONIC: time of the next attempt, once decided */
    int64_t resume_ns;
    uint32_t failures; /* failures in a row that the policy admits */
};

void lk_retry_begin(struct lk_retry *retry,
                    const struct lk_retry_policy *policy, int64_t deadline_ns);

/* Tell whether the result is in one of these classes. */
bool lk_retry_admits(unsigned classes, int rc);

/* Return the pause after that many failures in a row, at least one. */
int64_t lk_retry_pause_ns(const struct lk_retry_policy *policy,
                          uint32_t failures);

/* Decide, after an attempt gave rc, whether another follows; retry->resume_ns
 * is its time.  A caller that can be cancelled, or must not sleep, waits for it
 * in its own way. */
bool lk_retry_decide(struct lk_retry *retry, int rc);

/* Decide as lk_retry_decide(), and sleep until the next attempt. */
bool lk_retry_goes_on(struct lk_retry *retry, int rc);

/* Reset the failures, since an attempt has succeeded. */
void lk_retry_reset(struct lk_retry *retry);

#endif
