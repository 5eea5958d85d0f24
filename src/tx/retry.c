/*
 * retry.c - the application's function in one transaction after another, until
 * one is committed.  Never hot, and never after a commit that may have happened.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "tx/tx.h"

#define ATTEMPTS_DEFAULT 100u
#define DEADLINE_DEFAULT_MS 30000u
#define PAUSE_DEFAULT_MS 50u
#define FIRST_PAUSE_US INT64_C(1000)

static int complete(sqlock_retry_options *out,
                    const sqlock_retry_options *given, sqlock_error *err)
{
    memset(out, 0, sizeof *out);
    if (given != NULL) {
        if (given->size < sizeof given->size || given->size > sizeof *out)
            return lk_error(err, SQLOCK_EINVAL,
                            "sqlock_retry_options.size is %zu: begin with "
                            "SQLOCK_RETRY_INIT",
                            given->size);
        memcpy(out, given, given->size);
    }
    if (out->attempts == 0)
        out->attempts = ATTEMPTS_DEFAULT;
    if (out->deadline_ms == 0)
        out->deadline_ms = DEADLINE_DEFAULT_MS;
    if (out->pause_ms == 0)
        out->pause_ms = PAUSE_DEFAULT_MS;
    return 0;
}

static bool is_worth_another(int rc)
{
    return rc == SQLOCK_ECONFLICT || rc == SQLOCK_ERETRY ||
           rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT;
}

static int attempt_once(sqlock_registry *registry, sqlock_tx_fn fn,
                        void *context, const sqlock_attempt *attempt,
                        sqlock_error *err)
{
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_begin(&tx, registry, err);
    if (rc < 0)
        return rc;
    rc = fn(context, tx, attempt, err);
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    /* A positive value is the application's own; it is no success. */
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

int sqlock_tx_retry(sqlock_registry *registry, sqlock_tx_fn fn, void *context,
                    const sqlock_retry_options *options,
                    sqlock_retry_stats *stats, sqlock_error *err)
{
    sqlock_retry_options limits;
    sqlock_retry_stats counted = {0};
    int64_t deadline_ns;
    int64_t pause_us = FIRST_PAUSE_US;
    int rc;

    rc = complete(&limits, options, err);
    if (rc == 0 && fn == NULL)
        rc = lk_error(err, SQLOCK_EINVAL, "no function to run");
    if (rc < 0)
        goto out;
    deadline_ns = lk_after_ms(sqlock_monotonic_ns(), limits.deadline_ms);
    for (;;) {
        sqlock_attempt attempt = {.number = counted.attempts + 1};
        int64_t resume_ns;

        attempt.pessimistic = limits.pessimistic_after > 0 &&
                              counted.attempts >= limits.pessimistic_after;
        rc = attempt_once(registry, fn, context, &attempt, err);
        counted.attempts++;
        if (!is_worth_another(rc))
            break;
        if (rc == SQLOCK_ECONFLICT)
            counted.conflicts++;
        else
            counted.retries++;
        resume_ns = sqlock_monotonic_ns() +
                    lk_random_between(pause_us / 2, pause_us) * LK_NS_PER_US;
        if (counted.attempts >= limits.attempts || resume_ns >= deadline_ns)
            break;
        lk_sleep_until(resume_ns);
        pause_us *= 2;
        if (pause_us > (int64_t)limits.pause_ms * 1000)
            pause_us = (int64_t)limits.pause_ms * 1000;
    }
out:
    if (stats != NULL)
        *stats = counted;
    return rc;
}
