/*
 * test_expiry.c - reservations whose time is over: one that cannot give its
 * quantities back does not keep others from expiring; and a claim or
 * cancellation between two statements of an expiry
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

/* --- what cannot be given back --- */

#define BLOCKED 101 /* more than sqlock_stock_expire() reads at once */

static void delete_item(struct fixture *f, const char *item)
{
    char table[64];

    assert_int_equal(sql_run(&f->sql, "DELETE FROM %s WHERE ITEM = '%s'",
                             shop_table(f, "STOCK", table), item),
                     1);
}

static void test_a_deleted_item_keeps_no_reservation_from_ending(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *gone = shop_item(f, 10);
    const char *item = shop_item(f, 10);
    sqlock_stock_line lines[] = {{.item = gone, .quantity = 2},
                                 {.item = item, .quantity = 3}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    char orders[2][96];

    for (int i = 0; i < 2; i++) {
        (void)snprintf(orders[i], sizeof orders[i], "%s/%d", gone, i);
        assert_ok(sqlock_stock_reserve(stock, NULL, orders[i], lines, 2,
                                       SHOP_LONG_MS, NULL, &f->err));
    }
    delete_item(f, gone);
    assert_ok(sqlock_stock_cancel(stock, NULL, orders[0], &answer, &f->err));
    shop_expect_state(f, stock, orders[0], SQLOCK_STOCK_CANCELLED);
    assert_int_equal(shop_there(f, item), 7);
    shop_let_time_pass(f, orders[1]);
    assert_int_equal(shop_expire(f, stock), 1);
    shop_expect_state(f, stock, orders[1], SQLOCK_STOCK_EXPIRED);
    assert_stock(f, item, 10, 0);
    sqlock_stock_close(stock);
}

/* A CHECK of the table lets no ink be given back: the reservations of ink stay,
 * the first of them is reported, and the one of the pen expires all the
 * same. */
static void test_a_refused_reservation_keeps_none_from_ending(void **state)
{
    struct fixture *f = *state;
    sqlock_stock *stock;
    int64_t expired = -1;
    char table[64];

    shop_make_goods(f, "full", table,
                    "id VARCHAR(80) PRIMARY KEY, num INTEGER, "
                    "top INTEGER, CHECK (num <= top)");
    (void)sql_run(&f->sql,
                  "INSERT INTO %s VALUES ('ink', 200, 200), ('pen', 10, 10)",
                  table);
    stock = shop_open_described(f, table);
    for (int i = 0; i <= BLOCKED; i++) {
        sqlock_stock_line line = {.item = i < BLOCKED ? "ink" : "pen",
                                  .quantity = 1};
        char order[96];

        (void)snprintf(order, sizeof order, "%s/%03d", f->name, i);
        assert_ok(sqlock_stock_reserve(stock, NULL, order, &line, 1,
                                       SHOP_LONG_MS + i, NULL, &f->err));
        shop_let_time_pass(f, order);
    }
    (void)sql_run(&f->sql, "UPDATE %s SET top = num WHERE id = 'ink'", table);
    assert_fails(SQLOCK_EDATABASE,
                 sqlock_stock_expire(stock, &expired, &f->err));
    assert_int_equal(expired, 1);
    assert_contains(f->err.message, "/000 could not give back");
    assert_int_equal(
        sql_integer(&f->sql, "SELECT num FROM %s WHERE id = 'pen'", table), 10);
    (void)sql_run(&f->sql, "UPDATE %s SET top = 200", table);
    assert_int_equal(shop_expire(f, stock), BLOCKED);
    assert_int_equal(
        sql_integer(&f->sql, "SELECT num FROM %s WHERE id = 'ink'", table),
        200);
    sqlock_stock_close(stock);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

#define ATTEMPTS 3 /* for each reservation */

struct conflicts {
    const char *order; /* statements with this order id are refused */
    unsigned most;     /* so many times at most */
    unsigned times;
};

static int conflict(void *context, const struct tap_event *event)
{
    struct conflicts *conflicts = context;

    if (event->call != TAP_EXECUTE || conflicts->times == conflicts->most)
        return 0;
    for (size_t i = 0; i < event->count; i++)
        if (event->parameters[i].type == SQLOCK_TEXT &&
            strcmp(event->parameters[i].text, conflicts->order) == 0) {
            conflicts->times++;
            return SQLOCK_ERETRY;
        }
    return 0;
}

/* Of two reservations, each attempt at the first meets a conflict: after
 * ATTEMPTS it is left to the next call, and the second one expires. */
static void test_a_reservation_in_conflict_keeps_none_from_ending(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_stock *stock = shop_open_at(tapped, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock_line line = {.item = shop_item(f, 10), .quantity = 3};
    struct conflicts conflicts = {.most = ATTEMPTS};
    int64_t expired = -1;
    char orders[2][96];

    for (int i = 0; i < 2; i++) {
        (void)snprintf(orders[i], sizeof orders[i], "%s/%d", line.item, i);
        assert_ok(sqlock_stock_reserve(stock, NULL, orders[i], &line, 1,
                                       SHOP_LONG_MS + i, NULL, &f->err));
        shop_let_time_pass(f, orders[i]);
    }
    conflicts.order = orders[0];
    tap_hooks(conflict, NULL, &conflicts);
    assert_fails(SQLOCK_ERETRY, sqlock_stock_expire(stock, &expired, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(conflicts.times, ATTEMPTS);
    assert_int_equal(expired, 1);
    shop_expect_state(f, stock, orders[1], SQLOCK_STOCK_EXPIRED);
    assert_int_equal(shop_there(f, line.item), 7);
    assert_int_equal(shop_expire(f, stock), 1);
    assert_stock(f, line.item, 10, 0);
    sqlock_stock_close(stock);
    registry_end(tapped);
}

/* --- against claim and cancellation --- */

/* A reservation of 4 units out of 10, which one side lets expire, and the other
 * side claims or cancels. */
struct race {
    struct fixture *f;
    sqlock_registry *tapped;
    sqlock_stock *expirer; /* of the tapped registry */
    sqlock_stock *other;
    const char *item;
    const char *order;
    bool claims;          /* false: the other side cancels */
    struct worker worker; /* runs the side that comes second */
    atomic_bool has_begun;
};

static void race_open(struct race *race, struct fixture *f)
{

    race->f = f;
    race->tapped = fixture_tapped(f, NULL);
    race->expirer = shop_open_at(race->tapped, SQLOCK_STOCK_CONDITIONAL);
    race->other = shop_open_at(f->b, SQLOCK_STOCK_CONDITIONAL);
}

static void race_reserve(struct race *race, bool claims, int64_t ttl_ms)
{
    struct fixture *f = race->f;

    race->claims = claims;
    atomic_store(&race->has_begun, false);
    race->item = shop_item(f, 10);
    race->order = shop_reserve(f, race->other, race->item, 4, ttl_ms);
}

static void race_close(struct race *race)
{
    sqlock_stock_close(race->other);
    sqlock_stock_close(race->expirer);
    registry_end(race->tapped);
}

static int end_it(struct race *race, sqlock_tx *tx, sqlock_error *err)
{
    return race->claims
               ? sqlock_stock_claim(race->other, tx, race->order, NULL, err)
               : sqlock_stock_cancel(race->other, tx, race->order, NULL, err);
}

/* Assert that the reservation has expired, if `expired` is not 0, or was
 * claimed or cancelled; and that its units were given back once, or not at
 * all. */
static void expect_ended(struct race *race, int64_t expired)
{
    struct fixture *f = race->f;
    bool is_claimed = race->claims && expired == 0;

    shop_expect_state(f, race->other, race->order,
                      expired > 0    ? SQLOCK_STOCK_EXPIRED
                      : race->claims ? SQLOCK_STOCK_CLAIMED
                                     : SQLOCK_STOCK_CANCELLED);
    assert_int_equal(shop_there(f, race->item), is_claimed ? 6 : 10);
    assert_int_equal(shop_sum(f, race->item), is_claimed ? -4 : 0);
}

/* Claim or cancel when the expiry begins its transaction, after it has read the
 * reservation as due.  For the claim, move the end into the future and back: as
 * if the claim had come just in time. */
static int end_before_it_lapses(void *context, const struct tap_event *event)
{
    struct race *race = context;

    if (event->call != TAP_BEGIN || atomic_exchange(&race->has_begun, true))
        return 0;
    if (race->claims)
        shop_give_time(race->f, race->order);
    assert_lock_ok(end_it(race, NULL, &race->f->err), &race->f->err);
    if (race->claims)
        shop_let_time_pass(race->f, race->order);
    return 0;
}

/* Make a reservation whose time is over, and let it expire while the hook `end`
 * claims or cancels it.  Assert how many expire. */
static void expire_against(struct race *race, bool claims, tap_before_fn end,
                           int64_t expected)
{
    struct fixture *f = race->f;
    int64_t expired = -1;

    race_reserve(race, claims, SHOP_LONG_MS);
    shop_let_time_pass(f, race->order);
    tap_hooks(end, NULL, race);
    assert_ok(sqlock_stock_expire(race->expirer, &expired, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_true(race->has_begun);
    assert_int_equal(expired, expected);
}

static void test_what_ends_when_it_is_due_does_not_expire(void **state)
{
    struct race race;

    race_open(&race, *state);
    for (int claims = 0; claims < 2; claims++) {
        expire_against(&race, claims == 1, end_before_it_lapses, 0);
        expect_ended(&race, 0);
    }
    race_close(&race);
}

static int give_time(void *context, const struct tap_event *event)
{
    struct race *race = context;

    if (event->call == TAP_BEGIN && !atomic_exchange(&race->has_begun, true))
        shop_give_time(race->f, race->order);
    return 0;
}

/* The database's clock was put back after a reservation was read as due. */
static void test_what_is_not_over_any_more_does_not_expire(void **state)
{
    struct fixture *f = *state;
    struct race race;

    race_open(&race, f);
    expire_against(&race, false, give_time, 0);
    shop_expect_state(f, race.other, race.order, SQLOCK_STOCK_RESERVED);
    assert_int_equal(shop_there(f, race.item), 6);
    race_close(&race);
}

static int note_begin(void *context, const struct tap_event *event)
{
    struct race *race = context;

    if (event->call == TAP_BEGIN)
        atomic_store(&race->has_begun, true);
    return 0;
}

/* Let reservations expire, and leave their number in worker->index. */
static int expire_all(struct worker *worker)
{
    struct race *race = worker->context;
    int64_t expired = 0;

    worker_expect(worker, 0,
                  sqlock_stock_expire(race->expirer, &expired, &worker->err));
    worker->index = (unsigned)expired;
    return 0;
}

/* Wait until the other side has begun, and 100 ms more, in which it gets to the
 * row's lock. */
static void let_it_come(struct race *race)
{
    int64_t end = check_deadline_ns(100);

    assert_becomes_true(atomic_load(&race->has_begun), PATIENCE_MS);
    while (check_pause(end))
        continue;
}

/* Make a reservation, and claim or cancel it in time, in a transaction that is
 * still open when the reservation's time is over.  Return the transaction. */
static sqlock_tx *end_in_transaction(struct race *race, bool claims)
{
    struct fixture *f = race->f;
    int64_t remaining_ms = 1;
    sqlock_tx *tx = NULL;
    int rc = SQLOCK_EEXPIRED;

    for (int64_t ttl_ms = 50; rc == SQLOCK_EEXPIRED; ttl_ms *= 2) {
        race_reserve(race, claims, ttl_ms);
        assert_ok(sqlock_tx_begin(&tx, f->b, &f->err));
        rc = end_it(race, tx, &f->err);
        if (rc == SQLOCK_EEXPIRED)
            assert_ok(sqlock_tx_rollback(tx, &f->err));
    }
    assert_ok(rc);
    assert_becomes_true(sqlock_stock_status(race->expirer, NULL, race->order,
                                            NULL, &remaining_ms,
                                            &f->err) == 0 &&
                            remaining_ms == 0,
                        PATIENCE_MS);
    return tx;
}

static void test_expiry_waits_for_the_end_that_is_under_way(void **state)
{
    struct fixture *f = *state;
    struct race race;

    race_open(&race, f);
    for (int i = 0; i < 4; i++) {
        bool commits = i / 2 == 0;
        sqlock_tx *tx = end_in_transaction(&race, i % 2 == 0);

        tap_hooks(note_begin, NULL, &race);
        worker_start(&race.worker, expire_all, &race);
        let_it_come(&race);
        assert_ok(commits ? sqlock_tx_commit(tx, &f->err)
                          : sqlock_tx_rollback(tx, &f->err));
        worker_join(&race.worker);
        tap_hooks(NULL, NULL, NULL);
        assert_int_equal(race.worker.index, commits ? 0 : 1);
        expect_ended(&race, commits ? 0 : 1);
    }
    race_close(&race);
}

static int come_too_late(struct worker *worker)
{
    struct race *race = worker->context;

    atomic_store(&race->has_begun, true);
    worker_expect(worker, SQLOCK_EEXPIRED, end_it(race, NULL, &worker->err));
    return 0;
}

/* When the expiry sends its COMMIT, start a thread that claims or cancels the
 * reservation. */
static int end_before_the_commit(void *context, const struct tap_event *event)
{
    struct race *race = context;

    if (event->call != TAP_COMMIT || atomic_load(&race->has_begun))
        return 0;
    worker_start(&race->worker, come_too_late, race);
    let_it_come(race);
    return 0;
}

static void test_the_end_waits_for_the_expiry_that_is_under_way(void **state)
{
    struct race race;

    race_open(&race, *state);
    for (int claims = 0; claims < 2; claims++) {
        expire_against(&race, claims == 1, end_before_the_commit, 1);
        worker_join(&race.worker);
        expect_ended(&race, 1);
    }
    race_close(&race);
}

static const struct test tests[] = {
    TEST(test_a_deleted_item_keeps_no_reservation_from_ending),
    TEST(test_a_refused_reservation_keeps_none_from_ending),
    TEST(test_a_reservation_in_conflict_keeps_none_from_ending),
    TEST(test_what_ends_when_it_is_due_does_not_expire),
    TEST(test_what_is_not_over_any_more_does_not_expire),
    TEST(test_expiry_waits_for_the_end_that_is_under_way),
    TEST(test_the_end_waits_for_the_expiry_that_is_under_way),
};

const struct topic topic_expiry = TOPIC(tests);
