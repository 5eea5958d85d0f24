/*
 * test_orders.c - an order that is sent again gets its first answer, by each
 * strategy; and all items of an order are deducted, or none
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

static void send_twice(struct fixture *f, sqlock_stock *stock,
                       const char *order, const char *item, int64_t quantity,
                       int expected, int64_t left)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

    for (int i = 0; i < 2; i++) {
        int rc = sqlock_stock_deduct(stock, NULL, order, item, quantity,
                                     &answer, &f->err);

        assert_int_equal(rc, expected);
        assert_int_equal(answer.left, left);
        assert_int_equal(answer.is_duplicate, i == 1);
    }
}

static void test_the_same_order_gets_the_first_answer(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        const char *other = shop_item(f, 10);
        const char *done = shop_order(item, "done");
        const char *refused = shop_order(item, "refused");
        send_twice(f, stock, done, item, 4, 0, 6);
        send_twice(f, stock, refused, item, 7, SQLOCK_EINSUFFICIENT, 6);
        assert_ok(
            sqlock_stock_restore(stock, NULL, NULL, item, 100, NULL, &f->err));
        /* The answer stays, although there is enough now. */
        assert_fails(
            SQLOCK_EINSUFFICIENT,
            sqlock_stock_deduct(stock, NULL, refused, item, 7, NULL, &f->err));
        assert_fails(SQLOCK_EORDER, sqlock_stock_deduct(stock, NULL, done, item,
                                                        5, NULL, &f->err));
        assert_fails(
            SQLOCK_EORDER,
            sqlock_stock_deduct(stock, NULL, done, other, 4, NULL, &f->err));
        assert_fails(
            SQLOCK_EORDER,
            sqlock_stock_restore(stock, NULL, done, item, 4, NULL, &f->err));
        assert_int_equal(shop_there(f, item), 106);
        assert_int_equal(shop_there(f, other), 10);
        assert_int_equal(shop_sum(f, item), -4);
        sqlock_stock_close(stock);
    }
}

/* After the order's change, a CHECK of the application's table would refuse the
 * same change: sent again, the order gets its first answer all the same. */
static void test_an_order_at_a_limit_gets_the_first_answer(void **state)
{
    struct fixture *f = *state;
    char table[64];

    shop_make_goods(f, "bounded", table,
                    "id VARCHAR(80) PRIMARY KEY, "
                    "num INTEGER CHECK (num BETWEEN 5 AND 120)");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('w', 10)", table);
    each_strategy
    {
        sqlock_stock_options options = shop_described(table);
        sqlock_stock *stock = NULL;
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        char order[80];

        if (strategy == SQLOCK_STOCK_BUCKETS) /* only on sqlock's table */
            continue;
        options.strategy = strategy;
        assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
        (void)snprintf(order, sizeof order, "%s/%d", table, (int)strategy);
        send_twice(f, stock, order, "w", 5, 0, 5);
        (void)sql_run(&f->sql, "UPDATE %s SET num = 115", table);
        (void)snprintf(order, sizeof order, "%s/up/%d", table, (int)strategy);
        for (int i = 0; i < 2; i++) {
            assert_ok(sqlock_stock_restore(stock, NULL, order, "w", 5, &answer,
                                           &f->err));
            assert_int_equal(answer.left, 120);
            assert_int_equal(answer.is_duplicate, i == 1);
        }
        (void)sql_run(&f->sql, "UPDATE %s SET num = 10", table);
        sqlock_stock_close(stock);
    }
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

static void test_an_order_at_the_end_of_a_number_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, INT64_MAX - 5);
    const char *order = shop_order(item, "last");
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

    for (int i = 0; i < 2; i++) {
        assert_ok(sqlock_stock_restore(stock, NULL, order, item, 5, &answer,
                                       &f->err));
        assert_true(answer.left == INT64_MAX);
        assert_int_equal(answer.is_duplicate, i == 1);
    }
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_restore(stock, NULL, shop_order(item, "more"),
                                      item, 5, NULL, &f->err));
    sqlock_stock_close(stock);
}

static void test_restoring_and_setting_twice_happens_once(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    const char *added = shop_order(item, "added");
    const char *set = shop_order(item, "set");

    for (int i = 0; i < 2; i++) {
        assert_ok(sqlock_stock_restore(stock, NULL, added, item, 5, &answer,
                                       &f->err));
        assert_int_equal(answer.left, 15);
        assert_int_equal(answer.is_duplicate, i == 1);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(
            sqlock_stock_set(stock, NULL, set, item, 3, &answer, &f->err));
        assert_int_equal(answer.left, 3);
        if (i == 0)
            assert_ok(
                sqlock_stock_deduct(stock, NULL, NULL, item, 1, NULL, &f->err));
    }
    assert_stock(f, item, 2, -7);
    sqlock_stock_close(stock);
}

