/*
 * test_transactions.c - stock in a transaction of the application: operations
 * are done when the transaction commits, and a refusal leaves it as it was
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/app.h"
#include "support/tap.h"
#include "support/workers.h"

static sqlock_tx *begin(struct fixture *f)
{
    sqlock_tx *tx = NULL;

    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    return tx;
}

static void commit(struct fixture *f, sqlock_tx *tx)
{
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

/* Do other work in the transaction: set the item's VERSION to 77.  note_of()
 * reads it. */
static void write_note(struct fixture *f, sqlock_tx *tx, const char *item)
{
    char table[64];
    char sql[200];
    sqlock_value value = sqlock_text(item);

    (void)snprintf(sql, sizeof sql, "UPDATE %s SET VERSION = 77 WHERE ITEM = ?",
                   shop_table(f, "STOCK", table));
    assert_ok(sqlock_tx_execute(tx, sql, &value, 1, NULL, &f->err));
}

static int64_t note_of(struct fixture *f, const char *item)
{
    char table[64];

    return sql_integer(&f->sql, "SELECT VERSION FROM %s WHERE ITEM = '%s'",
                       shop_table(f, "STOCK", table), item);
}

static void test_it_is_done_when_the_transaction_commits(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        const char *note = shop_item(f, 0);
        const char *order = shop_order(item, "order");
        for (int round = 0; round < 2; round++) {
            sqlock_tx *tx = begin(f);
            sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

            write_note(f, tx, note);
            assert_ok(sqlock_stock_deduct(stock, tx, order, item, 4, &answer,
                                          &f->err));
            assert_int_equal(answer.left, 6);
            assert_false(answer.is_duplicate);
            if (round == 0) {
                assert_ok(sqlock_tx_rollback(tx, &f->err));
                assert_int_equal(shop_there(f, item), 10);
                assert_int_equal(note_of(f, note), 0);
            } else {
                commit(f, tx);
            }
        }
        assert_stock(f, item, 6, -4);
        assert_int_equal(note_of(f, note), 77);
        sqlock_stock_close(stock);
    }
}

static void test_a_refusal_leaves_the_transaction_as_it_was(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        const char *few = shop_item(f, 1);
        const char *note = shop_item(f, 0);
        sqlock_stock_line lines[] = {{.item = item, .quantity = 2},
                                     {.item = few, .quantity = 2}};
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        sqlock_tx *tx = begin(f);
        const char *order = shop_order(item, "order");
        write_note(f, tx, note);
        assert_fails(
            SQLOCK_EINSUFFICIENT,
            sqlock_stock_deduct(stock, tx, NULL, item, 11, &answer, &f->err));
        assert_int_equal(answer.left, 10);
        assert_fails(SQLOCK_EINSUFFICIENT,
                     sqlock_stock_deduct_many(stock, tx, order, lines, 2,
                                              &answer, &f->err));
        assert_int_equal(answer.line, 1);
        assert_fails(SQLOCK_ENOTFOUND,
                     sqlock_stock_deduct(stock, tx, NULL, "no such item", 1,
                                         &answer, &f->err));
        assert_fails(SQLOCK_EINSUFFICIENT,
                     sqlock_stock_deduct_many(stock, tx, order, lines, 2,
                                              &answer, &f->err));
        assert_true(answer.is_duplicate);
        assert_fails(SQLOCK_EORDER, sqlock_stock_deduct(stock, tx, order, item,
                                                        1, &answer, &f->err));
        assert_ok(
            sqlock_stock_deduct(stock, tx, NULL, item, 3, &answer, &f->err));
        commit(f, tx);
        assert_int_equal(note_of(f, note), 77);
        assert_int_equal(shop_there(f, item), 7);
        assert_int_equal(shop_there(f, few), 1);
        sqlock_stock_close(stock);
    }
}

