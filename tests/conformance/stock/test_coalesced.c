/*
 * test_coalesced.c - the strategies COALESCED and BUCKETS combine threads: one
 * thread, the leader, deducts for all that wait (counter.h)
 */
#include "counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the answers in a round --- */

static void test_all_that_wait_are_served_in_one_round(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct caller callers[CALLERS_MAX];
        struct counter counter;

        counter_open(&counter, f, strategy, 1000);
        for (unsigned i = 0; i < CALLERS_MAX; i++)
            callers[i] = (struct caller){.quantity = 2};
        counter_queue(&counter, callers, CALLERS_MAX);
        counter_let_go(&counter);
        for (unsigned i = 0; i < CALLERS_MAX; i++)
            counter_expect(&counter, i, 0, 1000 - 2 * (int64_t)(i + 1));
        assert_int_equal(counter_stats(&counter).rounds, 2);
        assert_int_equal(counter_stats(&counter).combined, CALLERS_MAX);
        assert_int_equal(counter_stats(&counter).most_rounds, 2);
        assert_int_equal(shop_there(f, counter.item), 1000 - 2 * CALLERS_MAX);
        counter_close(&counter);
    }
}

/* A caller gets its quantity if the callers before it have left enough. */
static void serve_partly(struct fixture *f, sqlock_stock_strategy strategy,
                         bool has_orders)
{
    static const struct {
        int64_t quantity;
        int rc;
        int64_t left;
    } wants[] = {
        {1, 0, 9},
        {6, 0, 3},
        {5, SQLOCK_EINSUFFICIENT, 3},
        {3, 0, 0},
        {INT64_MAX, SQLOCK_EINSUFFICIENT, 0},
        {2, SQLOCK_EINSUFFICIENT, 0},
    };
    enum { COUNT = sizeof wants / sizeof *wants };
    struct caller callers[COUNT] = {{.order = NULL}};
    char orders[COUNT][96];
    struct counter counter;

    counter_open(&counter, f, strategy, 10);
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(orders[i], sizeof orders[i], "%s/%u", counter.item, i);
        callers[i].order = has_orders ? orders[i] : NULL;
        callers[i].quantity = wants[i].quantity;
    }
    counter_queue(&counter, callers, COUNT);
    counter_let_go(&counter);
    for (unsigned i = 0; i < COUNT; i++)
        counter_expect(&counter, i, wants[i].rc, wants[i].left);
    assert_int_equal(counter_stats(&counter).rounds, 2);
    assert_stock(f, counter.item, 0, has_orders ? -10 : 0);
    /* Each answer has been kept. */
    for (unsigned i = 0; has_orders && i < COUNT; i++) {
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        int rc =
            sqlock_stock_deduct(counter.stock, NULL, orders[i], counter.item,
                                wants[i].quantity, &answer, &f->err);

        assert_int_equal(rc, wants[i].rc);
        assert_int_equal(answer.left, wants[i].left);
        assert_true(answer.is_duplicate);
    }
    counter_close(&counter);
}

#define BATCH 2

/* Open a counter whose rounds have no more than two requests. */
static void open_pairs(struct counter *counter, struct fixture *f,
                       int64_t there)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;

    counter_open(counter, f, SQLOCK_STOCK_COALESCED, there);
    sqlock_stock_close(counter->stock);
    options.strategy = SQLOCK_STOCK_COALESCED;
    options.batch = BATCH;
    assert_ok(sqlock_stock_open(&counter->stock, counter->registry, &options,
                                &f->err));
}

