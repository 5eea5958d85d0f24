/*
 * test_coalesced.c - the strategy COALESCED: one thread, the leader, deducts
 * for all threads that wait
 *
 * The first leader is held up in its statement until the other threads have
 * queued up, one after another.  So the first round has the first request only,
 * and later rounds have the others, in a known order.
 */
#include "suite.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

#define CALLERS_MAX 24

/* One thread's deduction. */
struct caller {
    const char *order; /* NULL: none */
    int64_t quantity;
    int rc; /* out */
    sqlock_stock_answer answer;
    char message[200];
};

/* The fault in the rounds' statements. */
enum fault {
    NO_FAULT,
    REFUSE, /* each BEGIN and UPDATE of the second round gets EACCESS */
    LOSE    /* the answer to the second round's first commit is lost */
};

/* An item, and the threads that deduct from it. */
struct counter {
    sqlock_registry *registry;
    sqlock_stock *stock;
    const char *item;
    struct caller callers[CALLERS_MAX];
    struct worker workers[CALLERS_MAX];
    unsigned count;

    enum fault fault;
    sem_t go; /* lets the first round's statement go on */
    atomic_bool is_held;
    atomic_bool is_released;
    atomic_bool is_in_transaction;
    atomic_int commits;
    atomic_bool is_lost;
};

static bool is_write(const struct tap_event *event)
{
    return event->call == TAP_BEGIN ||
           (event->call == TAP_EXECUTE && event->text != NULL &&
            strstr(event->text, "UPDATE ") != NULL);
}

/* Hold the first round up, and refuse the second, if that is the fault. */
static int before(void *context, const struct tap_event *event)
{
    struct counter *counter = context;
    bool expected = false;

    if (!is_write(event))
        return 0;
    if (atomic_compare_exchange_strong(&counter->is_held, &expected, true)) {
        (void)sem_wait(&counter->go);
        atomic_store(&counter->is_released, true);
        return 0;
    }
    if (counter->fault == REFUSE && atomic_load(&counter->is_released))
        return SQLOCK_EACCESS;
    return 0;
}

/* Lose the answer to the second commit, if that is the fault; the first commit
 * is the first round's.  A write outside of a transaction is a commit, too. */
static int after(void *context, const struct tap_event *event, int rc)
{
    struct counter *counter = context;

    if (event->call == TAP_BEGIN)
        atomic_store(&counter->is_in_transaction, true);
    if (rc != 0 || counter->fault != LOSE ||
        (event->call != TAP_COMMIT &&
         (!is_write(event) || atomic_load(&counter->is_in_transaction))))
        return rc;
    if (atomic_fetch_add(&counter->commits, 1) != 1)
        return rc;
    atomic_store(&counter->is_lost, true);
    return SQLOCK_EUNCERTAIN;
}

static void counter_open(struct counter *counter, struct fixture *f,
                         int64_t there)
{

    memset(counter, 0, sizeof *counter);
    counter->item = shop_item(f, there);
    counter->registry = fixture_tapped(f, NULL);
    counter->stock = shop_open_at(counter->registry, SQLOCK_STOCK_COALESCED);
    (void)sem_init(&counter->go, 0, 0);
}

static void counter_close(struct counter *counter)
{
    tap_hooks(NULL, NULL, NULL);
    sqlock_stock_close(counter->stock);
    registry_end(counter->registry);
    (void)sem_destroy(&counter->go);
}

static struct counter *at; /* used by the threads of the running test */

static int call(struct worker *worker)
{
    struct caller *caller = worker->context;

    caller->answer = (sqlock_stock_answer)SQLOCK_STOCK_ANSWER_INIT;
    caller->rc =
        sqlock_stock_deduct(at->stock, NULL, caller->order, at->item,
                            caller->quantity, &caller->answer, &worker->err);
    (void)snprintf(caller->message, sizeof caller->message, "%.190s",
                   caller->rc < 0 ? worker->err.message : "");
    return 0;
}

/* Start the callers' threads: the first one leads, and is held up; each other
 * one waits before the next is started. */
