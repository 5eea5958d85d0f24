/*
 * test_buckets.c - the strategy BUCKETS: who deducts from which bucket, what it
 * sends for that, and what it tells
 */
#include "counter.h"

#include <string.h>

/* Return what is in a bucket; -1: there is no such bucket. */
static int64_t in_bucket(struct fixture *f, const char *item, int bucket)
{
    char table[64];

    return sql_integer(&f->sql,
                       "SELECT COALESCE(MAX(QUANTITY), -1) FROM %s "
                       "WHERE ITEM = '%s' AND BUCKET = %d",
                       shop_table(f, "STOCK_BUCKET", table), item, bucket);
}

#define TO_SETTLE 200
#define SALES 10

/* Two processes deduct in turns.  Each takes a bucket by chance, and leaves it
 * if the other one has the same, until each has one of its own. */
static void test_two_processes_come_to_different_buckets(void **state)
{
    struct fixture *f = *state;
    const int64_t there = 100000;
    const char *item = shop_item(f, there);
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stocks[2];
    int64_t before[2];

    options.strategy = SQLOCK_STOCK_BUCKETS;
    options.buckets = 2;
    assert_ok(sqlock_stock_open(&stocks[0], f->a, &options, &f->err));
    assert_ok(sqlock_stock_open(&stocks[1], f->b, &options, &f->err));
    for (int i = 0; i < TO_SETTLE + 2 * SALES; i++) {
        for (int k = 0; i == TO_SETTLE && k < 2; k++)
            before[k] = in_bucket(f, item, k);
        assert_ok(sqlock_stock_deduct(stocks[i % 2], NULL, NULL, item, 1, NULL,
                                      &f->err));
    }
    for (int k = 0; k < 2; k++)
        assert_int_equal(before[k] - in_bucket(f, item, k), SALES);
    assert_int_equal(shop_there(f, item), there - TO_SETTLE - 2 * SALES);
    for (int k = 0; k < 2; k++)
        sqlock_stock_close(stocks[k]);
}

static void test_few_pieces_are_in_few_buckets(void **state)
{
    struct fixture *f = *state;
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    const char *item = shop_item(f, 21);
    sqlock_stock *stock = NULL;

    options.strategy = SQLOCK_STOCK_BUCKETS;
    assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
    assert_ok(sqlock_stock_deduct(stock, NULL, NULL, item, 1, NULL, &f->err));
    assert_int_equal(in_bucket(f, item, 0), 10);
    assert_int_equal(in_bucket(f, item, 1), 10);
    for (int left = 19; left >= 0; left--) {
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

        assert_ok(
            sqlock_stock_deduct(stock, NULL, NULL, item, 1, &answer, &f->err));
        assert_int_equal(answer.left, left);
    }
    assert_fails(
        SQLOCK_EINSUFFICIENT,
        sqlock_stock_deduct(stock, NULL, NULL, item, 1, NULL, &f->err));
    sqlock_stock_close(stock);
}

/* While one thread's sale is held up, another one sells from another bucket of
 * the process. */
static void test_a_sale_does_not_wait_for_one_that_is_held_up(void **state)
{
    struct fixture *f = *state;
    struct caller callers[2] = {{.quantity = 1}, {.quantity = 2}};
    struct worker workers[2];
    struct counter counter;

    counter_open(&counter, f, SQLOCK_STOCK_BUCKETS, 100);
    worker_start(&workers[0], counter_call, &callers[0]);
    assert_becomes_true(atomic_load(&counter.is_held), PATIENCE_MS);
    worker_start(&workers[1], counter_call, &callers[1]);
    worker_join(&workers[1]);
    assert_int_equal(callers[1].rc, 0);
    assert_int_equal(callers[1].answer.left, 98);
    (void)sem_post(&counter.go);
    worker_join(&workers[0]);
    assert_int_equal(callers[0].rc, 0);
    assert_int_equal(callers[0].answer.left, 97);
    counter_close(&counter);
}

/* The sum over the buckets costs a statement, or makes one slower: nobody pays
 * for it who does not ask. */
static void test_what_is_left_is_read_for_who_asks(void **state)
{
    struct fixture *f = *state;
    const char *item = shop_item(f, 1000);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_BUCKETS);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    const char *order = shop_order(item, "one");

    for (int i = 0; i < 3; i++) {
        tap_reset();
        assert_ok(
            sqlock_stock_deduct(stock, NULL, NULL, item, 1, NULL, &f->err));
    }
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    assert_ok(
        sqlock_stock_deduct(stock, NULL, NULL, item, 1, &answer, &f->err));
    assert_int_equal(answer.left, 996);

    /* A duplicate is told what the first call was. */
    assert_ok(sqlock_stock_deduct(stock, NULL, order, item, 1, NULL, &f->err));
    assert_ok(
        sqlock_stock_deduct(stock, NULL, order, item, 1, &answer, &f->err));
    assert_true(answer.is_duplicate);
    assert_int_equal(answer.left, -1);
    order = shop_order(item, "two");
    for (int i = 0; i < 2; i++) {
        assert_ok(
            sqlock_stock_deduct(stock, NULL, order, item, 1, &answer, &f->err));
        assert_int_equal(answer.is_duplicate, i > 0);
        assert_int_equal(answer.left, 994);
    }
    sqlock_stock_close(stock);
    registry_end(registry);
}

/* A statement of its own reads what is left, with the buckets, for who asks. */
static void test_a_restore_reads_what_is_left_for_who_asks(void **state)
{
    struct fixture *f = *state;
    const char *item = shop_item(f, 10);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

    shop_spread(f, item);
    for (int left = 14; left <= 24; left += 5) {
        tap_reset();
        assert_ok(
            sqlock_stock_restore(stock, NULL, NULL, item, 5, &answer, &f->err));
        assert_int_equal(answer.left, left);
    }
    assert_int_equal(tap_count(TAP_EXECUTE), 2);
    tap_reset();
    assert_ok(sqlock_stock_restore(stock, NULL, NULL, item, 5, NULL, &f->err));
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    sqlock_stock_close(stock);
    registry_end(registry);
}

/* The end of a reservation tells nobody what is left: besides the reservation,
 * its entries are read and marked, and the item's row is added to. */
static void test_the_end_of_a_reservation_reads_no_sum(void **state)
{
    struct fixture *f = *state;
    const char *item = shop_item(f, 10);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);

    tap_reset();
    assert_ok(sqlock_stock_cancel(stock, NULL, order, &answer, &f->err));
    assert_int_equal(tap_count(TAP_EXECUTE), 4);
    assert_int_equal(answer.left, -1);
    assert_stock(f, item, 10, 0);
    sqlock_stock_close(stock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_two_processes_come_to_different_buckets, ON_SERVERS, 0),
    TEST(test_few_pieces_are_in_few_buckets),
    TEST_ON(test_a_sale_does_not_wait_for_one_that_is_held_up, ON_SERVERS, 0),
    TEST(test_what_is_left_is_read_for_who_asks),
    TEST(test_a_restore_reads_what_is_left_for_who_asks),
    TEST(test_the_end_of_a_reservation_reads_no_sum),
};

const struct topic topic_buckets = TOPIC(tests);
