/*
 * outage.c - the back-off of failed connections: exponential, with jitter, one
 * for all pools of a registry.
 */
#include "db/outage.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread.h"
#include "sqlock_driver.h"

/* Pauses, drawn from the upper half: 5 to 500 ms.  The longest is no longer than
 * the shortest default of a statement's time, so that each call has its try. */
#define FIRST_PAUSE_MS 5
#define DOUBLINGS 6
#define LAST_PAUSE_MS 500

void lk_outage_init(struct lk_outage *outage)
{
    memset(outage, 0, sizeof *outage);
    (void)pthread_mutex_init(&outage->mutex, NULL);
    lk_condition_init(&outage->changed);
}

void lk_outage_clear(struct lk_outage *outage)
{
    (void)pthread_cond_destroy(&outage->changed);
    (void)pthread_mutex_destroy(&outage->mutex);
}

static int last_failure(const struct lk_outage *outage, sqlock_error *err)
{
    if (err != NULL)
        *err = outage->why;
    return outage->rc;
}

int lk_outage_enter(struct lk_outage *outage, int64_t deadline_ns,
                    sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&outage->mutex);
    while (outage->failures > 0) {
        int64_t now = sqlock_monotonic_ns();
        struct timespec at;

        if (!outage->is_probed && now >= outage->next_ns) {
            outage->is_probed = true;
            break;
        }
        if (now >= deadline_ns) {
            rc = last_failure(outage, err);
            break;
        }
        at = lk_timespec(outage->is_probed
                             ? deadline_ns
                             : lk_sooner(outage->next_ns, deadline_ns));
        (void)pthread_cond_timedwait(&outage->changed, &outage->mutex, &at);
    }
    pthread_mutex_unlock(&outage->mutex);
    return rc;
}

static int64_t pause_ms(unsigned failures)
{
    int64_t longest = failures > DOUBLINGS
                          ? LAST_PAUSE_MS
                          : (int64_t)FIRST_PAUSE_MS << (failures - 1);

    return lk_random_between(longest / 2, longest);
}

void lk_outage_leave(struct lk_outage *outage, int rc, const sqlock_error *why)
{
    int64_t now = sqlock_monotonic_ns();

    pthread_mutex_lock(&outage->mutex);
    if (rc != SQLOCK_EUNREACHABLE && rc != SQLOCK_ERESOURCE) {
        outage->failures = 0;
    } else if (outage->failures == 0 || outage->is_probed) {
        /* Of several that were under way at first, one counts. */
        outage->failures++;
        outage->next_ns = lk_after_ms(now, pause_ms(outage->failures));
        outage->rc = rc;
        outage->why = *why;
    }
    outage->is_probed = false;
    pthread_cond_broadcast(&outage->changed);
    pthread_mutex_unlock(&outage->mutex);
}
