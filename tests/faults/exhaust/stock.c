/*
 * stock.c - stock operations: the quantity is as the answers say, and an
 * operation that was refused or failed has changed nothing
 */
#include "exhaust.h"

#include <stdio.h>

#include "sqlock/stock.h"

#define BEFORE 10
#define SOLD 3
#define RESERVED 2
#define HOUR_MS INT64_C(3600000)

struct sale {
    int64_t there;     /* the quantity, according to the answers */
    bool is_uncertain; /* an answer was EUNCERTAIN: the quantity may differ */
};

/* Stocks, open for all runs of a test: opening takes longer than selling. */
static sqlock_stock *seller;
static sqlock_stock *witness; /* of another registry */

static sqlock_stock *open_stock(sqlock_registry *registry,
                                sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;
    sqlock_error err = {0};

    options.strategy = strategy;
    options.deadline_ms = 1000 * SLOWNESS;
    assert_lock_ok(sqlock_stock_open(&stock, registry, &options, &err), &err);
    return stock;
}

static void make_tables(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    assert_ok(sqlock_stock_schema_create(f->url, &options, &f->err));
}

static void drop_tables(struct fixture *f)
{
    static const char *const tables[] = {"STOCK_ENTRY", "STOCK_RESERVATION",
                                         "STOCK", "DONE"};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        (void)sql_try(&f->sql, NULL, "DROP TABLE %s%s", f->prefix, tables[i]);
}

/* -------------------------------------------------------------- opening -- */

static void act_open(struct fixture *f, void *state)
{
    sqlock_stock *stock = (sqlock_stock *)state; /* not NULL */
    sqlock_error err = {0};
    int rc;

    rc = sqlock_stock_open(&stock, f->a, NULL, &err);
    if (exhaust_expect(rc, &err))
        sqlock_stock_close(stock);
    else
        assert_null(stock);
}

/* No check of its own: each run opens the stock again. */
static void check_open(struct fixture *f, void *state)
{
    (void)f;
    (void)state;
}

TEST(test_opening_a_stock)
{
    static const struct experiment experiment = {
        .act = act_open,
        .check = check_open,
        .state_bytes = sizeof(struct sale),
    };

    make_tables(f);
    exhaust_all(f, &experiment);
    drop_tables(f);
}

/* ----------------------------------------------------------- operations -- */

static void prepare_sale(struct fixture *f, void *state)
{
    struct sale *sale = state;

    assert_ok(
        sqlock_stock_set(witness, NULL, NULL, f->name, BEFORE, NULL, &f->err));
    sale->there = BEFORE;
}

/* Return whether the operation was done; if so, count its change of the
 * quantity. */
static bool note(struct sale *sale, int rc, int64_t change,
                 const sqlock_error *err)
{
    if (!exhaust_expect(rc, err)) {
        sale->is_uncertain = sale->is_uncertain || rc == SQLOCK_EUNCERTAIN;
        return false;
    }
    sale->there += change;
    return true;
}

static void act_sale(struct fixture *f, void *state)
{
    struct sale *sale = state;
    sqlock_stock_line line = {.item = f->name, .quantity = RESERVED};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};
    char order[128];
    int64_t read = 0;
    int rc;

    (void)snprintf(order, sizeof order, "%s sold", f->name);
    rc = sqlock_stock_deduct(seller, NULL, order, f->name, SOLD, &answer, &err);
    if (note(sale, rc, -SOLD, &err))
        assert_int_equal(answer.left, sale->there);
    rc = sqlock_stock_restore(seller, NULL, NULL, f->name, 1, NULL, &err);
    (void)note(sale, rc, 1, &err);
    rc = sqlock_stock_read(seller, NULL, f->name, &read, &err);
    if (note(sale, rc, 0, &err) && !sale->is_uncertain)
        assert_int_equal(read, sale->there);
    (void)snprintf(order, sizeof order, "%s reserved", f->name);
    rc = sqlock_stock_reserve(seller, NULL, order, &line, 1, HOUR_MS, NULL,
                              &err);
    if (!note(sale, rc, -RESERVED, &err))
        return;
    rc = sqlock_stock_cancel(seller, NULL, order, NULL, &err);
    (void)note(sale, rc, RESERVED, &err);
}

/* Check the quantity, and that another registry can deduct from the item. */
static void check_sale(struct fixture *f, void *state)
{
    struct sale *sale = state;
    sqlock_error err = {0};
    int64_t there = 0;
    int rc;

    rc = sqlock_stock_read(witness, NULL, f->name, &there, &err);
    assert_lock_ok(rc, &err);
    if (!sale->is_uncertain)
        assert_int_equal(there, sale->there);
    rc = sqlock_stock_deduct(witness, NULL, NULL, f->name, 1, NULL, &err);
    assert_lock_ok(rc, &err);
}

static void exhaust_sale(struct fixture *f, sqlock_stock_strategy strategy)
{
    static const struct experiment experiment = {
        .prepare = prepare_sale,
        .act = act_sale,
        .check = check_sale,
        .state_bytes = sizeof(struct sale),
    };

    make_tables(f);
    seller = open_stock(f->a, strategy);
    witness = open_stock(f->b, SQLOCK_STOCK_CONDITIONAL);
    exhaust_all(f, &experiment);
    sqlock_stock_close(seller);
    sqlock_stock_close(witness);
    drop_tables(f);
}

TEST(test_a_sale)
{
    exhaust_sale(f, SQLOCK_STOCK_CONDITIONAL);
}

TEST(test_a_sale_by_a_leader)
{
    exhaust_sale(f, SQLOCK_STOCK_COALESCED);
}
