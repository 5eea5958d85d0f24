/*
 * retry.h - decide whether to try again after a failure, how often, and after
 * which pauses
 *
 * All code that tries again uses this loop, with a policy of its own:
 *
 *     lk_retry_begin(&retry, &policy, deadline_ns);
 *     do
 *         rc = attempt();
 *     while (lk_retry_goes_on(&retry, rc));
 *
 * Pauses double up to the longest.  Each is a random time between half of its
 * length and all of it: two threads that collided do not collide again in step,
 * and no pause is close to zero.
 */
#ifndef LK_RETRY_H
#define LK_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Results after which a policy may admit another attempt.  0, and any result of
 * no such class, ends the loop. */
enum lk_retry_class {
    /* ERETRY: rolled back in favour of another transaction */
    LK_RETRY_CONFLICT = 1 << 0,
    /* EBUSY, ETIMEDOUT: another session has the lock, or the row */
    LK_RETRY_BUSY = 1 << 1,
    LK_RETRY_VERSION = 1 << 2,     /* ECONFLICT: the row has changed */
    LK_RETRY_FULL = 1 << 3,        /* ERESOURCE: the server is full */
    LK_RETRY_UNREACHABLE = 1 << 4, /* EUNREACHABLE */
    /* EUNCERTAIN: only for statements that may be carried out twice */
    LK_RETRY_UNCERTAIN = 1 << 5,
    /* EREADONLY: only for a server that may be promoted */
    LK_RETRY_STANDBY = 1 << 6,
    /* ELOST, ECANCELED: a time limit, or the end of the connection, came before
     * the commit was sent */
    LK_RETRY_UNSENT = 1 << 7,
};

/* When the last attempt is made. */
enum lk_retry_last {
    /* before the deadline: a pause that would reach the deadline ends the
     * loop */
    LK_RETRY_WITHIN,
    /* at the deadline: the last pause is shortened to end there */
    LK_RETRY_AT_DEADLINE,
};

struct lk_retry_policy {
    int64_t first_us;   /* length of the pause after the first failure */
    int64_t longest_us; /* maximum length of a pause */
    uint32_t attempts;  /* maximum number; 0: limited by the deadline only */
    unsigned classes;   /* enum lk_retry_class, or'ed */
    enum lk_retry_last last;
};

/* One loop.  The policy and the deadline may be changed between two
 * attempts. */
struct lk_retry {
    struct lk_retry_policy policy;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
    /* CLOCK_MONOTONIC: time of the next attempt, set by lk_retry_decide() */
    int64_t resume_ns;
    uint32_t failures; /* failures in a row that the policy admits */
};

void lk_retry_begin(struct lk_retry *retry,
                    const struct lk_retry_policy *policy, int64_t deadline_ns);

/* Return whether the result is in one of the classes. */
bool lk_retry_admits(unsigned classes, int rc);

/* Return the length of the pause after `failures` failures in a row, which are
 * at least one. */
int64_t lk_retry_pause_ns(const struct lk_retry_policy *policy,
                          uint32_t failures);

/* Return whether to make another attempt, at retry->resume_ns, after one that
 * returned rc.  For a caller that can be cancelled, or must not sleep, and so
 * waits until then in its own way. */
bool lk_retry_decide(struct lk_retry *retry, int rc);

/* Decide as lk_retry_decide(), and if there is to be another attempt, sleep
 * until its time. */
bool lk_retry_goes_on(struct lk_retry *retry, int rc);

/* Forget the failures so far, since an attempt has succeeded. */
void lk_retry_reset(struct lk_retry *retry);

#endif
