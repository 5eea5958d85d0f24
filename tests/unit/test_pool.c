/*
 * test_pool.c - which idle connection of a pool is taken, and how many are lent
 *
 * The connections are SQLite's, which needs no server.  Without that driver the
 * suite is empty.
 */
#include "support/test.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef SQLOCK_WITH_SQLITE

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/service.h"
#include "db/db.h"
#include "db/drivers.h"
#include "support/workers.h"

#define CONNECTIONS 3

struct pooled {
    struct lk_db db;
    char path[64];
};

static struct lk_connection *take(struct pooled *pooled)
{
    struct lk_connection *connection = NULL;
    const struct lk_wish wish = {
        .wait_until_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS,
        .latest_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS,
    };
    sqlock_error err = {0};
    int rc = lk_pool_take_as(&pooled->db.pool, &wish, &connection, &err);

    assert_lock_ok(rc, &err);
    return connection;
}

static struct pooled *subject; /* of the test that runs */

static void open_pool(void)
{
    static struct pooled pooled;
    const struct lk_pool_options options = {
        .size = CONNECTIONS,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS,
    };
    struct lk_connection *taken[CONNECTIONS];
    char url[80];
    int fd;

    (void)snprintf(pooled.path, sizeof pooled.path, "/tmp/sqlock-pool.XXXXXX");
    fd = mkstemp(pooled.path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "sqlite:%s", pooled.path);
    assert_int_equal(lk_db_init(&pooled.db, url, &options, NULL), 0);
    for (int i = 0; i < CONNECTIONS; i++)
        taken[i] = take(&pooled);
    for (int i = 0; i < CONNECTIONS; i++)
        lk_pool_give(&pooled.db.pool, taken[i]);
    subject = &pooled;
}

static void close_pool(void)
{
    lk_db_clear(&subject->db);
    (void)unlink(subject->path);
}

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_pool, .close = close_pool)

SCENE_TEST(test_the_connection_used_last_is_taken_first)
{
    struct lk_connection *one = take(subject);
    struct lk_connection *other = take(subject);

    lk_pool_give(&subject->db.pool, other);
    lk_pool_give(&subject->db.pool, one);
    assert_ptr_equal(take(subject), one);
    assert_ptr_equal(take(subject), other);
    lk_pool_give(&subject->db.pool, other);
    lk_pool_give(&subject->db.pool, one);
}

/* Two servers are never used side by side. */
SCENE_TEST(test_F57_a_connection_to_the_server_before_is_closed)
{
    uint64_t closed = lk_stats_count(&subject->db.stats, LK_COUNT_CLOSED);
    struct lk_connection *connection;
    uint32_t changes;

    changes = subject->db.epoch.changes;
    assert_true(lk_epoch_note(&subject->db.epoch, "another server", &changes));
    connection = take(subject);
    assert_true(lk_stats_count(&subject->db.stats, LK_COUNT_CLOSED) > closed);
    lk_pool_give(&subject->db.pool, connection);
    closed = lk_stats_count(&subject->db.stats, LK_COUNT_CLOSED);
    assert_ptr_equal(take(subject), connection);
    assert_int_equal(lk_stats_count(&subject->db.stats, LK_COUNT_CLOSED),
                     closed);
    lk_pool_give(&subject->db.pool, connection);
}

static int take_at_once(struct pooled *pooled, struct lk_wish wish,
                        struct lk_connection **out)
{
    wish.latest_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS;
    return lk_pool_take_as(&pooled->db.pool, &wish, out, NULL);
}

/* While somebody relies on the connection that hears, only statements that read
 * and what opens none have it, and one more is opened for others; otherwise it
 * is the last one that is taken, but not for transactions. */
