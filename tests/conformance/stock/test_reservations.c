/*
 * test_reservations.c - a reservation lasts for a time by the database's clock,
 * and ends once: it is claimed or cancelled, or expires
 */
#include "suite.h"

#include <signal.h>
#include <stdio.h>

#include "support/server.h"
#include "support/tap.h"
#include "support/workers.h"

static void test_a_claimed_reservation_is_final(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

    assert_int_equal(shop_there(f, item), 6);
    shop_expect_state(f, stock, order, SQLOCK_STOCK_RESERVED);
    for (int i = 0; i < 2; i++) {
        assert_ok(sqlock_stock_claim(stock, NULL, order, &answer, &f->err));
        assert_int_equal(answer.is_duplicate, i == 1);
    }
    shop_expect_state(f, stock, order, SQLOCK_STOCK_CLAIMED);
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_stock_cancel(stock, NULL, order, &answer, &f->err));
    assert_int_equal(answer.attempts, 1);
    shop_let_time_pass(f, order);
    assert_int_equal(shop_expire(f, stock), 0);
    assert_stock(f, item, 6, -4);
    sqlock_stock_close(stock);
}

/* The entries of its order tell what a reservation holds: without them nobody
 * knows what to give back, and the reservation stays as it is. */
static void test_a_reservation_without_its_entries_stays(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);
    char table[64];

    for (int is_gone = 0; is_gone < 2; is_gone++) {
        (void)sql_run(&f->sql,
                      is_gone ? "DELETE FROM %s WHERE ORDER_ID = '%s'"
                              : "UPDATE %s SET STATUS = 'U', DELTA = 0 "
                                "WHERE ORDER_ID = '%s'",
                      shop_table(f, "STOCK_ENTRY", table), order);
        assert_fails(SQLOCK_EDATABASE,
                     sqlock_stock_cancel(stock, NULL, order, NULL, &f->err));
        assert_contains(f->err.message, "by other means than sqlock");
        shop_expect_state(f, stock, order, SQLOCK_STOCK_RESERVED);
        assert_int_equal(shop_there(f, item), 6);
    }
    assert_ok(sqlock_stock_claim(stock, NULL, order, NULL, &f->err));
    sqlock_stock_close(stock);
}

static void test_a_cancelled_reservation_gives_back_once(void **state)
{
    struct fixture *f = *state;

    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *item = shop_item(f, 10);
        const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);
        sqlock_stock_line line = {.item = item, .quantity = 4};
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

        for (int i = 0; i < 2; i++) {
            assert_ok(
                sqlock_stock_cancel(stock, NULL, order, &answer, &f->err));
            assert_int_equal(answer.is_duplicate, i == 1);
        }
        shop_expect_state(f, stock, order, SQLOCK_STOCK_CANCELLED);
        assert_fails(SQLOCK_ECONFLICT,
                     sqlock_stock_claim(stock, NULL, order, &answer, &f->err));
        assert_stock(f, item, 10, 0);
        /* The order was answered: sent again, it reserves nothing. */
        assert_ok(sqlock_stock_reserve(stock, NULL, order, &line, 1,
                                       SHOP_LONG_MS, &answer, &f->err));
        assert_true(answer.is_duplicate);
        assert_int_equal(shop_there(f, item), 10);
        sqlock_stock_close(stock);
    }
}

static void test_an_expired_reservation_gives_back_once(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    const char *order = shop_reserve(f, stock, item, 4, 1);
    int64_t remaining_ms = -1;

    assert_becomes_true(sqlock_stock_status(stock, NULL, order, NULL,
                                            &remaining_ms, &f->err) == 0 &&
                            remaining_ms == 0,
                        PATIENCE_MS);
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_stock_claim(stock, NULL, order, NULL, &f->err));
    assert_int_equal(shop_there(f, item), 6);
    assert_int_equal(shop_expire(f, stock), 1);
    assert_int_equal(shop_expire(f, stock), 0);
    shop_expect_state(f, stock, order, SQLOCK_STOCK_EXPIRED);
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_stock_claim(stock, NULL, order, NULL, &f->err));
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_stock_cancel(stock, NULL, order, NULL, &f->err));
    assert_stock(f, item, 10, 0);
    sqlock_stock_close(stock);
}

