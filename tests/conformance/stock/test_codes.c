/*
 * test_codes.c - calls on a stock return only the codes listed in
 * sqlock/stock.h, whatever the database answers
 */
#include "suite.h"

#include <stdio.h>

#include "support/contract.h"

/* The objects of one call of the tables below. */
struct sale {
    sqlock_stock *stock;
    const char *item;
    char order[96];
    sqlock_tx *tx;
};

/* The deadline of an operation: the database stays away. */
#define DEADLINE_MS (100 * SLOWNESS)

static sqlock_stock *open_stock(struct contract *c,
                                sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;

    options.strategy = strategy;
    options.attempts = 3;
    options.deadline_ms = DEADLINE_MS;
    assert_becomes_true(
        sqlock_stock_open(&stock, c->registry, &options, &c->f->err) == 0,
        PATIENCE_MS);
    return stock;
}

static void begin_sale(struct contract *c, sqlock_stock_strategy strategy)
{
    static struct sale sale;

    sale = (struct sale){.stock = open_stock(c, strategy),
                         .item = shop_item(c->f, 10)};
    (void)snprintf(sale.order, sizeof sale.order, "%s/codes", sale.item);
    c->state = &sale;
}

static void prepare_conditional(struct contract *c)
{
    begin_sale(c, SQLOCK_STOCK_CONDITIONAL);
}

static void prepare_pessimistic(struct contract *c)
{
    begin_sale(c, SQLOCK_STOCK_PESSIMISTIC);
}

static void prepare_optimistic(struct contract *c)
{
    begin_sale(c, SQLOCK_STOCK_OPTIMISTIC);
}

static void prepare_coalesced(struct contract *c)
{
    begin_sale(c, SQLOCK_STOCK_COALESCED);
}

static void prepare_reserved(struct contract *c)
{
    struct sale *sale;
    sqlock_stock_line line = {.quantity = 4};

    prepare_conditional(c);
    sale = c->state;
    line.item = sale->item;
    assert_becomes_true(sqlock_stock_reserve(sale->stock, NULL, sale->order,
                                             &line, 1, SHOP_LONG_MS, NULL,
                                             &c->f->err) == 0,
                        PATIENCE_MS);
}

static void prepare_due(struct contract *c)
{
    prepare_reserved(c);
    shop_let_time_pass(c->f, ((struct sale *)c->state)->order);
}

static void prepare_transaction(struct contract *c)
{
    struct sale *sale;

    prepare_conditional(c);
    sale = c->state;
    assert_becomes_true(
        sqlock_tx_begin(&sale->tx, c->registry, &c->f->err) == 0, PATIENCE_MS);
}

static void end_sale(struct contract *c)
{
    struct sale *sale = c->state;

    if (sale->tx != NULL)
        (void)sqlock_tx_rollback(sale->tx, NULL);
    sqlock_stock_close(sale->stock);
}

static int call_open(struct contract *c, sqlock_error *err)
{
    sqlock_stock *stock = NULL;
    int rc = sqlock_stock_open(&stock, c->registry, NULL, err);

    sqlock_stock_close(stock);
    return rc;
}

static int call_deduct(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_deduct(sale->stock, sale->tx, sale->order, sale->item,
                               3, NULL, err);
}

static int call_deduct_once(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_deduct(sale->stock, sale->tx, NULL, sale->item, 3, NULL,
                               err);
}

static int call_restore(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_restore(sale->stock, sale->tx, NULL, sale->item, 3,
                                NULL, err);
}

static int call_set(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_set(sale->stock, sale->tx, sale->order, sale->item, 3,
                            NULL, err);
}

static int call_many(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;
    sqlock_stock_line line = {.item = sale->item, .quantity = 11};
    int rc = sqlock_stock_deduct_many(sale->stock, sale->tx, sale->order, &line,
                                      1, NULL, err);

    return rc != SQLOCK_EINSUFFICIENT
               ? rc
               : sqlock_stock_restore_many(sale->stock, sale->tx, NULL, &line,
                                           1, NULL, err);
}