/* The first round has one request, and no other round has more than two. */
static void test_no_round_has_more_than_a_batch(void **state)
{
    static const struct caller callers[] = {
        {.quantity = 1}, {.quantity = 2}, {.quantity = 3},
        {.quantity = 4}, {.quantity = 5}, {.quantity = 6},
    };
    struct fixture *f = *state;
    const unsigned count = sizeof callers / sizeof *callers;
    struct counter counter;

    open_pairs(&counter, f, 21);
    counter_queue(&counter, callers, count);
    counter_let_go(&counter);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(counter.callers[i].rc, 0);
    assert_int_equal(counter_stats(&counter).rounds, 4);
    assert_int_equal(counter_stats(&counter).combined, count);
    assert_stock(f, counter.item, 0, 0);
    counter_close(&counter);
}

/* A round begins with a deduction, unless it is known from the one before that
 * there is too little: then it reads first. */
static void test_nothing_is_written_for_who_is_known_to_get_none(void **state)
{
    static const struct {
        int64_t quantities[6];
        int writes;
    } rows[] = {
        {{5, 4, 4, 2, 1, 1}, 2}, /* the third round gets what is there */
        {{5, 4, 4, 3, 1, 1}, 3}, /* it is too much for one of its requests */
    };
    struct fixture *f = *state;

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        struct caller callers[6] = {{.order = NULL}};
        struct counter counter;

        for (size_t i = 0; i < 6; i++)
            callers[i].quantity = rows[row].quantities[i];
        open_pairs(&counter, f, 3);
        counter_queue(&counter, callers, 6);
        counter_let_go(&counter);
        assert_int_equal(counter_stats(&counter).rounds, 4);
        assert_int_equal(shop_there(f, counter.item), 0);
        assert_int_equal(atomic_load(&counter.writes), rows[row].writes);
        counter_close(&counter);
    }
}

static void test_partial_grants_are_exact(void **state)
{
    each_combined(*state)
    {
        serve_partly(*state, strategy, false);
        fixture_next(*state);
        serve_partly(*state, strategy, true);
        fixture_next(*state);
    }
}

/* Send no COMMIT, nor a write outside of a transaction, which commits by
 * itself; the answer is EUNCERTAIN. */
static int lose(void *context, const struct tap_event *event)
{
    bool *is_in_transaction = context;

    if (event->call == TAP_BEGIN || event->call == TAP_ROLLBACK)
        *is_in_transaction = event->call == TAP_BEGIN;
    return event->call == TAP_COMMIT ||
                   (counter_is_write(event) && !*is_in_transaction)
               ? SQLOCK_EUNCERTAIN
               : 0;
}

/* Each attempt of the operation is one round, which is not repeated up to
 * `attempts` times by itself. */
static void test_attempts_are_counted_once(void **state)
{
    struct fixture *f = *state;
    const char *item = shop_item(f, 10);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    bool is_in_transaction = false;

    options.strategy = SQLOCK_STOCK_COALESCED;
    options.attempts = 3;
    assert_ok(sqlock_stock_open(&stock, registry, &options, &f->err));
    tap_hooks(lose, NULL, &is_in_transaction);
    assert_int_equal(SQLOCK_EUNCERTAIN,
                     sqlock_stock_deduct(stock, NULL, shop_order(item, "one"),
                                         item, 1, &answer, &f->err));
    assert_int_equal(answer.attempts, 3);
    tap_hooks(NULL, NULL, NULL);
    sqlock_stock_close(stock);
    registry_end(registry);
}

/* The sum of the second round's requests exceeds a 64-bit integer.  Two of them
 * ask for more than there is, but the last one is served all the same. */
static void test_a_sum_beyond_a_number_hides_nobody(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct counter counter;

        counter_open(&counter, f, strategy, 100);
        counter_queue(&counter,
                      (const struct caller[]){{.quantity = 1},
                                              {.quantity = INT64_MAX},
                                              {.quantity = INT64_MAX},
                                              {.quantity = 7}},
                      4);
        counter_let_go(&counter);
        counter_expect(&counter, 1, SQLOCK_EINSUFFICIENT, 99);
        counter_expect(&counter, 2, SQLOCK_EINSUFFICIENT, 99);
        counter_expect(&counter, 3, 0, 92);
        assert_int_equal(shop_there(f, counter.item), 92);
        counter_close(&counter);
    }
}