static void queue_up(struct counter *counter, const struct caller *callers,
                     unsigned count)
{
    at = counter;
    counter->count = count;
    tap_reset();
    tap_hooks(before, after, counter);
    for (unsigned i = 0; i < count; i++) {
        counter->callers[i] = callers[i];
        worker_start(&counter->workers[i], call, &counter->callers[i]);
        if (i == 0)
            assert_becomes_true(atomic_load(&counter->is_held), PATIENCE_MS);
        assert_becomes_true(worker_is_parked(&counter->workers[i]),
                            PATIENCE_MS);
    }
}

static void let_go(struct counter *counter)
{
    (void)sem_post(&counter->go);
    for (unsigned i = 0; i < counter->count; i++)
        worker_join(&counter->workers[i]);
}

static void expect(const struct counter *counter, unsigned which, int rc,
                   int64_t left)
{
    const struct caller *caller = &counter->callers[which];

    if (caller->rc != rc || caller->answer.left != left)
        fail_msg("caller %u got %d and %lld: %s", which, caller->rc,
                 (long long)caller->answer.left, caller->message);
}

static sqlock_stock_stats stats_of(struct counter *counter)
{
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

    (void)sqlock_stock_statistics(counter->stock, &stats, NULL);
    return stats;
}

/* --- the answers in a round --- */

static void test_all_that_wait_are_served_in_one_round(void **state)
{
    struct fixture *f = *state;
    struct caller callers[CALLERS_MAX];
    struct counter counter;

    counter_open(&counter, f, 1000);
    for (unsigned i = 0; i < CALLERS_MAX; i++)
        callers[i] = (struct caller){.quantity = 2};
    queue_up(&counter, callers, CALLERS_MAX);
    let_go(&counter);
    for (unsigned i = 0; i < CALLERS_MAX; i++)
        expect(&counter, i, 0, 1000 - 2 * (int64_t)(i + 1));
    assert_int_equal(stats_of(&counter).rounds, 2);
    assert_int_equal(stats_of(&counter).combined, CALLERS_MAX);
    assert_int_equal(stats_of(&counter).most_rounds, 2);
    assert_int_equal(shop_there(f, counter.item), 1000 - 2 * CALLERS_MAX);
    counter_close(&counter);
}

/* A caller gets its quantity if the callers before it have left enough. */
static void serve_partly(struct fixture *f, bool has_orders)
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

    counter_open(&counter, f, 10);
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(orders[i], sizeof orders[i], "%s/%u", counter.item, i);
        callers[i].order = has_orders ? orders[i] : NULL;
        callers[i].quantity = wants[i].quantity;
    }
    queue_up(&counter, callers, COUNT);
    let_go(&counter);
    for (unsigned i = 0; i < COUNT; i++)
        expect(&counter, i, wants[i].rc, wants[i].left);
    assert_int_equal(stats_of(&counter).rounds, 2);
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

/* The first round has one request, and no other round has more than two. */
static void test_no_round_has_more_than_a_batch(void **state)
{
    static const struct caller callers[] = {
        {.quantity = 1}, {.quantity = 2}, {.quantity = 3},
        {.quantity = 4}, {.quantity = 5}, {.quantity = 6},
    };
    struct fixture *f = *state;
    const unsigned count = sizeof callers / sizeof *callers;
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    struct counter counter;

    counter_open(&counter, f, 21);
    sqlock_stock_close(counter.stock);
    options.strategy = SQLOCK_STOCK_COALESCED;
    options.batch = BATCH;
    assert_ok(
        sqlock_stock_open(&counter.stock, counter.registry, &options, &f->err));
    queue_up(&counter, callers, count);
    let_go(&counter);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(counter.callers[i].rc, 0);
    assert_int_equal(stats_of(&counter).rounds, 4);
    assert_int_equal(stats_of(&counter).combined, count);
    assert_stock(f, counter.item, 0, 0);
    counter_close(&counter);
}

static void test_partial_grants_are_exact(void **state)
{
    serve_partly(*state, false);
    fixture_next(*state);
    serve_partly(*state, true);
}

/* Send no COMMIT, nor a write outside of a transaction, which commits by
 * itself; the answer is EUNCERTAIN. */