SCENE_TEST(test_the_connection_that_hears_is_taken_last)
{
    struct lk_pool *pool = &subject->db.pool;
    struct lk_connection *taken[CONNECTIONS + 2];
    struct lk_connection *hearer = take(subject);
    struct lk_handler ear = {0};
    struct lk_service service;
    int rc;

    lk_service_init(&service);
    lk_handler_init(&ear, &service, NULL, NULL, NULL);
    lk_pool_hear(pool, hearer, &ear);
    lk_pool_give(pool, hearer);
    for (int i = 0; i < CONNECTIONS; i++)
        taken[i] = take(subject);
    assert_ptr_equal(taken[CONNECTIONS - 1], hearer);
    lk_pool_give(pool, hearer);

    rc = take_at_once(subject, (struct lk_wish){.is_lent = true}, &taken[2]);
    assert_int_equal(rc, 0);
    assert_ptr_not_equal(taken[2], hearer);
    lk_pool_discard(pool, taken[2]);

    lk_pool_use_hearer(pool, LK_HEARER_BRIEF);
    taken[2] = take(subject);
    assert_ptr_not_equal(taken[2], hearer);
    rc = take_at_once(subject, (struct lk_wish){0}, &taken[3]);
    assert_int_equal(rc, SQLOCK_ERESOURCE);
    rc = take_at_once(subject, (struct lk_wish){.is_brief = true}, &taken[3]);
    assert_int_equal(rc, 0);
    assert_ptr_equal(taken[3], hearer);
    rc = take_at_once(subject, (struct lk_wish){.is_open = true, .hears = true},
                      &taken[4]);
    assert_int_equal(rc, SQLOCK_ERESOURCE);
    lk_pool_give(pool, hearer);
    rc = take_at_once(subject, (struct lk_wish){.is_open = true}, &taken[3]);
    assert_int_equal(rc, 0);
    assert_ptr_equal(taken[3], hearer);

    /* The handler that relies on it is told of its end. */
    ear.number = 1;
    ear.due_ns = LK_NEVER;
    lk_pool_discard(pool, hearer);
    assert_true(ear.due_ns == 0);
    assert_false(lk_pool_has_hearer(pool));
    for (int i = 0; i < CONNECTIONS; i++)
        lk_pool_give(pool, taken[i]);
    /* Another one does not stand for it. */
    rc = take_at_once(subject, (struct lk_wish){.is_open = true, .hears = true},
                      &taken[0]);
    assert_int_equal(rc, SQLOCK_ERESOURCE);
}

static int borrow(struct pooled *pooled, int64_t deadline_ns,
                  struct lk_connection **out, sqlock_error *err)
{
    const struct lk_wish wish = {
        .wait_until_ns = deadline_ns,
        .latest_ns = lk_after_ms(deadline_ns, PATIENCE_MS),
        .is_lent = true,
    };

    return lk_pool_take_as(&pooled->db.pool, &wish, out, err);
}

/* While as many connections are lent as the pool's size, the pool has one more
 * for calls, which is never lent. */