/* A round has a known order twice, first with another quantity: that request
 * gets EORDER, and the other one the order's answer. */
static void test_an_order_is_not_judged_by_a_misuse_in_its_round(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        sqlock_stock *other = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
        struct counter counter;
        const char *order;

        counter_open(&counter, f, strategy, 10);
        order = shop_order(counter.item, "one");
        assert_ok(sqlock_stock_deduct(other, NULL, order, counter.item, 2, NULL,
                                      &f->err));
        counter_queue(&counter,
                      (const struct caller[]){{.quantity = 1},
                                              {.order = order, .quantity = 3},
                                              {.order = order, .quantity = 2}},
                      3);
        counter_let_go(&counter);
        counter_expect(&counter, 1, SQLOCK_EORDER, -1);
        counter_expect(&counter, 2, 0, 8);
        assert_true(counter.callers[2].answer.is_duplicate);
        assert_int_equal(shop_there(f, counter.item), 7);
        counter_close(&counter);
        sqlock_stock_close(other);
    }
}

static void test_one_order_twice_in_a_round_is_done_once(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct counter counter;
        const char *order;

        counter_open(&counter, f, strategy, 10);
        order = shop_order(counter.item, "one");
        counter_queue(&counter,
                      (const struct caller[]){{.quantity = 1},
                                              {.order = order, .quantity = 2},
                                              {.order = order, .quantity = 2},
                                              {.order = order, .quantity = 3},
                                              {.order = order, .quantity = 1}},
                      5);
        counter_let_go(&counter);
        counter_expect(&counter, 1, 0, 7);
        counter_expect(&counter, 2, 0, 7);
        assert_false(counter.callers[1].answer.is_duplicate);
        assert_true(counter.callers[2].answer.is_duplicate);
        counter_expect(&counter, 3, SQLOCK_EORDER, -1);
        counter_expect(&counter, 4, SQLOCK_EORDER, -1);
        assert_int_equal(shop_there(f, counter.item), 7);
        counter_close(&counter);
    }
}

static void test_a_refused_order_twice_in_a_round_is_judged_once(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct counter counter;
        const char *order;

        counter_open(&counter, f, strategy, 10);
        order = shop_order(counter.item, "much");
        counter_queue(&counter,
                      (const struct caller[]){{.quantity = 1},
                                              {.order = order, .quantity = 50},
                                              {.quantity = 5},
                                              {.order = order, .quantity = 50},
                                              {.order = order, .quantity = 4}},
                      5);
        counter_let_go(&counter);
        counter_expect(&counter, 1, SQLOCK_EINSUFFICIENT, 9);
        assert_false(counter.callers[1].answer.is_duplicate);
        counter_expect(&counter, 2, 0, 4);
        counter_expect(&counter, 3, SQLOCK_EINSUFFICIENT, 9);
        assert_true(counter.callers[3].answer.is_duplicate);
        counter_expect(&counter, 4, SQLOCK_EORDER, -1);
        assert_stock(f, counter.item, 4, 0);
        counter_close(&counter);
    }
}

/* An order in the round was done by another registry before. */
static void test_a_known_order_in_a_round_gets_its_answer(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        sqlock_stock *other = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
        struct counter counter;
        char order[2][96];

        counter_open(&counter, f, strategy, 10);
        for (int i = 0; i < 2; i++)
            (void)snprintf(order[i], sizeof order[i], "%s/%d", counter.item, i);
        assert_ok(sqlock_stock_deduct(other, NULL, order[0], counter.item, 2,
                                      NULL, &f->err));
        counter_queue(
            &counter,
            (const struct caller[]){{.quantity = 1},
                                    {.order = order[0], .quantity = 2},
                                    {.order = order[1], .quantity = 4},
                                    {.quantity = 1}},
            4);
        counter_let_go(&counter);
        counter_expect(&counter, 1, 0, 8);
        assert_true(counter.callers[1].answer.is_duplicate);
        counter_expect(&counter, 2, 0, 3);
        counter_expect(&counter, 3, 0, 2);
        assert_stock(f, counter.item, 2, -6);
        counter_close(&counter);
        sqlock_stock_close(other);
    }
}

