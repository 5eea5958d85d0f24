/*
 * test_transactions.c - stock in a transaction of the application: what cannot
 * be undone there is not committed
 */
#include "suite.h"

#include <string.h>

#include "support/tap.h"

static sqlock_tx *begin(struct fixture *f)
{
    sqlock_tx *tx = NULL;

    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    return tx;
}

/* Let each ROLLBACK TO SAVEPOINT be cancelled, as by a server. */
static int cancel_the_way_back(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strncmp(event->text, "ROLLBACK TO ", 12) == 0
               ? SQLOCK_ECANCELED
               : 0;
}

TEST(test_what_cannot_be_taken_back_is_not_committed)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_stock_line lines[] = {{.item = item, .quantity = 4},
                                 {.item = shop_item(f, 0), .quantity = 1}};
    sqlock_tx *tx = NULL;
    int rc;

    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    tap_hooks(cancel_the_way_back, NULL, NULL);
    rc = sqlock_stock_deduct_many(stock, tx, NULL, lines, 2, NULL, &f->err);
    tap_hooks(NULL, NULL, NULL);
    assert_fails(SQLOCK_EBUSY, rc);
    assert_fails(SQLOCK_ECANCELED, sqlock_tx_commit(tx, &f->err));
    assert_int_equal(shop_there(f, item), 10);
    sqlock_stock_close(stock);
    registry_end(registry);
}

TEST(test_a_transaction_of_another_registry_is_refused)
{
    sqlock_stock *stock = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
    sqlock_tx *tx = begin(f);

    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_deduct(stock, tx, NULL, "x", 1, NULL, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    sqlock_stock_close(stock);
}