/* --- one order sent by many at once --- */

#define SENDERS 16

struct senders {
    sqlock_stock *stocks[2]; /* of different registries */
    const char *item;
    const char *order;
};

static int send_one(struct worker *worker)
{
    struct senders *senders = worker->context;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

    worker_expect(worker, 0,
                  sqlock_stock_deduct(senders->stocks[worker->index % 2], NULL,
                                      senders->order, senders->item, 2, &answer,
                                      &worker->err));
    if (answer.left != 98)
        return worker_fail(worker, "left is %lld", (long long)answer.left);
    return 0;
}

static void test_F34_many_who_send_one_order_deduct_once(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        struct workers workers;
        struct senders senders = {
            .stocks = {shop_open_at(f->a, strategy),
                       shop_open_at(f->b, strategy)},
            .item = shop_item(f, 100),
        };
        senders.order = shop_order(senders.item, "one");
        workers_start(&workers, SENDERS, send_one, &senders);
        workers_join(&workers);
        assert_stock(f, senders.item, 98, -2);
        sqlock_stock_close(senders.stocks[0]);
        sqlock_stock_close(senders.stocks[1]);
    }
}

/* --- the answer is lost --- */

struct loss {
    bool is_in_transaction;
    bool is_lost;
};

/* Lose the answer to the first commit: a COMMIT, or a write outside of a
 * transaction. */
static int lose_commit(void *context, const struct tap_event *event, int rc)
{
    struct loss *loss = context;
    bool writes = event->call == TAP_EXECUTE && event->text != NULL &&
                  strstr(event->text, "UPDATE ") != NULL &&
                  (event->affected > 0 || strstr(event->text, "WITH ") != NULL);

    if (event->call == TAP_BEGIN)
        loss->is_in_transaction = true;
    if (rc != 0 || loss->is_lost ||
        (event->call != TAP_COMMIT && (!writes || loss->is_in_transaction)))
        return rc;
    loss->is_lost = true;
    return SQLOCK_EUNCERTAIN;
}

static void test_F34_a_lost_commit_is_found_out_by_its_order(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);

    each_strategy
    {
        sqlock_stock *stock = shop_open_at(registry, strategy);
        const char *item = shop_item(f, 100);
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        struct loss loss = {false, false};
        /* With BUCKETS, spread the item before an answer is lost. */
        assert_ok(
            sqlock_stock_deduct(stock, NULL, NULL, item, 1, NULL, &f->err));
        tap_reset();
        tap_hooks(NULL, lose_commit, &loss);
        assert_ok(sqlock_stock_deduct(stock, NULL, shop_order(item, "lost"),
                                      item, 4, &answer, &f->err));
        assert_true(loss.is_lost);
        assert_true(answer.attempts > 1);
        assert_int_equal(answer.left, 95);
        assert_int_equal(shop_there(f, item), 95);

        /* Without an order id the outcome stays unknown. */
        loss = (struct loss){false, false};
        assert_fails(
            SQLOCK_EUNCERTAIN,
            sqlock_stock_deduct(stock, NULL, NULL, item, 5, &answer, &f->err));
        assert_int_equal(shop_there(f, item), 90);
        tap_hooks(NULL, NULL, NULL);
        sqlock_stock_close(stock);
    }
    registry_end(registry);
}

/* --- several items --- */

static void test_several_items_are_all_done_or_none(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *many = shop_item(f, 100);
        const char *few = shop_item(f, 3);
        sqlock_stock_line lines[] = {{.item = few, .quantity = 2},
                                     {.item = many, .quantity = 10}};
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        const char *order = shop_order(many, "several");
        const char *refused = shop_order(many, "refused");
        for (int i = 0; i < 2; i++) {
            assert_ok(sqlock_stock_deduct_many(stock, NULL, order, lines, 2,
                                               &answer, &f->err));
            assert_int_equal(lines[0].left, 1);
            assert_int_equal(lines[1].left, 90);
            assert_int_equal(answer.is_duplicate, i == 1);
        }
        for (int i = 0; i < 2; i++) {
            assert_fails(SQLOCK_EINSUFFICIENT,
                         sqlock_stock_deduct_many(stock, NULL, refused, lines,
                                                  2, &answer, &f->err));
            assert_int_equal(answer.line, 0);
            assert_int_equal(answer.left, 1);
            assert_int_equal(lines[0].result, SQLOCK_EINSUFFICIENT);
            assert_int_equal(lines[0].left, 1);
            assert_int_equal(lines[1].result, SQLOCK_ECANCELED);
        }
        lines[0].item = "no such item";
        assert_fails(SQLOCK_ENOTFOUND,
                     sqlock_stock_deduct_many(stock, NULL, NULL, lines, 2,
                                              &answer, &f->err));
        assert_int_equal(answer.line, 0);
        assert_int_equal(shop_there(f, many), 90);
        assert_int_equal(shop_there(f, few), 1);
        assert_int_equal(shop_sum(f, many), -10);
        sqlock_stock_close(stock);
    }
}