static int lose(void *context, const struct tap_event *event)
{
    bool *is_in_transaction = context;

    if (event->call == TAP_BEGIN || event->call == TAP_ROLLBACK)
        *is_in_transaction = event->call == TAP_BEGIN;
    return event->call == TAP_COMMIT || (is_write(event) && !*is_in_transaction)
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
    struct counter counter;

    counter_open(&counter, f, 100);
    queue_up(&counter,
             (const struct caller[]){{.quantity = 1},
                                     {.quantity = INT64_MAX},
                                     {.quantity = INT64_MAX},
                                     {.quantity = 7}},
             4);
    let_go(&counter);
    expect(&counter, 1, SQLOCK_EINSUFFICIENT, 99);
    expect(&counter, 2, SQLOCK_EINSUFFICIENT, 99);
    expect(&counter, 3, 0, 92);
    assert_int_equal(shop_there(f, counter.item), 92);
    counter_close(&counter);
}

/* A round has a known order twice, first with another quantity: that request
 * gets EORDER, and the other one the order's answer. */
static void test_an_order_is_not_judged_by_a_misuse_in_its_round(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *other = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
    struct counter counter;
    const char *order;

    counter_open(&counter, f, 10);
    order = shop_order(counter.item, "one");
    assert_ok(sqlock_stock_deduct(other, NULL, order, counter.item, 2, NULL,
                                  &f->err));
    queue_up(&counter,
             (const struct caller[]){{.quantity = 1},
                                     {.order = order, .quantity = 3},
                                     {.order = order, .quantity = 2}},
             3);
    let_go(&counter);
    expect(&counter, 1, SQLOCK_EORDER, -1);
    expect(&counter, 2, 0, 8);
    assert_true(counter.callers[2].answer.is_duplicate);
    assert_int_equal(shop_there(f, counter.item), 7);
    counter_close(&counter);
    sqlock_stock_close(other);
}

static void test_one_order_twice_in_a_round_is_done_once(void **state)
{
    struct fixture *f = *state;
    struct counter counter;
    const char *order;

    counter_open(&counter, f, 10);
    order = shop_order(counter.item, "one");
    queue_up(&counter,
             (const struct caller[]){{.quantity = 1},
                                     {.order = order, .quantity = 2},
                                     {.order = order, .quantity = 2},
                                     {.order = order, .quantity = 3}},
             4);
    let_go(&counter);
    expect(&counter, 1, 0, 7);
    expect(&counter, 2, 0, 7);
    assert_false(counter.callers[1].answer.is_duplicate);
    assert_true(counter.callers[2].answer.is_duplicate);
    expect(&counter, 3, SQLOCK_EORDER, -1);
    assert_int_equal(shop_there(f, counter.item), 7);
    counter_close(&counter);
}

/* An order in the round was done by another registry before. */
static void test_a_known_order_in_a_round_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *other = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
    struct counter counter;
    char order[2][96];

    counter_open(&counter, f, 10);
    for (int i = 0; i < 2; i++)
        (void)snprintf(order[i], sizeof order[i], "%s/%d", counter.item, i);
    assert_ok(sqlock_stock_deduct(other, NULL, order[0], counter.item, 2, NULL,
                                  &f->err));
    queue_up(&counter,
             (const struct caller[]){{.quantity = 1},
                                     {.order = order[0], .quantity = 2},
                                     {.order = order[1], .quantity = 4},
                                     {.quantity = 1}},
             4);
    let_go(&counter);
    expect(&counter, 1, 0, 8);
    assert_true(counter.callers[1].answer.is_duplicate);
    expect(&counter, 2, 0, 3);
    expect(&counter, 3, 0, 2);
    assert_stock(f, counter.item, 2, -6);
    counter_close(&counter);
    sqlock_stock_close(other);
}

/* --- failures --- */

static void test_the_leaders_error_reaches_every_follower(void **state)
{
    struct fixture *f = *state;
    struct counter counter;

    counter_open(&counter, f, 10);
    counter.fault = REFUSE;
    queue_up(&counter,
             (const struct caller[]){
                 {.quantity = 1}, {.quantity = 2}, {.quantity = 3}},
             3);
    let_go(&counter);
    expect(&counter, 0, 0, 9);
    expect(&counter, 1, SQLOCK_EACCESS, -1);
    expect(&counter, 2, SQLOCK_EACCESS, -1);
    assert_int_equal(shop_there(f, counter.item), 9);
    counter_close(&counter);
}

