/*
 * test_answers.c - the answers of each strategy: done, with the quantity that
 * is left; insufficient, with the quantity that is there; no such item
 */
#include "suite.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

static void deduct(struct fixture *f, sqlock_stock *stock, const char *order,
                   const char *item, int64_t quantity, int expected,
                   int64_t left)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    int rc = sqlock_stock_deduct(stock, NULL, order, item, quantity, &answer,
                                 &f->err);

    if (expected == 0)
        assert_ok(rc);
    else
        assert_code(expected, rc, &f->err);
    assert_int_equal(answer.left, left);
    assert_false(answer.is_duplicate);
}

/* An addition goes to the item's row, while most of the item is in buckets. */
static void test_what_is_restored_is_told_with_what_is_in_buckets(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);

        shop_spread(f, item);
        for (int i = 0; i < 6; i++) {
            sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
            const char *order = i < 2 ? NULL : shop_order(item, "back");
            sqlock_tx *tx = NULL;

            if (i % 2 == 1)
                assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
            assert_ok(sqlock_stock_restore(stock, tx, order, item, 5, &answer,
                                           &f->err));
            if (tx != NULL)
                assert_ok(sqlock_tx_commit(tx, &f->err));
            assert_int_equal(answer.is_duplicate, i > 2);
            assert_int_equal(answer.left, i == 0 ? 14 : i == 1 ? 19 : 24);
        }
        assert_int_equal(shop_there(f, item), 24);
        sqlock_stock_close(stock);
    }
}

/* Another strategy than BUCKETS tells what is left in the item's row, which an
 * addition has filled, until it takes what is in the buckets. */
static void test_what_is_left_in_the_row_is_told_beside_buckets(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        int64_t beside = strategy == SQLOCK_STOCK_BUCKETS ? 9 : 0;
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);

        shop_spread(f, item);
        assert_ok(
            sqlock_stock_restore(stock, NULL, NULL, item, 5, NULL, &f->err));
        deduct(f, stock, NULL, item, 2, 0, 3 + beside);
        assert_int_equal(shop_read(f, stock, item), 12);
        deduct(f, stock, NULL, item, 4, 0, 8);
        deduct(f, stock, NULL, item, 9, SQLOCK_EINSUFFICIENT, 8);
        sqlock_stock_close(stock);
    }
}

/* The other strategies find quantities that were spread over buckets. */
static void test_other_strategies_find_what_is_in_buckets(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *spread = shop_open(f, SQLOCK_STOCK_BUCKETS);

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 41);
        char order[96];
        (void)snprintf(order, sizeof order, "gather/%s", item);
        deduct(f, spread, NULL, item, 1, 0, 40);
        deduct(f, stock, NULL, item, 30, 0, 10);
        deduct(f, spread, NULL, item, 1, 0, 9);
        deduct(f, stock, order, item, 9, 0, 0);
        assert_int_equal(shop_there(f, item), 0);
        sqlock_stock_close(stock);
    }
    sqlock_stock_close(spread);
}

/* A bucket that has too little is no reason to refuse while others have
 * more. */
static void test_nobody_is_refused_while_other_buckets_have_enough(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_BUCKETS);
    const char *item = shop_item(f, 100);
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

    for (int left = 99; left >= 0; left--)
        deduct(f, stock, NULL, item, 1, 0, left);
    deduct(f, stock, NULL, item, 1, SQLOCK_EINSUFFICIENT, 0);
    assert_ok(sqlock_stock_statistics(stock, &stats, &f->err));
    assert_true(stats.rebalances > 1);
    sqlock_stock_close(stock);
}

/* The list includes quantities that are in buckets. */
static void test_all_items_are_listed(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *spread = shop_open(f, SQLOCK_STOCK_BUCKETS);
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock_item *items = NULL;
    const char *names[] = {shop_item(f, 7), shop_item(f, 0)};
    size_t count = 0;
    int found = 0;

    deduct(f, spread, NULL, names[0], 2, 0, 5);
    assert_ok(sqlock_stock_list(stock, &items, &count, &f->err));
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(items[i - 1].name, items[i].name) < 0);
        for (int k = 0; k < 2; k++)
            if (strcmp(items[i].name, names[k]) == 0) {
                assert_int_equal(items[i].quantity, k == 0 ? 5 : 0);
                found++;
            }
    }
    assert_int_equal(found, 2);
    sqlock_free(items);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_list(stock, NULL, &count, &f->err));
    sqlock_stock_close(stock);
    sqlock_stock_close(spread);
}