SCENE_TEST(test_calls_get_a_connection_when_all_are_lent)
{
    int64_t deadline_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS;
    const struct lk_wish at_once = {.latest_ns = deadline_ns};
    struct lk_connection *lent[CONNECTIONS];
    struct lk_connection *other = NULL;
    struct lk_connection *more;
    sqlock_error err = {0};
    int rc;

    for (int i = 0; i < CONNECTIONS; i++) {
        rc = borrow(subject, deadline_ns, &lent[i], &err);
        assert_lock_ok(rc, &err);
    }
    more = take(subject);
    rc = lk_pool_take_as(&subject->db.pool, &at_once, &other, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    lk_pool_give(&subject->db.pool, more);
    rc = borrow(subject, sqlock_monotonic_ns(), &other, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    assert_ptr_equal(take(subject), more);
    lk_pool_discard(&subject->db.pool, lent[0]);
    rc = borrow(subject, sqlock_monotonic_ns(), &lent[0], &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    lk_pool_give(&subject->db.pool, more);
    rc = borrow(subject, deadline_ns, &lent[0], &err);
    assert_lock_ok(rc, &err);
    for (int i = 0; i < CONNECTIONS; i++)
        lk_pool_give(&subject->db.pool, lent[i]);
}

static char *lead_to(struct pooled *pooled, char *path)
{
    char *before = pooled->db.url.path;

    pooled->db.url.path = path;
    return before;
}

SCENE_TEST(test_a_loan_that_could_not_be_opened_is_none)
{
    char nowhere[] = "/tmp/sqlock-pool.nowhere";
    char *path = lead_to(subject, nowhere);
    struct lk_connection *none;
    sqlock_error err = {0};

    lk_pool_drain(&subject->db.pool);
    for (int i = 0; i <= CONNECTIONS; i++)
        assert_code(SQLOCK_EUNREACHABLE,
                    borrow(subject, sqlock_monotonic_ns(), &none, &err), &err);
    (void)lead_to(subject, path);
}

SCENE_TEST(test_a_renewal_borrows_a_connection_in_an_outage)
{
    struct lk_db *db = &subject->db;
    char nowhere[] = "/tmp/sqlock-pool.nowhere";
    const struct lk_wish at_once = {.latest_ns = LK_NEVER};
    struct lk_connection *borrowed = NULL;
    char *path = lead_to(subject, nowhere);
    int rc = lk_db_take(db, &db->reserved, &at_once, &borrowed, NULL);

    (void)lead_to(subject, path);
    assert_int_equal(rc, 0);
    assert_ptr_equal(borrowed->pool, &db->pool);
    lk_pool_give(&db->pool, borrowed);
}

/* A connection that has written may do what a new one refuses; but that tells
 * nothing of conflicts, nor of what was cancelled or may have been done. */
SCENE_TEST(test_a_new_connection_is_unproven_by_what_it_refuses)
{
    static const int others[] = {0, SQLOCK_EBUSY, SQLOCK_ERETRY,
                                 SQLOCK_ECANCELED, SQLOCK_EUNCERTAIN};
    struct lk_connection *connection = take(subject);

    atomic_store(&connection->has_written, false);
    assert_true(lk_db_is_unproven(connection, SQLOCK_EACCESS));
    assert_true(lk_db_is_unproven(connection, SQLOCK_EUNREACHABLE));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(lk_db_is_unproven(connection, others[i]));
    atomic_store(&connection->has_written, true);
    assert_false(lk_db_is_unproven(connection, SQLOCK_EACCESS));
    lk_pool_give(connection->pool, connection);
}

/* Connections that are kept for leases do not count against the pool's size, up
 * to so many. */
SCENE_TEST(test_no_more_are_kept_beside_the_size_than_its_limit)
{
    struct lk_pool *pool = &subject->db.pool;
    struct lk_connection *taken[LK_POOL_KEPT_MAX + CONNECTIONS];
    struct lk_connection *more;
    size_t count = sizeof taken / sizeof *taken;
    int rc;

    for (size_t i = 0; i < count; i++) {
        taken[i] = take(subject);
        lk_pool_keep(pool, taken[i]);
    }
    rc = take_at_once(subject, (struct lk_wish){0}, &more);
    assert_int_equal(rc, SQLOCK_ERESOURCE);
    for (size_t i = 0; i < count; i++)
        lk_pool_give(pool, taken[i]);
}

/* A thread that waits for a connection, and gives it back when it is told. */
struct taker {
    struct pooled *pooled;
    bool is_urgent;
    bool is_open;
    atomic_int *order; /* the number of takers that have had one */
    int place;         /* among them, from 1 */
    int keeps_until;   /* so many have had one; 0: not at all */
};

static int take_in_turn(struct worker *worker)
{
    struct taker *taker = worker->context;
    int64_t until_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS;
    const struct lk_wish wish = {.wait_until_ns = until_ns,
                                 .latest_ns = until_ns,
                                 .is_urgent = taker->is_urgent,
                                 .is_open = taker->is_open};
    struct lk_pool *pool = &taker->pooled->db.pool;
    struct lk_connection *connection = NULL;

    worker_expect(worker, 0,
                  lk_pool_take_as(pool, &wish, &connection, &worker->err));
    taker->place = atomic_fetch_add(taker->order, 1) + 1;
    while (atomic_load(taker->order) < taker->keeps_until &&
           sqlock_monotonic_ns() < until_ns)
        lk_sleep_until(sqlock_monotonic_ns() + LK_NS_PER_MS);
    lk_pool_give(pool, connection);
    if (atomic_load(taker->order) < taker->keeps_until)
        return worker_fail(worker, "no other thread had a connection");
    return 0;
}

/* A call that ends a lease goes before others that wait for a connection, and
 * those get it after that. */
SCENE_TEST(test_urgent_calls_get_a_connection_first)
{
    struct lk_connection *taken[CONNECTIONS];
    struct worker workers[3];
    struct taker takers[3];
    atomic_int order = 0;

    for (int i = 0; i < CONNECTIONS; i++)
        taken[i] = take(subject);
    for (int i = 0; i < 3; i++) {
        takers[i] = (struct taker){subject, i == 2, false, &order, 0, 0};
        worker_start(&workers[i], take_in_turn, &takers[i]);
        assert_becomes_true(worker_is_parked(&workers[i]), PATIENCE_MS);
    }
    lk_pool_give(&subject->db.pool, taken[0]);
    for (int i = 0; i < 3; i++)
        worker_join(&workers[i]);
    assert_int_equal(takers[2].place, 1);
    for (int i = 1; i < CONNECTIONS; i++)
        lk_pool_give(&subject->db.pool, taken[i]);
}

#define ROUNDS 30

/* Two connections are given back before the thread with the urgent call runs,
 * which was woken for both.  It keeps one, and the other is not left idle. */
SCENE_TEST(test_what_an_urgent_call_leaves_is_passed_on)
{
    struct lk_connection *taken[CONNECTIONS];

    for (int i = 0; i < ROUNDS; i++) {
        atomic_int order = 0;
        struct taker takers[] = {{subject, true, false, &order, 0, 2},
                                 {subject, false, false, &order, 0, 0}};
        struct worker workers[2];

        for (int k = 0; k < CONNECTIONS; k++)
            taken[k] = take(subject);
        for (int k = 0; k < 2; k++) {
            worker_start(&workers[k], take_in_turn, &takers[k]);
            assert_becomes_true(worker_is_parked(&workers[k]), PATIENCE_MS);
        }
        for (int k = 0; k < 2; k++)
            lk_pool_give(&subject->db.pool, taken[k]);
        for (int k = 0; k < 2; k++)
            worker_join(&workers[k]);
        lk_pool_give(&subject->db.pool, taken[2]);
    }
}

/* A thread with an urgent call has been woken for a connection that was given
 * back, and has not run yet: who comes meanwhile does not get it. */
SCENE_TEST(test_who_comes_later_leaves_it_to_the_urgent_call)
{
    int64_t now = sqlock_monotonic_ns();
    struct lk_wish wish = {.wait_until_ns = now, .latest_ns = now};
    struct lk_connection *connection = NULL;
    sqlock_error err = {0};
    int rc;

    subject->db.pool.urgent++;
    rc = lk_pool_take_as(&subject->db.pool, &wish, &connection, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    wish.is_urgent = true;
    rc = lk_pool_take_as(&subject->db.pool, &wish, &connection, &err);
    assert_lock_ok(rc, &err);
    subject->db.pool.urgent--;
    lk_pool_give(&subject->db.pool, connection);
}

/* A connection that is in use breaks.  The thread that has waited for longest
 * may open none: another one opens it, and then gives it to that. */
SCENE_TEST(test_a_free_place_wakes_one_that_may_open)
{
    for (int is_urgent = 0; is_urgent < 2; is_urgent++) {
        struct lk_connection *taken[CONNECTIONS];
        atomic_int order = 0;
        struct taker takers[] = {{subject, is_urgent, true, &order, 0, 0},
                                 {subject, is_urgent, false, &order, 0, 0}};
        struct worker workers[2];

        for (int i = 0; i < CONNECTIONS; i++)
            taken[i] = take(subject);
        for (int i = 0; i < 2; i++) {
            worker_start(&workers[i], take_in_turn, &takers[i]);
            assert_becomes_true(worker_is_parked(&workers[i]), PATIENCE_MS);
        }
        lk_pool_discard(&subject->db.pool, taken[0]);
        for (int i = 0; i < 2; i++)
            worker_join(&workers[i]);
        assert_int_equal(takers[1].place, 1);
        for (int i = 1; i < CONNECTIONS; i++)
            lk_pool_give(&subject->db.pool, taken[i]);
    }
}

struct late_run {
    struct pooled *pooled;
    int64_t deadline_ns;
    int64_t patient_until_ns;
};

static int select_one(struct worker *worker)
{
    struct late_run *late = worker->context;
    static char text[] = "SELECT 1";
    struct lk_statement statement = {.text = text, .sent = {.text = text}};
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    struct lk_run run = {.statement = &statement,
                         .arguments = &arguments,
                         .deadline_ns = late->deadline_ns,
                         .patient_until_ns = late->patient_until_ns};
    int rc = lk_db_run(&late->pooled->db, &run, &result, &worker->err);

    sqlock_result_clear(&result);
    worker_expect(worker, late->patient_until_ns != 0 ? 0 : SQLOCK_ERESOURCE,
                  rc);
    return 0;
}

SCENE_TEST(test_a_patient_run_waits_for_a_connection_in_use)
{
    struct lk_connection *taken[CONNECTIONS];
    int64_t now = sqlock_monotonic_ns();
    struct late_run late = {.pooled = subject,
                            .deadline_ns = lk_after_ms(now, 50)};
    struct worker worker;

    for (int i = 0; i < CONNECTIONS; i++)
        taken[i] = take(subject);
    worker_run(select_one, &late);
    late.deadline_ns = lk_after_ms(sqlock_monotonic_ns(), 1000);
    late.patient_until_ns = lk_after_ms(now, 10 * PATIENCE_MS);
    worker_start(&worker, select_one, &late);
    lk_sleep_until(late.deadline_ns + 50 * LK_NS_PER_MS);
    lk_pool_give(&subject->db.pool, taken[0]);
    worker_join(&worker);
    for (int i = 1; i < CONNECTIONS; i++)
        lk_pool_give(&subject->db.pool, taken[i]);
}

/* A driver whose statements conflict, and which takes until late_ns to say that
 * a connection can be used again after that. */
static struct {
    unsigned executed;
    unsigned looked_at;
    int64_t late_ns;
} conflicts;

static bool is_alive_late(void *connection)
{
    (void)connection;
    /* at the return of the connection, and before the next attempt */
    if (conflicts.executed > 0 && ++conflicts.looked_at == 2)
        lk_sleep_until(conflicts.late_ns);
    return true;
}

static int conflict(void *connection, const sqlock_statement *statement,
                    const sqlock_value *parameters, size_t count,
                    int64_t deadline_ns, sqlock_result *result,
                    sqlock_error *err)
{
    (void)connection;
    (void)statement;
    (void)parameters;
    (void)count;
    (void)deadline_ns;
    (void)result;
    conflicts.executed++;
    return lk_error(err, SQLOCK_ERETRY, "a conflict");
}

/* The last attempt finds the time over: that is no database out of reach. */
SCENE_TEST(test_conflicts_until_the_deadline_are_told)
{
    const sqlock_driver *own = subject->db.driver;
    sqlock_driver other = *own;
    static char text[] = "SELECT 1";
    struct lk_statement statement = {.text = text};
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    sqlock_error err = {0};
    struct lk_run run = {.statement = &statement, .arguments = &arguments};
    int rc;

    other.is_alive = is_alive_late;
    other.execute = conflict;
    memset(&conflicts, 0, sizeof conflicts);
    run.deadline_ns = lk_after_ms(sqlock_monotonic_ns(), 500);
    conflicts.late_ns = run.deadline_ns;
    subject->db.driver = &other;
    rc = lk_db_run(&subject->db, &run, &result, &err);
    subject->db.driver = own;
    assert_code(SQLOCK_EBUSY, rc, &err);
    assert_string_equal(err.message, "a conflict");
}

SCENE_TEST(test_what_could_not_be_set_up_may_be_cleared)
{
    const struct lk_pool_options options = {.size = 1};
    sqlock_error err = {0};
    struct lk_db db;
    int rc = lk_db_init(&db, "sqlite:?no_such=1", &options, &err);

    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_null(db.driver);
    lk_db_clear(&db);
}

#endif