/* The answer to the second round's commit is lost.  The caller with an order id
 * finds its answer; the one without gets EUNCERTAIN. */
static void test_F34_a_lost_answer_is_told_or_found_out(void **state)
{
    struct fixture *f = *state;
    struct counter counter;
    const char *order;

    counter_open(&counter, f, 100);
    order = shop_order(counter.item, "found");
    counter.fault = LOSE;
    queue_up(&counter,
             (const struct caller[]){{.quantity = 1},
                                     {.order = order, .quantity = 20},
                                     {.quantity = 3}},
             3);
    let_go(&counter);
    assert_true(atomic_load(&counter.is_lost));
    expect(&counter, 1, 0, 79);
    assert_int_equal(counter.callers[2].rc, SQLOCK_EUNCERTAIN);
    assert_int_equal(shop_sum(f, counter.item), -20);
    assert_int_equal(shop_there(f, counter.item), 76);
    counter_close(&counter);
}

static void *call_until_cancelled(void *context)
{
    (void)call(context);
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

    counter_open(&counter, f, 10);
    at = &counter;
    tap_reset();
    tap_hooks(before, after, &counter);
    assert_int_equal(
        pthread_create(&leader.thread, NULL, call_until_cancelled, &leader), 0);
    assert_becomes_true(atomic_load(&counter.is_held), PATIENCE_MS);
    for (int i = 0; i < 3; i++) {
        worker_start(&followers[i], call, &callers[i]);
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
 * one is served, and only the second is refused. */
static void test_one_that_the_table_refuses_is_refused_alone(void **state)
{
    struct fixture *f = *state;
    struct counter counter;
    char table[64];

    counter_open(&counter, f, 20);
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
    queue_up(&counter,
             (const struct caller[]){
                 {.quantity = 1}, {.quantity = 8}, {.quantity = 8}},
             3);
    let_go(&counter);
    expect(&counter, 1, 0, 11);
    expect(&counter, 2, SQLOCK_EDATABASE, -1);
    assert_int_equal(shop_there(f, counter.item), 11);
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

        (void)snprintf(order, sizeof order, "%s/%u/%d", at->item, worker->index,
                       i);
        worker_expect(worker, 0,
                      sqlock_stock_deduct(at->stock, NULL,
                                          i % 2 == 0 ? order : NULL, at->item,
                                          1, NULL, &worker->err));
    }
    return 0;
}

static void test_nobody_waits_for_more_than_two_rounds(void **state)
{
    struct fixture *f = *state;
    struct workers workers;
    struct counter counter;

    counter_open(&counter, f, CROWD * EACH);
    at = &counter;
    workers_start(&workers, CROWD, call_often, NULL);
    workers_join(&workers);
    assert_stock(f, counter.item, 0, -CROWD * EACH / 2);
    assert_int_equal(stats_of(&counter).combined, CROWD * EACH);
    assert_true(stats_of(&counter).most_rounds <= 2);
    counter_close(&counter);
}

static const struct test tests[] = {
    TEST(test_all_that_wait_are_served_in_one_round),
    TEST(test_no_round_has_more_than_a_batch),
    TEST(test_partial_grants_are_exact),
    TEST(test_attempts_are_counted_once),
    TEST(test_a_sum_beyond_a_number_hides_nobody),
    TEST(test_an_order_is_not_judged_by_a_misuse_in_its_round),
    TEST(test_one_order_twice_in_a_round_is_done_once),
    TEST(test_a_known_order_in_a_round_gets_its_answer),
    TEST(test_the_leaders_error_reaches_every_follower),
    TEST(test_F34_a_lost_answer_is_told_or_found_out),
    TEST(test_a_leader_that_dies_hands_over),
    TEST(test_one_that_the_table_refuses_is_refused_alone),
    TEST(test_nobody_waits_for_more_than_two_rounds),
};

const struct topic topic_coalesced = TOPIC(tests);
