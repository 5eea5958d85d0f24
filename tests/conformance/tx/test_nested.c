/*
 * test_nested.c - calls within a transaction that need a connection besides its
 * own, when all connections of the registry are in transactions
 */
#include "suite.h"

#include <stdio.h>

#include "sqlock/stock.h"

/* Limit of a statement: short, so that a call that gets no connection fails
 * soon. */
#define STATEMENT_MS (4000 * SLOWNESS)

static sqlock_registry *open_small(struct fixture *f, uint32_t pool_size)
{
    sqlock_options options = fixture_options(f);

    options.pool_size = pool_size;
    options.statement_timeout_ms = STATEMENT_MS;
    return fixture_registry(f, &options);
}

/* --- as many transactions as connections --- */

#define MOST 4
#define TURNS 20

struct crowd {
    sqlock_registry *registry;
    pthread_barrier_t all_have_begun;
    const char *name;
};

static int lock_in_turns(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    int failed = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        char text[96];
        const char *name = text;
        sqlock_tx *tx = NULL;
        int rc;

        /* The name is new every second time. */
        (void)snprintf(text, sizeof text, "%s/%u/%d", crowd->name,
                       worker->index, turn / 2);
        rc = sqlock_tx_begin(&tx, crowd->registry, &worker->err);
        (void)pthread_barrier_wait(&crowd->all_have_begun);
        if (rc == 0)
            rc = sqlock_tx_lock(tx, &name, 1, PATIENCE_MS, false, NULL,
                                &worker->err);
        if (rc == 0)
            rc = sqlock_tx_commit(tx, &worker->err);
        else
            (void)sqlock_tx_rollback(tx, NULL);
        if (rc != 0 && failed == 0)
            failed = worker_fail(worker, "turn %d: %d: %s", turn, rc,
                                 worker->err.message);
    }
    return failed;
}

static void test_transactions_on_all_connections_lock_names(void **state)
{
    static const uint32_t sizes[] = {1, MOST};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct workers workers;
        struct crowd crowd = {.name = f->name};

        fixture_next(f);
        crowd.registry = open_small(f, sizes[i]);
        assert_int_equal(
            pthread_barrier_init(&crowd.all_have_begun, NULL, sizes[i]), 0);
        workers_start(&workers, sizes[i], lock_in_turns, &crowd);
        workers_join(&workers);
        (void)pthread_barrier_destroy(&crowd.all_have_begun);
        registry_end(crowd.registry);
    }
}

/* --- how many statements --- */

/* Statements of transactions and of stock are prepared on the same connection,
 * and are not taken for each other. */
static void test_names_and_stock_share_a_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = open_small(f, 1);
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;
    const char *name = f->name;
    int64_t quantity = 0;
    sqlock_tx *tx;

    options.table = stock_name(f);
    options.item_column = "id";
    options.quantity_column = "a";
    assert_ok(sqlock_stock_open(&stock, registry, &options, &f->err));
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_ok(sqlock_stock_read(stock, NULL, "2", &quantity, &f->err));
    assert_int_equal(quantity, 100);
    sqlock_stock_close(stock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_transactions_on_all_connections_lock_names, ON_SERVERS,
                 IN_SQLOCK),
    TEST_OF_ROWS(test_names_and_stock_share_a_connection, ON_SERVERS,
                 IN_SQLOCK),
};
const struct topic topic_nested = TOPIC(tests);
