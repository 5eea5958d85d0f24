/*
 * retry.c - decide whether to try again (see retry.h)
 */
#include "base/retry.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"

void lk_retry_begin(struct lk_retry *retry,
                    const struct lk_retry_policy *policy, int64_t deadline_ns)
{
    memset(retry, 0, sizeof *retry);
    retry->policy = *policy;
    retry->deadline_ns = deadline_ns;
}

static unsigned class_of(int rc)
{
    switch (rc) {
    case SQLOCK_ERETRY:
        return LK_RETRY_CONFLICT;
    case SQLOCK_EBUSY:
    case SQLOCK_ETIMEDOUT:
        return LK_RETRY_BUSY;
    case SQLOCK_ECONFLICT:
        return LK_RETRY_VERSION;
    case SQLOCK_ERESOURCE:
        return LK_RETRY_FULL;
    case SQLOCK_EUNREACHABLE:
        return LK_RETRY_UNREACHABLE;
    case SQLOCK_EUNCERTAIN:
        return LK_RETRY_UNCERTAIN;
    case SQLOCK_EREADONLY:
        return LK_RETRY_STANDBY;
    case SQLOCK_ELOST:
    case SQLOCK_ECANCELED:
        return LK_RETRY_UNSENT;
    default:
        return 0;
    }
}

bool lk_retry_admits(unsigned classes, int rc)
{
    return (classes & class_of(rc)) != 0;
}

int64_t lk_retry_pause_ns(const struct lk_retry_policy *policy,
                          uint32_t failures)
{
    int64_t length_us = lk_sooner(policy->first_us, policy->longest_us);

    for (uint32_t i = 1; i < failures && length_us < policy->longest_us; i++)
        length_us = length_us > policy->longest_us / 2 ? policy->longest_us
                                                       : 2 * length_us;
    return lk_random_between(length_us * LK_NS_PER_US / 2,
                             length_us * LK_NS_PER_US);
}

bool lk_retry_decide(struct lk_retry *retry, int rc)
{
    int64_t now;
    int64_t resume_ns;

    if (!lk_retry_admits(retry->policy.classes, rc))
        return false;
    retry->failures++;
    if (retry->policy.attempts > 0 && retry->failures >= retry->policy.attempts)
        return false;
    now = sqlock_monotonic_ns();
    resume_ns =
        lk_after_ns(now, lk_retry_pause_ns(&retry->policy, retry->failures));
    if (retry->policy.last == LK_RETRY_AT_DEADLINE) {
        if (now >= retry->deadline_ns)
            return false;
        resume_ns = lk_sooner(resume_ns, retry->deadline_ns);
    } else if (resume_ns >= retry->deadline_ns) {
        return false;
    }
    retry->resume_ns = resume_ns;
    return true;
}

bool lk_retry_goes_on(struct lk_retry *retry, int rc)
{
    if (!lk_retry_decide(retry, rc))
        return false;
    lk_sleep_until(retry->resume_ns);
    return true;
}

void lk_retry_reset(struct lk_retry *retry)
{
    retry->failures = 0;
}