/* --- failures --- */

static void test_the_leaders_error_reaches_every_follower(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct counter counter;

        counter_open(&counter, f, strategy, 100);
        counter.fault = REFUSE;
        counter_queue(&counter,
                      (const struct caller[]){
                          {.quantity = 1}, {.quantity = 2}, {.quantity = 3}},
                      3);
        counter_let_go(&counter);
        counter_expect(&counter, 0, 0, 99);
        counter_expect(&counter, 1, SQLOCK_EACCESS, -1);
        counter_expect(&counter, 2, SQLOCK_EACCESS, -1);
        assert_int_equal(shop_there(f, counter.item), 99);
        counter_close(&counter);
    }
}

/* The answer to the second round's commit is lost.  The caller with an order id
 * finds its answer; the one without gets EUNCERTAIN. */
static void test_F34_a_lost_answer_is_told_or_found_out(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct counter counter;
        const char *order;

        counter_open(&counter, f, strategy, 100);
        order = shop_order(counter.item, "found");
        counter.fault = LOSE;
        counter_queue(&counter,
                      (const struct caller[]){{.quantity = 1},
                                              {.order = order, .quantity = 20},
                                              {.quantity = 3}},
                      3);
        counter_let_go(&counter);
        assert_true(atomic_load(&counter.is_lost));
        counter_expect(&counter, 1, 0, 79);
        assert_int_equal(counter.callers[2].rc, SQLOCK_EUNCERTAIN);
        assert_int_equal(shop_sum(f, counter.item), -20);
        assert_int_equal(shop_there(f, counter.item), 76);
        counter_close(&counter);
    }
}

static void *call_until_cancelled(void *context)
{
    (void)counter_call(context);
    pthread_testcancel();
    return NULL;
}

/* A thread that is cancelled while it leads answers its round, and makes
 * another thread the leader. */
static void test_a_leader_that_dies_hands_over(void **state)
{
    struct fixture *f = *state;
    struct caller first = {.quantity = 1};
    struct worker leader = {.context = &first};
    struct worker followers[3];
    struct caller callers[3] = {
        {.quantity = 2}, {.quantity = 3}, {.quantity = 4}};
    struct counter counter;
    void *ended = NULL;

    counter_open(&counter, f, SQLOCK_STOCK_COALESCED, 10);
    counter_at = &counter;
    tap_reset();
    tap_hooks(counter_before, counter_after, &counter);
    assert_int_equal(
        pthread_create(&leader.thread, NULL, call_until_cancelled, &leader), 0);
    assert_becomes_true(atomic_load(&counter.is_held), PATIENCE_MS);
    for (int i = 0; i < 3; i++) {
        worker_start(&followers[i], counter_call, &callers[i]);
        assert_becomes_true(worker_is_parked(&followers[i]), PATIENCE_MS);
    }
    assert_int_equal(pthread_cancel(leader.thread), 0);
    (void)sem_post(&counter.go);
    assert_int_equal(pthread_join(leader.thread, &ended), 0);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    for (int i = 0; i < 3; i++) {
        worker_join(&followers[i]);
        assert_int_equal(callers[i].rc, 0);
    }
    assert_int_equal(first.rc, 0);
    assert_int_equal(callers[2].answer.left, 0);
    assert_int_equal(shop_there(f, counter.item), 0);
    counter_close(&counter);
}

/* A CHECK of the table allows either of two requests, but not both: the first
 * one is served, and only the second is refused.  There is too little for the
 * third one as well, but enough without the second. */
