/*
 * admin.c - an operator's calls: show one lock, and free all locks after a
 * restore
 */
#include "admin/info.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"
#include "db/transaction.h"
#include "lease/grace.h"
#include "lease/longest.h"
#include "lease/options.h"

/* --- one row --- */

int sqlock_show(sqlock_registry *registry, const char *name, sqlock_info **row,
                sqlock_error *err)
{
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    int rc;

    if (row == NULL)
        return lk_error_null(err, "row");
    *row = NULL;
    rc = lk_store_key(registry, name, &store, key, err);
    if (rc < 0)
        return rc;
    return lk_info_of_key(store, key, row, err);
}

/* --- a server that may have forgotten leases --- */

int64_t sqlock_registry_grace_ms(sqlock_registry *registry)
{
    struct lk_store *store;

    if (lk_store_of(registry, &store, NULL) < 0)
        return 0;
    return (lk_grace_left_ns(store) + LK_NS_PER_MS - 1) / LK_NS_PER_MS;
}

int sqlock_grace_end(sqlock_registry *registry, const char *reason,
                     sqlock_error *err)
{
    struct lk_store *store;
    int rc = lk_store_of(registry, &store, err);

    if (rc < 0)
        return rc;
    if (reason == NULL || *reason == '\0')
        return lk_error(err, SQLOCK_EINVAL, "the reason is missing");
    rc = lk_grace_end(store, reason, err);
    return rc == 0 ? lk_error(err, SQLOCK_ENOTFOUND,
                              "the server grants locks already")
                   : (rc > 0 ? 0 : rc);
}

int sqlock_grace_longest(sqlock_registry *registry, int64_t ttl_ms,
                         sqlock_error *err)
{
    struct lk_store *store;
    int rc = lk_store_of(registry, &store, err);

    if (rc < 0)
        return rc;
    if (ttl_ms < LK_TTL_MIN_MS || ttl_ms > (int64_t)LK_TTL_MAX_MS)
        return lk_error(err, SQLOCK_EINVAL,
                        "ttl_ms is %lld, but must be %d to %u",
                        (long long)ttl_ms, LK_TTL_MIN_MS, LK_TTL_MAX_MS);
    return lk_longest_set(store, ttl_ms, err);
}

/* --- after a restore --- */

/* Free all in one transaction.  A copy of the statement that arrives late is
 * never committed, and a late commit has all rows locked until then; so once a
 * repetition has been confirmed, no copy takes a lease that was given since. */
static int free_all(struct lk_store *store, int64_t deadline_ns,
                    bool *was_committed, int64_t *rows, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = &store->statements[SQLOCK_SQL_AFTER_RESTORE],
        .arguments = &arguments,
        .deadline_ns = deadline_ns,
    };
    struct lk_transaction transaction;
    sqlock_result result = {0};
    int rc;

    rc = lk_transaction_begin(&transaction, &store->db,
                              store->db.driver->has_one_writer, deadline_ns,
                              err);
    if (rc < 0)
        return rc;
    lk_store_arguments(store, "", &arguments);
    rc = lk_transaction_run(&transaction, &run, &result, err);
    *rows = result.affected;
    sqlock_result_clear(&result);
    if (rc < 0) {
        lk_transaction_rollback(&transaction, deadline_ns);
        return rc;
    }
    rc = lk_transaction_commit(&transaction, deadline_ns, err);
    *was_committed = *was_committed || rc == SQLOCK_EUNCERTAIN;
    return rc;
}

int sqlock_after_restore(sqlock_registry *registry, int64_t *rows,
                         sqlock_error *err)
{
    static const struct lk_retry_policy policy = {
        .first_us = 20000,
        .longest_us = 50000,
        .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_FULL |
                   LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN,
        .last = LK_RETRY_WITHIN,
    };
    struct lk_retry retry;
    struct lk_store *store;
    sqlock_error own = {0};
    bool was_committed = false; /* by an attempt without an answer, maybe */
    int64_t changed = 0;
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    if (store->statements[SQLOCK_SQL_AFTER_RESTORE].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this driver cannot free all locks at once");
    lk_retry_begin(&retry, &policy, lk_store_deadline(store));
    do
        rc = free_all(store, retry.deadline_ns, &was_committed, &changed, &own);
    while (lk_retry_goes_on(&retry, rc));
    if (rc == 0 && rows != NULL)
        *rows = changed;
    if (rc < 0 && was_committed)
        return lk_error(err, SQLOCK_EUNCERTAIN,
                        "the connection was lost during the commit, and the "
                        "database did not confirm in time whether it was "
                        "carried out");
    return lk_error_pass(err, &own, lk_db_of_reading(rc, &own));
}