static void test_it_finds_what_is_in_buckets(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        sqlock_tx *tx;

        shop_spread(f, item);
        tx = begin(f);
        assert_ok(
            sqlock_stock_deduct(stock, tx, NULL, item, 7, &answer, &f->err));
        assert_int_equal(answer.left, 2);
        assert_fails(
            SQLOCK_EINSUFFICIENT,
            sqlock_stock_deduct(stock, tx, NULL, item, 3, &answer, &f->err));
        assert_int_equal(answer.left, 2);
        commit(f, tx);
        assert_int_equal(shop_there(f, item), 2);
        sqlock_stock_close(stock);
    }
}

/* The sum of the item's row and its buckets exceeds a 64-bit integer.  A
 * strategy that finds too little in the row empties the buckets, and then
 * cannot add their quantity to the row: the buckets must get it back. */
static void test_a_refusal_leaves_the_buckets_as_they_were(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 1000);
        sqlock_tx *tx;
        char table[64];

        shop_spread(f, item);
        shop_set_row(f, item, INT64_MAX - 1);
        tx = begin(f);
        assert_fails(SQLOCK_EINVAL,
                     sqlock_stock_deduct(stock, tx, NULL, item, INT64_MAX, NULL,
                                         &f->err));
        commit(f, tx);
        assert_int_equal(sql_integer(&f->sql,
                                     "SELECT SUM(QUANTITY) FROM %s "
                                     "WHERE ITEM = '%s'",
                                     shop_table(f, "STOCK_BUCKET", table),
                                     item),
                         999);
        sqlock_stock_close(stock);
    }
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