static int call_read(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;
    int64_t quantity;

    return sqlock_stock_read(sale->stock, sale->tx, sale->item, &quantity, err);
}

static int call_list(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;
    sqlock_stock_item *items = NULL;
    size_t count;
    int rc = sqlock_stock_list(sale->stock, &items, &count, err);

    sqlock_free(items);
    return rc;
}

static int call_reserve(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;
    sqlock_stock_line line = {.item = sale->item, .quantity = 3};

    return sqlock_stock_reserve(sale->stock, sale->tx, sale->order, &line, 1,
                                SHOP_LONG_MS, NULL, err);
}

static int call_claim(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_claim(sale->stock, sale->tx, sale->order, NULL, err);
}

static int call_cancel(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_cancel(sale->stock, sale->tx, sale->order, NULL, err);
}

static int call_expire(struct contract *c, sqlock_error *err)
{
    return sqlock_stock_expire(((struct sale *)c->state)->stock, NULL, err);
}

static int call_look(struct contract *c, sqlock_error *err)
{
    struct sale *sale = c->state;

    return sqlock_stock_status(sale->stock, sale->tx, sale->order, NULL, NULL,
                               err);
}

static int call_reap(struct contract *c, sqlock_error *err)
{
    return sqlock_stock_reap(((struct sale *)c->state)->stock, NULL, NULL, err);
}

#define CHANGE_CODES                                                           \
    (CODES_NOT_APPLIED | CODE(EUNCERTAIN) | CODE(ERETRY) | CODE(ECONFLICT) |   \
     CODE(ELOST))
#define IN_TRANSACTION (CODES_NOT_APPLIED | CODE(ERETRY) | CODE(ELOST))

#define CALL(what_, prepare_, call_, codes_)                                   \
    {                                                                          \
        .name = (what_), .databases = ON_ALL, .prepare = (prepare_),           \
        .call = (call_), .finish = end_sale, .codes = (codes_)                 \
    }

static const struct contract_call calls[] = {
    {.name = "open",
     .databases = ON_ALL,
     .call = call_open,
     .codes = CODES_NOT_APPLIED},
    CALL("deduct", prepare_conditional, call_deduct, CHANGE_CODES),
    CALL("deduct once", prepare_conditional, call_deduct_once, CHANGE_CODES),
    CALL("pessimistic", prepare_pessimistic, call_deduct, CHANGE_CODES),
    CALL("optimistic", prepare_optimistic, call_deduct, CHANGE_CODES),
    CALL("coalesced", prepare_coalesced, call_deduct, CHANGE_CODES),
    CALL("coalesced once", prepare_coalesced, call_deduct_once, CHANGE_CODES),
    CALL("restore", prepare_conditional, call_restore, CHANGE_CODES),
    CALL("set", prepare_conditional, call_set, CHANGE_CODES),
    CALL("many", prepare_conditional, call_many, CHANGE_CODES),
    CALL("read", prepare_conditional, call_read, CODES_NOT_APPLIED),
    CALL("list", prepare_conditional, call_list, CODES_NOT_APPLIED),
    CALL("reserve", prepare_conditional, call_reserve, CHANGE_CODES),
    CALL("claim", prepare_reserved, call_claim, CHANGE_CODES),
    CALL("cancel", prepare_reserved, call_cancel, CHANGE_CODES),
    CALL("expire", prepare_due, call_expire, CHANGE_CODES & ~CODE(ECONFLICT)),
    CALL("look", prepare_reserved, call_look, CODES_NOT_APPLIED),
    CALL("reap", prepare_conditional, call_reap,
         CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
    CALL("deduct in a transaction", prepare_transaction, call_deduct,
         IN_TRANSACTION),
    CALL("deduct once in a transaction", prepare_transaction, call_deduct_once,
         IN_TRANSACTION),
    CALL("reserve in a transaction", prepare_transaction, call_reserve,
         IN_TRANSACTION),
    CALL("read in a transaction", prepare_transaction, call_read,
         IN_TRANSACTION),
};

TEST(test_stock_keeps_to_its_codes)
{
    contract_check(f, calls, sizeof calls / sizeof *calls);
}