static void test_a_refused_reservation_is_none(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 3);
    sqlock_stock_line line = {.item = item, .quantity = 4};

    assert_fails(SQLOCK_EINSUFFICIENT,
                 sqlock_stock_reserve(stock, NULL, item, &line, 1, SHOP_LONG_MS,
                                      NULL, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_stock_claim(stock, NULL, item, NULL, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_stock_status(stock, NULL, item, NULL, NULL, &f->err));
    assert_int_equal(shop_there(f, item), 3);
    sqlock_stock_close(stock);
}

/* --- all at once --- */

#define ENDERS 8

struct ending {
    sqlock_stock *stocks[2];
    const char *order;
    atomic_int claimed;
    atomic_int given_back;
};

/* Half of the threads claim, half cancel; one that comes too late may get
 * ECONFLICT. */
static int end_it(struct worker *worker)
{
    struct ending *ending = worker->context;
    sqlock_stock *stock = ending->stocks[worker->index / 2 % 2];
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    int rc;

    rc = worker->index % 2 == 0
             ? sqlock_stock_claim(stock, NULL, ending->order, &answer,
                                  &worker->err)
             : sqlock_stock_cancel(stock, NULL, ending->order, &answer,
                                   &worker->err);
    if (rc == 0 && !answer.is_duplicate)
        atomic_fetch_add(
            worker->index % 2 == 0 ? &ending->claimed : &ending->given_back, 1);
    else if (rc != 0 && rc != SQLOCK_ECONFLICT)
        return worker_fail(worker, "%d %s", rc, worker->err.message);
    return 0;
}

static void test_claims_and_cancellations_at_once_have_one_winner(void **state)
{
    struct fixture *f = *state;
    struct ending ending = {
        .stocks = {shop_open_at(f->a, SQLOCK_STOCK_CONDITIONAL),
                   shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL)}};

    for (int i = 0; i < (int)check_scale(5, 200); i++) {
        const char *item = shop_item(f, 10);
        struct workers workers;

        atomic_store(&ending.claimed, 0);
        atomic_store(&ending.given_back, 0);
        ending.order = shop_reserve(f, ending.stocks[0], item, 4, SHOP_LONG_MS);
        workers_start(&workers, ENDERS, end_it, &ending);
        workers_join(&workers);
        assert_int_equal(ending.claimed + ending.given_back, 1);
        assert_stock(f, item, ending.claimed == 1 ? 6 : 10,
                     ending.claimed == 1 ? -4 : 0);
    }
    sqlock_stock_close(ending.stocks[0]);
    sqlock_stock_close(ending.stocks[1]);
}

static int expire_all(struct worker *worker)
{
    struct ending *ending = worker->context;
    int64_t expired = 0;

    worker_expect(worker, 0,
                  sqlock_stock_expire(ending->stocks[worker->index % 2],
                                      &expired, &worker->err));
    atomic_fetch_add(&ending->given_back, (int)expired);
    return 0;
}

static void test_several_reapers_give_back_once(void **state)
{
    struct fixture *f = *state;
    const char *item = shop_item(f, 1000);
    struct ending ending = {
        .stocks = {shop_open_at(f->a, SQLOCK_STOCK_CONDITIONAL),
                   shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL)}};
    struct workers workers;

    for (int i = 0; i < 40; i++)
        shop_let_time_pass(
            f, shop_reserve(f, ending.stocks[0], item, 2, SHOP_LONG_MS + i));
    assert_int_equal(shop_there(f, item), 920);
    workers_start(&workers, 4, expire_all, &ending);
    workers_join(&workers);
    assert_int_equal(ending.given_back, 40);
    assert_stock(f, item, 1000, 0);
    sqlock_stock_close(ending.stocks[0]);
    sqlock_stock_close(ending.stocks[1]);
}