static void test_one_that_the_table_refuses_is_refused_alone(void **state)
{
    struct fixture *f = *state;
    struct counter counter;
    char table[64];

    counter_open(&counter, f, SQLOCK_STOCK_COALESCED, 20);
    if (f->database->bit == ON_SQLITE) /* no CHECK can be added there */
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER least BEFORE UPDATE ON %s "
                      "WHEN NEW.QUANTITY < 5 AND NEW.ITEM = '%s' "
                      "BEGIN SELECT RAISE(ABORT, 'too few'); END",
                      shop_table(f, "STOCK", table), counter.item);
    else
        (void)sql_run(&f->sql,
                      "ALTER TABLE %s ADD CONSTRAINT least CHECK "
                      "(QUANTITY >= 5 OR ITEM <> '%s')",
                      shop_table(f, "STOCK", table), counter.item);
    counter_queue(
        &counter,
        (const struct caller[]){
            {.quantity = 1}, {.quantity = 8}, {.quantity = 8}, {.quantity = 5}},
        4);
    counter_let_go(&counter);
    counter_expect(&counter, 1, 0, 11);
    counter_expect(&counter, 2, SQLOCK_EDATABASE, -1);
    counter_expect(&counter, 3, 0, 6);
    assert_int_equal(shop_there(f, counter.item), 6);
    counter_close(&counter);
    if (f->database->bit == ON_SQLITE)
        (void)sql_run(&f->sql, "DROP TRIGGER least");
    else
        (void)sql_run(&f->sql, "ALTER TABLE %s DROP CONSTRAINT least", table);
}

/* --- many --- */

#define CROWD 24
#define EACH 40

static int call_often(struct worker *worker)
{
    for (int i = 0; i < EACH; i++) {
        char order[96];

        (void)snprintf(order, sizeof order, "%s/%u/%d", counter_at->item,
                       worker->index, i);
        worker_expect(worker, 0,
                      sqlock_stock_deduct(
                          counter_at->stock, NULL, i % 2 == 0 ? order : NULL,
                          counter_at->item, 1, NULL, &worker->err));
    }
    return 0;
}

static void test_nobody_waits_for_more_than_two_rounds(void **state)
{
    struct fixture *f = *state;

    each_combined(f)
    {
        struct workers workers;
        struct counter counter;

        counter_open(&counter, f, strategy, CROWD * EACH);
        counter_at = &counter;
        workers_start(&workers, CROWD, call_often, NULL);
        workers_join(&workers);
        assert_stock(f, counter.item, 0, -CROWD * EACH / 2);
        assert_int_equal(counter_stats(&counter).combined, CROWD * EACH);
        assert_true(counter_stats(&counter).most_rounds <= 2);
        counter_close(&counter);
    }
}

static const struct test tests[] = {
    TEST(test_all_that_wait_are_served_in_one_round),
    TEST(test_no_round_has_more_than_a_batch),
    TEST(test_nothing_is_written_for_who_is_known_to_get_none),
    TEST(test_partial_grants_are_exact),
    TEST(test_attempts_are_counted_once),
    TEST(test_a_sum_beyond_a_number_hides_nobody),
    TEST(test_an_order_is_not_judged_by_a_misuse_in_its_round),
    TEST(test_one_order_twice_in_a_round_is_done_once),
    TEST(test_a_refused_order_twice_in_a_round_is_judged_once),
    TEST(test_a_known_order_in_a_round_gets_its_answer),
    TEST(test_the_leaders_error_reaches_every_follower),
    TEST(test_F34_a_lost_answer_is_told_or_found_out),
    TEST(test_a_leader_that_dies_hands_over),
    TEST(test_one_that_the_table_refuses_is_refused_alone),
    TEST(test_nobody_waits_for_more_than_two_rounds),
};

const struct topic topic_coalesced = TOPIC(tests);
