/*
 * test_nested.c - statements of transactions and of stock on the only
 * connection of a registry
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
    for (int i = 0; i < 2; i++) {
        assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
        assert_ok(sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err));
        assert_ok(sqlock_tx_commit(tx, &f->err));
        assert_ok(sqlock_stock_read(stock, NULL, "2", &quantity, &f->err));
        assert_int_equal(quantity, 100);
    }
    sqlock_stock_close(stock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_names_and_stock_share_a_connection, ON_SERVERS,
                 IN_SQLOCK),
};
const struct topic topic_nested = TOPIC(tests);
