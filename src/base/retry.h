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
    LK_RETRY_CONFLICT = 1 << 0,    /* ERETRY: undone for another transaction */
    LK_RETRY_BUSY = 1 << 1,        /* EBUSY, ETIMEDOUT: others have it locked */
    LK_RETRY_VERSION = 1 << 2,     /* ECONFLICT: it has changed since */
    LK_RETRY_FULL = 1 << 3,        /* ERESOURCE: the server is full */
    LK_RETRY_UNREACHABLE = 1 << 4, /* EUNREACHABLE */
    LK_RETRY_UNCERTAIN = 1 << 5,   /* EUNCERTAIN: of what may be done twice */
    LK_RETRY_STANDBY = 1 << 6,     /* EREADONLY: of what may be promoted */
    LK_RETRY_UNSENT = 1 << 7,      /* ELOST, ECANCELED: ended by a limit, or the
                                      connection, before its commit was sent */
};

/* The last attempt before the deadline. */
enum lk_retry_last {
    LK_RETRY_WITHIN,      /* begins within it: no pause reaches the deadline */
    LK_RETRY_AT_DEADLINE, /* begins at it: the last pause is cut short */
};

struct lk_retry_policy {
    int64_t first_us;   /* the pause after the first failure, at most */
    int64_t longest_us; /* no pause is longer */
    uint32_t attempts;  /* in all; 0: as many as there is time for */
    unsigned classes;   /* enum lk_retry_class, or'ed */
    enum lk_retry_last last;
};

/* One loop.  Who has changed the policy or the deadline between two attempts is
 * judged by what they are then. */
struct lk_retry {
    struct lk_retry_policy policy;
    int64_t deadline_ns; /* CLOCK_MONOTONIC */
    int64_t resume_ns;   /* CLOCK_MONOTONIC: the next attempt, once decided */
    uint32_t failures;   /* admitted ones, in a row */
};

void lk_retry_begin(struct lk_retry *retry,
                    const struct lk_retry_policy *policy, int64_t deadline_ns);

/* Tell whether one of these classes contains the result. */
bool lk_retry_admits(unsigned classes, int rc);

/* The pause after that many failures in a row, at least one. */
int64_t lk_retry_pause_ns(const struct lk_retry_policy *policy,
                          uint32_t failures);

/* Decide, after an attempt gave rc, whether another follows, and from when
 * on: retry->resume_ns.  A caller that can be cancelled, or has no thread to
 * put to sleep, waits for that point itself. */
bool lk_retry_decide(struct lk_retry *retry, int rc);

/* Decide as lk_retry_decide(), and sleep until the next attempt. */
bool lk_retry_goes_on(struct lk_retry *retry, int rc);

/* Count from the first failure again, since an attempt has succeeded. */
void lk_retry_reset(struct lk_retry *retry);

#endif