/* F34: an order for two items is sent under the id of a reservation of one
 * item.  It is refused, and adds no entry to the reservation's. */
static void test_a_refused_order_adds_nothing_to_another(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        sqlock_stock_line lines[] = {{.item = item, .quantity = 4},
                                     {.item = shop_item(f, 0), .quantity = 1}};
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        const char *order = shop_order(item, "reserved");
        assert_ok(sqlock_stock_reserve(stock, NULL, order, lines, 1, 60000,
                                       &answer, &f->err));
        assert_fails(SQLOCK_EORDER,
                     sqlock_stock_deduct_many(stock, NULL, order, lines, 2,
                                              &answer, &f->err));
        assert_ok(sqlock_stock_reserve(stock, NULL, order, lines, 1, 60000,
                                       &answer, &f->err));
        assert_true(answer.is_duplicate);
        assert_ok(sqlock_stock_cancel(stock, NULL, order, &answer, &f->err));
        assert_int_equal(shop_there(f, item), 10);
        sqlock_stock_close(stock);
    }
}

/* Delete all entries just before they are read, after the order has met its
 * entry. */
static int remove_entries(void *context, const struct tap_event *event)
{
    struct fixture *f = context;
    char table[64];

    if (event->call == TAP_EXECUTE && event->text != NULL &&
        strstr(event->text, "BALANCE FROM ") != NULL)
        (void)sql_run(&f->sql, "DELETE FROM %s",
                      shop_table(f, "STOCK_ENTRY", table));
    return 0;
}

static void test_a_refused_order_that_is_just_forgotten_is_new(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    const char *order = shop_order(item, "forgotten");
    int rc;

    for (int i = 0; i < 2; i++) {
        tap_hooks(i == 0 ? NULL : remove_entries, NULL, f);
        rc =
            sqlock_stock_deduct(stock, NULL, order, item, 11, &answer, &f->err);
        tap_hooks(NULL, NULL, NULL);
        assert_fails(SQLOCK_EINSUFFICIENT, rc);
        assert_false(answer.is_duplicate);
        assert_int_equal(answer.left, 10);
    }
    sqlock_stock_close(stock);
    registry_end(registry);
}

#define CROSSING 8
#define ROUNDS 12

struct crossing {
    sqlock_stock *stocks[2];
    const char *items[2];
};

/* Deduct two items in one order.  Half of the threads name one item first, half
 * the other. */
static int cross(struct worker *worker)
{
    struct crossing *crossing = worker->context;
    unsigned first = worker->index % 2;

    for (int i = 0; i < ROUNDS; i++) {
        sqlock_stock_line lines[] = {
            {.item = crossing->items[first], .quantity = 1},
            {.item = crossing->items[1 - first], .quantity = 2}};
        char order[64];

        (void)snprintf(order, sizeof order, "%s/%u/%d", crossing->items[0],
                       worker->index, i);
        worker_expect(
            worker, 0,
            sqlock_stock_deduct_many(crossing->stocks[worker->index / 4], NULL,
                                     order, lines, 2, NULL, &worker->err));
    }
    return 0;
}

static void
test_orders_that_cross_do_not_deadlock_for_their_callers(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        struct workers workers;
        struct crossing crossing = {
            .stocks = {shop_open_at(f->a, strategy),
                       shop_open_at(f->b, strategy)},
            .items = {shop_item(f, 1000), shop_item(f, 1000)},
        };
        const int64_t each = CROSSING / 2 * ROUNDS * 3;
        workers_start(&workers, CROSSING, cross, &crossing);
        workers_join(&workers);
        for (int i = 0; i < 2; i++) {
            assert_stock(f, crossing.items[i], 1000 - each, -each);
            sqlock_stock_close(crossing.stocks[i]);
        }
    }
}

static const struct test tests[] = {
    TEST(test_the_same_order_gets_the_first_answer),
    TEST(test_an_order_at_a_limit_gets_the_first_answer),
    TEST(test_an_order_at_the_end_of_a_number_gets_its_answer),
    TEST(test_restoring_and_setting_twice_happens_once),
    TEST(test_F34_many_who_send_one_order_deduct_once),
    TEST(test_F34_a_lost_commit_is_found_out_by_its_order),
    TEST(test_several_items_are_all_done_or_none),
    TEST(test_a_refused_order_adds_nothing_to_another),
    TEST(test_a_refused_order_that_is_just_forgotten_is_new),
    TEST(test_orders_that_cross_do_not_deadlock_for_their_callers),
};

const struct topic topic_orders = TOPIC(tests);