/* The stock is opened with 32, 8 and 2 buckets.  Buckets beyond the new number
 * are emptied, so the quantity stays exact. */
static void test_a_stock_may_be_opened_with_fewer_buckets(void **state)
{
    struct fixture *f = *state;
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    const char *item = shop_item(f, 100);
    sqlock_stock *stock;

    options.strategy = SQLOCK_STOCK_BUCKETS;
    for (options.buckets = 32; options.buckets > 1; options.buckets /= 4) {
        int64_t there = shop_there(f, item);

        assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
        /* No bucket has 20, so the quantity is taken from all buckets. */
        deduct(f, stock, NULL, item, 20, 0, there - 20);
        assert_int_equal(shop_there(f, item), there - 20);
        sqlock_stock_close(stock);
    }
    stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    deduct(f, stock, NULL, item, 41, SQLOCK_EINSUFFICIENT, 40);
    deduct(f, stock, NULL, item, 40, 0, 0);
    sqlock_stock_close(stock);
}

/* --- many at once --- */

#define SELLERS 16
#define SALES 12

struct market {
    sqlock_stock *stocks[2]; /* of different registries */
    const char *item;
};

/* Half of the threads restore what they have deducted: that goes to the item's
 * row, and from there to the buckets while other threads deduct from them. */
static int take_and_bring(struct worker *worker)
{
    const struct market *market = worker->context;
    sqlock_stock *stock = market->stocks[worker->index % 2];

    for (int i = 0; i < SALES; i++) {
        worker_expect(worker, 0,
                      sqlock_stock_deduct(stock, NULL, NULL, market->item, 3,
                                          NULL, &worker->err));
        if (worker->index / 2 % 2 == 0)
            worker_expect(worker, 0,
                          sqlock_stock_restore(stock, NULL, NULL, market->item,
                                               3, NULL, &worker->err));
    }
    return 0;
}

static void test_buckets_are_rebalanced_under_load(void **state)
{
    struct fixture *f = *state;
    /* Enough for all deductions of the threads that restore nothing, and for
     * one of each other thread: no bucket has enough for long. */
    const int64_t there = SELLERS / 2 * (SALES + 1) * INT64_C(3);
    struct market market = {
        .stocks = {shop_open_at(f->a, SQLOCK_STOCK_BUCKETS),
                   shop_open_at(f->b, SQLOCK_STOCK_BUCKETS)},
        .item = shop_item(f, there),
    };
    struct workers workers;
    uint64_t rebalances = 0;

    workers_start(&workers, SELLERS, take_and_bring, &market);
    workers_join(&workers);
    assert_int_equal(shop_there(f, market.item), SELLERS / 2 * INT64_C(3));
    for (int i = 0; i < 2; i++) {
        sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

        assert_ok(sqlock_stock_statistics(market.stocks[i], &stats, &f->err));
        rebalances += stats.rebalances;
        sqlock_stock_close(market.stocks[i]);
    }
    print_message("%llu times\n", (unsigned long long)rebalances);
    assert_true(rebalances > 1);
}

/* A program that was built when the structs had fewer members: nothing is
 * written behind those that it has. */