static void test_what_cannot_be_taken_back_is_not_committed(void **state)
{
    struct fixture *f = *state;
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

/* An order for two items is sent under the id of a reservation of one item.  It
 * is refused, and the reservation stays as it was. */
static void test_a_refusal_leaves_another_order_as_it_was(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    const char *note = shop_item(f, 0);
    sqlock_stock_line lines[] = {{.item = item, .quantity = 4},
                                 {.item = note, .quantity = 1}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_tx *tx;
    const char *order = shop_order(item, "order");

    assert_ok(sqlock_stock_reserve(stock, NULL, order, lines, 1, 60000, &answer,
                                   &f->err));
    tx = begin(f);
    write_note(f, tx, note);
    assert_fails(
        SQLOCK_EORDER,
        sqlock_stock_deduct_many(stock, tx, order, lines, 2, &answer, &f->err));
    assert_ok(sqlock_stock_reserve(stock, tx, order, lines, 1, 60000, &answer,
                                   &f->err));
    assert_true(answer.is_duplicate);
    commit(f, tx);
    assert_int_equal(note_of(f, note), 77);
    assert_ok(sqlock_stock_cancel(stock, NULL, order, &answer, &f->err));
    assert_int_equal(shop_there(f, item), 10);
    sqlock_stock_close(stock);
}

/* The application's connection is of its own client library, without anything
 * that the library's own connections have. */
static void test_on_an_adopted_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_stock_line lines[] = {{.item = item, .quantity = 2}};
    char reserved[200];
    char cancelled[200];
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_state is;
    sqlock_tx *tx = NULL;
    struct app app;
    const char *order = shop_order(item, "order");

    (void)snprintf(reserved, sizeof reserved, "%s-r", order);
    (void)snprintf(cancelled, sizeof cancelled, "%s-c", order);
    app_open(&app, f->database, f->url);
    assert_ok(sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    assert_ok(sqlock_stock_deduct(stock, tx, order, item, 4, &answer, &f->err));
    assert_fails(SQLOCK_EINSUFFICIENT,
                 sqlock_stock_deduct(stock, tx, NULL, item, 7, NULL, &f->err));
    assert_ok(sqlock_stock_reserve(stock, tx, reserved, lines, 1, 60000,
                                   &answer, &f->err));
    assert_ok(sqlock_stock_claim(stock, tx, reserved, &answer, &f->err));
    assert_ok(sqlock_stock_reserve(stock, tx, cancelled, lines, 1, 60000,
                                   &answer, &f->err));
    assert_ok(sqlock_stock_cancel(stock, tx, cancelled, &answer, &f->err));
    assert_ok(sqlock_stock_status(stock, tx, reserved, &is, NULL, &f->err));
    assert_int_equal(is, SQLOCK_STOCK_CLAIMED);
    commit(f, tx);
    app_close(&app);
    assert_stock(f, item, 4, -6);
    sqlock_stock_close(stock);
}

static void test_a_transaction_of_another_registry_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
    sqlock_tx *tx = begin(f);

    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_deduct(stock, tx, NULL, "x", 1, NULL, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    sqlock_stock_close(stock);
}

/* --- two that cross --- */

struct crossing {
    sqlock_registry *registry;
    sqlock_stock *stock;
    const char *items[2];
    pthread_barrier_t both_have_one;
    atomic_int refused;
};

/* Deduct one of each item; the two threads do so in opposite order.  Begin
 * again after a deadlock. */
static int deduct_both(struct worker *worker)
{
    struct crossing *crossing = worker->context;
    int rc = SQLOCK_ERETRY;

    for (int tries = 0; rc != 0; tries++) {
        sqlock_tx *tx = NULL;

        worker_expect(worker, 0,
                      sqlock_tx_begin(&tx, crossing->registry, &worker->err));
        rc = sqlock_stock_deduct(crossing->stock, tx, NULL,
                                 crossing->items[worker->index], 1, NULL,
                                 &worker->err);
        if (tries == 0)
            (void)pthread_barrier_wait(&crossing->both_have_one);
        if (rc == 0)
            rc = sqlock_stock_deduct(crossing->stock, tx, NULL,
                                     crossing->items[1 - worker->index], 1,
                                     NULL, &worker->err);
        if (rc == 0)
            rc = sqlock_tx_commit(tx, &worker->err);
        else
            (void)sqlock_tx_rollback(tx, NULL);
        if (rc != 0 && rc != SQLOCK_ERETRY && rc != SQLOCK_EBUSY)
            return worker_fail(worker, "%d: %s", rc, worker->err.message);
        if (rc != 0)
            atomic_fetch_add(&crossing->refused, 1);
    }
    return 0;
}

static void test_a_deadlock_is_told_and_leaves_nothing_half_done(void **state)
{
    struct fixture *f = *state;
    struct crossing crossing = {
        .registry = f->a,
        .stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL),
        .items = {shop_item(f, 10), shop_item(f, 10)},
    };
    struct workers workers;

    (void)pthread_barrier_init(&crossing.both_have_one, NULL, 2);
    workers_start(&workers, 2, deduct_both, &crossing);
    workers_join(&workers);
    (void)pthread_barrier_destroy(&crossing.both_have_one);
    assert_true(crossing.refused > 0);
    assert_int_equal(shop_there(f, crossing.items[0]), 8);
    assert_int_equal(shop_there(f, crossing.items[1]), 8);
    sqlock_stock_close(crossing.stock);
}

static const struct test tests[] = {
    TEST(test_it_is_done_when_the_transaction_commits),
    TEST(test_a_refusal_leaves_the_transaction_as_it_was),
    TEST(test_it_finds_what_is_in_buckets),
    TEST(test_a_refusal_leaves_the_buckets_as_they_were),
    TEST(test_what_cannot_be_taken_back_is_not_committed),
    TEST(test_a_refusal_leaves_another_order_as_it_was),
    TEST(test_on_an_adopted_connection),
    TEST(test_a_transaction_of_another_registry_is_refused),
    TEST_ON(test_a_deadlock_is_told_and_leaves_nothing_half_done, ON_SERVERS,
            0),
};

const struct topic topic_transactions = TOPIC(tests);
