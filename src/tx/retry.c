/*
 * retry.c - run the application's function in one transaction after another,
 * with pauses, until one is committed; never again after a commit that may have
 * happened
 */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"
#include "tx/tx.h"

#define ATTEMPTS_DEFAULT 100u
#define DEADLINE_DEFAULT_MS 30000u
#define PAUSE_DEFAULT_MS 50u

static int complete(sqlock_retry_options *out,
                    const sqlock_retry_options *given, sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_retry_options",
                                          "SQLOCK_RETRY_INIT", sizeof *out};
    int rc = lk_sized_read(out, &sized, given, err);

    if (rc < 0)
        return rc;
    if (out->attempts == 0)
        out->attempts = ATTEMPTS_DEFAULT;
    if (out->deadline_ms == 0)
        out->deadline_ms = DEADLINE_DEFAULT_MS;
    if (out->pause_ms == 0)
        out->pause_ms = PAUSE_DEFAULT_MS;
    return 0;
}

static struct lk_retry_policy policy_of(const sqlock_retry_options *limits)
{
    return (struct lk_retry_policy){
        .first_us = 1000,
        .longest_us = (int64_t)limits->pause_ms * 1000,
        .attempts = limits->attempts,
        .classes = LK_RETRY_VERSION | LK_RETRY_CONFLICT | LK_RETRY_BUSY,
        .last = LK_RETRY_WITHIN,
    };
}

static int attempt_once(struct lk_store *store, sqlock_tx_fn fn, void *context,
                        sqlock_error *err)
{
    sqlock_tx *tx;
    int rc;

    rc = lk_tx_begin(&tx, store, err);
    if (rc < 0)
        return rc;
    rc = fn(context, tx, err);
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    /* A positive result is the application's own code, and no success. */
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

int lk_tx_retry(struct lk_store *store, sqlock_tx_fn fn, void *context,
                const sqlock_retry_options *options, sqlock_error *err)
{
    sqlock_retry_options limits;
    struct lk_retry_policy policy;
    struct lk_retry retry;
    sqlock_error own;
    int rc;

    rc = complete(&limits, options, err);
    if (rc == 0 && fn == NULL)
        rc = lk_error_null(err, "fn");
    if (rc < 0)
        return rc;
    policy = policy_of(&limits);
    lk_retry_begin(&retry, &policy,
                   lk_after_ms(sqlock_monotonic_ns(), limits.deadline_ms));
    do {
        memset(&own, 0, sizeof own);
        rc = attempt_once(store, fn, context, &own);
    } while (lk_retry_goes_on(&retry, rc));
    if (rc != 0 && err != NULL) /* with an application's own code, its text */
        *err = own;
    return rc;
}

int sqlock_tx_retry(sqlock_registry *registry, sqlock_tx_fn fn, void *context,
                    const sqlock_retry_options *options, sqlock_error *err)
{
    struct lk_store *store;
    int rc = lk_store_of(registry, &store, err);

    return rc < 0 ? rc : lk_tx_retry(store, fn, context, options, err);
}