static void
test_structs_are_as_large_as_the_callers_header_has_them(void **state)
{
    struct old_line {
        const char *item;
        int64_t quantity;
        int result;
    };
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *const items[] = {shop_item(f, 5), shop_item(f, 1)};
    struct old_line lines[] = {{items[0], 1, -1}, {items[1], 2, -1}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;
    sqlock_stock_line *given = (void *)lines;

    answer.size = offsetof(sqlock_stock_answer, is_duplicate);
    answer.attempts = 4711;
    assert_fails(SQLOCK_EINSUFFICIENT,
                 sqlock_stock_change_sized(
                     stock, NULL, SQLOCK_STOCK_DEDUCT, NULL, given, 2, 0,
                     &answer, offsetof(sqlock_stock_line, left), &f->err));
    assert_int_equal(lines[0].result, SQLOCK_ECANCELED);
    assert_int_equal(lines[1].result, SQLOCK_EINSUFFICIENT);
    assert_string_equal(lines[1].item, items[1]);
    assert_int_equal(answer.left, 1);
    assert_int_equal(answer.line, 1);
    assert_int_equal(answer.attempts, 4711);
    stats.size = offsetof(sqlock_stock_stats, retries);
    stats.retries = 4711;
    assert_ok(sqlock_stock_statistics(stock, &stats, &f->err));
    assert_int_equal(stats.operations, 1);
    assert_int_equal(stats.retries, 4711);
    reaped.size = offsetof(sqlock_stock_reaped, reservations);
    reaped.reservations = 4711;
    assert_ok(sqlock_stock_reap(stock, NULL, &reaped, &f->err));
    assert_int_equal(reaped.reservations, 4711);
    sqlock_stock_close(stock);
}

static void test_a_struct_without_its_size_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 5);
    sqlock_stock_line line = {.item = item, .quantity = 1};
    sqlock_stock_answer answer = {0};
    sqlock_stock_stats stats = {.size = sizeof stats + 1};
    sqlock_stock_reaped reaped = {0};

    assert_fails(SQLOCK_EINVAL, sqlock_stock_deduct(stock, NULL, NULL, item, 1,
                                                    &answer, &f->err));
    assert_contains(f->err.message, "SQLOCK_STOCK_ANSWER_INIT");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_claim(stock, NULL, "no/order", &answer, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_deduct_many(stock, NULL, NULL, &line, 1, &answer,
                                          &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_change_sized(stock, NULL, SQLOCK_STOCK_DEDUCT,
                                           NULL, &line, 1, 0, NULL,
                                           sizeof line + 1, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_stock_change_sized(
                                    stock, NULL, (sqlock_stock_change)3, NULL,
                                    &line, 1, 0, NULL, sizeof line, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_statistics(stock, &stats, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_stock_statistics(stock, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_reap(stock, NULL, &reaped, &f->err));
    assert_int_equal(shop_there(f, item), 5);
    sqlock_stock_close(stock);
}

/* No header has such a row: the item's address would be read by half, or the
 * result be written behind the row. */
static void test_a_row_that_ends_within_a_member_is_refused(void **state)
{
    static const size_t sizes[] = {0, 1, 3, 8, 9, 12, 16, 20, 25, 31};
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 5);
    sqlock_stock_line lines[] = {{.item = item, .quantity = 1},
                                 {.item = item, .quantity = 1}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_item *items;
    size_t i, count;

    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_fails(SQLOCK_EINVAL, sqlock_stock_change_sized(
                                        stock, NULL, SQLOCK_STOCK_DEDUCT, NULL,
                                        lines, 2, 0, NULL, sizes[i], &f->err));
    assert_string_equal(f->err.message,
                        "the size of sqlock_stock_line is 31, but 32 here: "
                        "give its sizeof, and do not use a library that is "
                        "older than the header");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_list_sized(stock, &items, &count, 9, &f->err));
    answer.size = offsetof(sqlock_stock_answer, left) + 1;
    assert_fails(SQLOCK_EINVAL, sqlock_stock_deduct(stock, NULL, NULL, item, 1,
                                                    &answer, &f->err));
    assert_int_equal(shop_there(f, item), 5);
    sqlock_stock_close(stock);
}

static const struct test tests[] = {
    TEST(test_a_row_that_ends_within_a_member_is_refused),
    TEST(test_structs_are_as_large_as_the_callers_header_has_them),
    TEST(test_a_struct_without_its_size_is_refused),
    TEST(test_what_is_restored_is_told_with_what_is_in_buckets),
    TEST(test_what_is_left_in_the_row_is_told_beside_buckets),
    TEST(test_all_items_are_listed),
    TEST(test_other_strategies_find_what_is_in_buckets),
    TEST(test_nobody_is_refused_while_other_buckets_have_enough),
    TEST(test_a_stock_may_be_opened_with_fewer_buckets),
    TEST(test_buckets_are_rebalanced_under_load),
};

const struct topic topic_answers = TOPIC(tests);
