/*
 * outage.c - pause after failed attempts to connect: one exponential back-off
 * with jitter for all pools of a registry
 */
#include "db/outage.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "db/driver.h"

/* The longest pause is no longer than the shortest default of a statement
 * timeout, so that an attempt is made during each call. */
static const struct lk_retry_policy policy = {
    .first_us = 5000,
    .longest_us = 500000,
    .classes = LK_RETRY_UNREACHABLE | LK_RETRY_FULL,
};

void lk_outage_init(struct lk_outage *outage)
{
    memset(outage, 0, sizeof *outage);
    lk_retry_begin(&outage->retry, &policy, LK_NEVER);
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
    while (outage->retry.failures > 0) {
        int64_t now = sqlock_monotonic_ns();
        struct timespec at;

        if (!outage->is_probed && now >= outage->retry.resume_ns) {
            outage->is_probed = true;
            outage->prober = pthread_self();
            break;
        }
        if (now >= deadline_ns) {
            rc = last_failure(outage, err);
            break;
        }
        at = lk_timespec(outage->is_probed
                             ? deadline_ns
                             : lk_sooner(outage->retry.resume_ns, deadline_ns));
        (void)pthread_cond_timedwait(&outage->changed, &outage->mutex, &at);
    }
    pthread_mutex_unlock(&outage->mutex);
    return rc;
}

int lk_outage_lasts(struct lk_outage *outage)
{
    bool lasts;
    int rc;

    if (!atomic_load(&outage->has_begun))
        return 0;
    pthread_mutex_lock(&outage->mutex);
    lasts =
        outage->retry.failures > 0 &&
        (outage->is_probed || sqlock_monotonic_ns() < outage->retry.resume_ns);
    rc = lasts ? outage->rc : 0;
    pthread_mutex_unlock(&outage->mutex);
    return rc;
}

int lk_outage_leave(struct lk_outage *outage, int rc, sqlock_error *why)
{
    bool is_probe;

    pthread_mutex_lock(&outage->mutex);
    is_probe =
        outage->is_probed && pthread_equal(outage->prober, pthread_self()) != 0;
    if (rc == 0)
        outage->has_connected = true;
    if (rc == SQLOCK_EINVAL && outage->has_connected) {
        rc = SQLOCK_EUNREACHABLE;
        why->code = rc;
    }
    if (!lk_retry_admits(policy.classes, rc)) {
        lk_retry_reset(&outage->retry);
    } else if (outage->retry.failures == 0 || is_probe) {
        /* Of several attempts that began before the outage, only the first
         * to fail counts. */
        (void)lk_retry_decide(&outage->retry, rc);
        outage->rc = rc;
        outage->why = *why;
    }
    if (is_probe)
        outage->is_probed = false;
    atomic_store(&outage->has_begun, outage->retry.failures > 0);
    pthread_cond_broadcast(&outage->changed);
    pthread_mutex_unlock(&outage->mutex);
    return rc;
}
