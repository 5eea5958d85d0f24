/*
 * begin.c - make transactions, and begin them on connections of the registry
 */
#include "tx/tx.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/options.h"

void lk_tx_free(sqlock_tx *tx)
{
    free(tx->guards);
    free(tx->region);
    atomic_fetch_sub(&tx->store->users, 1);
    free(tx);
}

int lk_tx_new(sqlock_tx **out, struct lk_store *store, bool is_adopted,
              sqlock_error *err)
{
    size_t length;
    sqlock_tx *tx;
    int rc;

    if (out == NULL)
        return lk_error_null(err, "tx");
    *out = NULL;
    rc = lk_store_check(store, err);
    if (rc < 0)
        return rc;
    if (store->db.driver->transactions == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s does not support transactions",
                        store->db.driver->name);
    tx = calloc(1, sizeof *tx);
    length = strlen(store->region);
    if (tx != NULL)
        tx->region = malloc(length + sizeof LK_NAMES_SUFFIX);
    if (tx == NULL || tx->region == NULL) {
        free(tx);
        return lk_error_nomem(err);
    }
    memcpy(tx->region, store->region, length);
    memcpy(tx->region + length, LK_NAMES_SUFFIX, sizeof LK_NAMES_SUFFIX);
    tx->store = store;
    atomic_fetch_add(&store->users, 1);
    tx->driver = store->db.driver;
    tx->part = tx->driver->transactions;
    tx->is_adopted = is_adopted;
    tx->hold = is_adopted ? LK_TX_LOOSE : LK_TX_CERTAIN;
    *out = tx;
    return 0;
}

int lk_tx_start(sqlock_tx *tx, sqlock_error *err)
{
    int64_t deadline_ns = lk_store_deadline(tx->store);
    struct lk_retry retry;
    sqlock_error own = {0};
    int rc;

    rc = lk_tx_limit(tx, 0, err);
    if (rc < 0)
        return rc;
    lk_retry_begin(&retry, &lk_tx_waiting, deadline_ns);
    do
        rc = tx->driver->begin(tx->connection->state,
                               tx->is_adopted ? LK_NEVER : deadline_ns, &own);
    while (lk_retry_goes_on(&retry, rc));
    tx->has_begun = rc == 0;
    (void)lk_tx_unlimit(tx, NULL);
    if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(&own, SQLOCK_EUNREACHABLE,
                      "the connection was lost before the transaction began");
    return lk_error_pass(err, &own, lk_db_not_applied(rc, &own));
}

/* --- on a connection of the registry --- */

static int take_and_begin(sqlock_tx *tx, sqlock_error *err)
{
    static const struct lk_retry_policy reconnecting = {
        .first_us = 500,
        .longest_us = 20000,
        .classes = LK_RETRY_UNREACHABLE,
        .last = LK_RETRY_WITHIN,
    };
    struct lk_pool *pool = &tx->store->db.pool;
    int64_t deadline_ns = lk_store_deadline(tx->store);
    const struct lk_wish wish = {
        .wait_until_ns = deadline_ns,
        .latest_ns = lk_after_ms(deadline_ns, pool->options.connect_timeout_ms),
        .is_lent = true,
    };
    struct lk_retry retry;
    int rc;

    /* An idle connection may prove dead at its first use: take another one. */
    lk_retry_begin(&retry, &reconnecting, deadline_ns);
    do {
        rc = lk_pool_take_as(pool, &wish, &tx->connection, err);
        if (rc < 0)
            return lk_db_not_applied(rc, err);
        rc = lk_tx_start(tx, err);
        if (rc == 0)
            return 0;
        lk_db_finish(&tx->store->db, tx->connection, rc);
    } while (lk_retry_goes_on(&retry, rc));
    return rc;
}

int lk_tx_begin(sqlock_tx **out, struct lk_store *store, sqlock_error *err)
{
    sqlock_error own = {0};
    sqlock_tx *tx;
    int rc;

    rc = lk_tx_new(&tx, store, false, err);
    if (out != NULL)
        *out = NULL;
    if (rc < 0)
        return rc;
    tx->is_identified = true;
    tx->idle_ms = lk_idle_ms(store->options.ttl_ms);
    rc = out == NULL ? lk_error_null(&own, "tx") : take_and_begin(tx, &own);
    if (rc < 0) {
        lk_tx_free(tx);
        return lk_error_pass(err, &own, rc);
    }
    *out = tx;
    return 0;
}

int sqlock_tx_begin(sqlock_tx **out, sqlock_registry *registry,
                    sqlock_error *err)
{
    struct lk_store *store;
    int rc;

    if (out != NULL)
        *out = NULL;
    rc = lk_store_of(registry, &store, err);
    return rc < 0 ? rc : lk_tx_begin(out, store, err);
}
