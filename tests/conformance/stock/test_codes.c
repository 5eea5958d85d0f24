/*
 * test_codes.c - calls on a stock return only the codes listed in
 * sqlock/stock.h, whatever the database answers; and a commit with an unknown
 * outcome is reported as such
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/contract.h"
#include "support/tap.h"

/* The objects of one call of the tables below. */
struct sale {
    sqlock_stock *stock;
    const char *item;
    char order[96];
    sqlock_tx *tx;
};

/* The deadline of an operation: short where the database stays away; long where
 * the database is there again, so that a busy machine finds the outcome out. */
#define HASTY_MS (100 * SLOWNESS)
#define AMPLE_MS 10000
static uint32_t deadline_ms = HASTY_MS;

static sqlock_stock *open_stock(struct contract *c,
                                sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;

    options.strategy = strategy;
    options.buckets = 2;
    options.attempts = 3;
    options.deadline_ms = deadline_ms;
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

static void prepare_buckets(struct contract *c)
{
    begin_sale(c, SQLOCK_STOCK_BUCKETS);
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
    CALL("buckets", prepare_buckets, call_deduct, CHANGE_CODES),
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

static void test_stock_keeps_to_its_codes(void **state)
{
    contract_check(*state, calls, sizeof calls / sizeof *calls);
}

/* Another transaction has the item's row locked: the server's limit of time
 * ends the statements, and the result is EBUSY.  If a busy machine brings the
 * server's answer too late (ELOST), try again. */
static void test_a_locked_item_is_busy(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct contract c = {.f = f};
    int64_t until = check_deadline_ns(PATIENCE_MS);
    char table[64];
    int rc;

    options.statement_timeout_ms = fixture_is_oracles(f) ? 5000 : 2000;
    c.registry = fixture_registry(f, &options);
    prepare_conditional(&c);
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_run(&f->sql, "UPDATE %s SET VERSION = 1 WHERE ITEM = '%s'",
                  shop_table(f, "STOCK", table),
                  ((struct sale *)c.state)->item);
    do
        rc = call_reserve(&c, &f->err);
    while (rc == SQLOCK_ELOST && check_pause(until));
    assert_int_equal(sql_rollback(&f->sql), 0);
    assert_fails(SQLOCK_EBUSY, rc);
    end_sale(&c);
    registry_end(c.registry);
}

/* --- a commit with an unknown outcome --- */

static unsigned commits;
static bool is_gone; /* no database from the first commit on */

static int lose_commit(void *context, const struct tap_event *event, int rc)
{
    (void)context;
    if (event->call != TAP_COMMIT || rc < 0 || commits++ > 0)
        return rc;
    return SQLOCK_EUNCERTAIN;
}

static int go_away(void *context, const struct tap_event *event)
{
    (void)context;
    (void)event;
    return is_gone && commits > 0 ? SQLOCK_EUNREACHABLE : 0;
}

static const struct {
    const char *name;
    void (*prepare)(struct contract *c);
    int (*call)(struct contract *c, sqlock_error *err);
    int found_out; /* the result, if the database is there again */
    int64_t there; /* the quantity, after the call was carried out once */
} losses[] = {
    {"deduct", prepare_pessimistic, call_deduct, 0, 7},
    {"deduct once", prepare_pessimistic, call_deduct_once, SQLOCK_EUNCERTAIN,
     7},
    {"restore", prepare_conditional, call_restore, SQLOCK_EUNCERTAIN, 13},
    {"set", prepare_conditional, call_set, 0, 3},
    {"reserve", prepare_conditional, call_reserve, 0, 7},
    {"claim", prepare_reserved, call_claim, 0, 6},
    {"cancel", prepare_reserved, call_cancel, 0, 10},
    {"expire", prepare_due, call_expire, 0, 10},
};

static void test_F34_a_commit_that_nobody_knows_of_is_told(void **state)
{
    struct fixture *f = *state;
    struct contract c = {.f = f, .options = fixture_options(f)};

    c.registry = fixture_tapped(f, &c.options);
    for (size_t i = 0; i < 2 * sizeof losses / sizeof *losses; i++) {
        int expected = losses[i / 2].found_out;
        int rc;

        is_gone = i % 2 == 1;
        deadline_ms = is_gone ? HASTY_MS : AMPLE_MS;
        print_message("%s%s\n", losses[i / 2].name, is_gone ? ", gone" : "");
        losses[i / 2].prepare(&c);
        commits = 0;
        tap_hooks(go_away, lose_commit, NULL);
        rc = losses[i / 2].call(&c, &f->err);
        tap_hooks(NULL, NULL, NULL);
        assert_code(is_gone ? SQLOCK_EUNCERTAIN : expected, rc, &f->err);
        assert_int_equal(shop_there(f, ((struct sale *)c.state)->item),
                         losses[i / 2].there);
        end_sale(&c);
    }
    deadline_ms = HASTY_MS;
    registry_end(c.registry);
}

/* Group Replication returns error 3100 also for a COMMIT that the group carries
 * out.  Here a trigger raises it, in a statement that commits by itself. */
static void
test_F34_a_refusal_by_a_hook_of_the_commit_is_uncertain(void **state)
{
    struct fixture *f = *state;
    struct contract c = {.f = f, .options = fixture_options(f)};
    char table[64];
    int rc;

    c.registry = fixture_registry(f, &c.options);
    prepare_conditional(&c);
    (void)shop_table(f, "STOCK", table);
    (void)sql_run(&f->sql,
                  "CREATE TRIGGER %s_HOOK BEFORE UPDATE ON %s FOR EACH ROW "
                  "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 3100",
                  table, table);
    rc = call_deduct_once(&c, &f->err);
    (void)sql_run(&f->sql, "DROP TRIGGER %s_HOOK", table);
    assert_fails(SQLOCK_EUNCERTAIN, rc);
    end_sale(&c);
    registry_end(c.registry);
}

static const struct test tests[] = {
    TEST(test_stock_keeps_to_its_codes),
    TEST(test_a_locked_item_is_busy),
    TEST(test_F34_a_commit_that_nobody_knows_of_is_told),
    TEST_ON(test_F34_a_refusal_by_a_hook_of_the_commit_is_uncertain, ON_MYSQL,
            0),
};

const struct topic topic_codes = TOPIC(tests);