/* --- two tables --- */

/* Reservations of the application's table do not count in sqlock's, nor the
 * other way round, although an item may have the same name in both. */
static void test_each_table_has_its_own_reservations(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *ours = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock *theirs;
    const char *item = shop_item(f, 10);
    char table[64];
    char order[96];

    shop_make_goods(f, "wares", table,
                    "id VARCHAR(80) PRIMARY KEY, num INTEGER");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('%s', 10)", table, item);
    theirs = shop_open_described(f, table);
    (void)snprintf(order, sizeof order, "%s",
                   shop_reserve(f, theirs, item, 4, SHOP_LONG_MS));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_stock_status(ours, NULL, order, NULL, NULL, &f->err));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_stock_cancel(ours, NULL, order, NULL, &f->err));
    shop_let_time_pass(f, order);
    assert_int_equal(shop_expire(f, ours), 0);
    assert_int_equal(sql_integer(&f->sql, "SELECT num FROM %s", table), 6);
    assert_int_equal(shop_expire(f, theirs), 1);
    assert_int_equal(sql_integer(&f->sql, "SELECT num FROM %s", table), 10);
    assert_int_equal(shop_there(f, item), 10);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
    sqlock_stock_close(theirs);
    sqlock_stock_close(ours);
}

/* --- the server goes away --- */

static void test_a_reservation_survives_a_killed_server(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);

    if (!server_can_restart(f->database))
        skip_or_fail("the server is not ours to restart");
    server_restart(&f->sql, f->url, SIGKILL);
    /* Idle connections are dead, and are opened anew. */
    shop_expect_state(f, stock, order, SQLOCK_STOCK_RESERVED);
    assert_ok(sqlock_stock_claim(stock, NULL, order, NULL, &f->err));
    assert_stock(f, item, 6, -4);
    sqlock_stock_close(stock);
}

/* A claim, which finds that it was made before, cannot commit, and the
 * reservation has another state when the claim is tried again. */
struct change {
    struct fixture *f;
    const char *order;
};

static int change_state(void *context, const struct tap_event *event, int rc)
{
    const struct change *change = context;
    char table[64];

    if (event->call != TAP_COMMIT || rc != 0)
        return rc;
    (void)sql_run(
        &change->f->sql, "UPDATE %s SET STATE = 'X' WHERE ORDER_ID = '%s'",
        shop_table(change->f, "STOCK_RESERVATION", table), change->order);
    return SQLOCK_ERETRY;
}

static void test_a_refused_claim_is_no_duplicate(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    const char *order = shop_reserve(f, stock, item, 4, SHOP_LONG_MS);
    struct change change = {f, order};
    int rc;

    assert_ok(sqlock_stock_claim(stock, NULL, order, NULL, &f->err));
    tap_hooks(NULL, change_state, &change);
    rc = sqlock_stock_claim(stock, NULL, order, &answer, &f->err);
    tap_hooks(NULL, NULL, NULL);
    assert_fails(SQLOCK_ECONFLICT, rc);
    assert_int_equal(answer.attempts, 2);
    assert_false(answer.is_duplicate);
    sqlock_stock_close(stock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_a_claimed_reservation_is_final),
    TEST(test_a_cancelled_reservation_gives_back_once),
    TEST(test_a_reservation_without_its_entries_stays),
    TEST(test_an_expired_reservation_gives_back_once),
    TEST(test_a_refused_reservation_is_none),
    TEST(test_a_refused_claim_is_no_duplicate),
    TEST(test_claims_and_cancellations_at_once_have_one_winner),
    TEST(test_several_reapers_give_back_once),
    TEST(test_each_table_has_its_own_reservations),
    TEST_STOPPING(test_a_reservation_survives_a_killed_server, ON_SERVERS),
};

const struct topic topic_reservations = TOPIC(tests);
