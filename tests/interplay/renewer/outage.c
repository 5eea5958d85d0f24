/*
 * outage.c - renewals go on while the application uses every connection (F35)
 * and while their own connections break again and again (F5); and their time
 * limits
 */
#include "renewer.h"

#include "base/clock.h"
#include "locks/registry.h"
#include "support/server.h"
#include "support/tap.h"
#include "support/workers.h"

static bool row_ends_after(struct fixture *f, sqlock_lock *lock, int64_t us)
{
    assert_true(sqlock_is_held(lock));
    return fixture_row(f, f->name).expires_us > us;
}

/* ------------------------------------------------ all connections in use -- */

static int show_row(struct worker *worker)
{
    sqlock_info *row = NULL;
    int rc = sqlock_show(worker->context, "nobody's", &row, &worker->err);

    sqlock_info_free(row, row != NULL ? 1 : 0);
    return rc == 0 ? worker_fail(worker, "%s", "there is such a row") : 0;
}

static void test_F35_renewals_do_not_wait_for_the_pool(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    struct barrier jam;
    struct told told = {0};
    struct worker worker;
    sqlock_registry *tapped;
    sqlock_lock *lock;
    int64_t ends;

    options.pool_size = 1;
    tapped = fixture_tapped(f, &options);
    lock = lock_obtain(tapped, f->name);
    take_renewed(lock, RENEWED_MS, &told);
    barrier_begin(&jam, tapped, SQLOCK_SQL_READ, false);
    worker_start(&worker, show_row, tapped);
    assert_becomes_true(atomic_load(&jam.is_up), PATIENCE_MS);
    ends = fixture_row(f, f->name).expires_us;
    assert_becomes_true(row_ends_after(f, lock, ends + RENEWED_MS * 1000),
                        PATIENCE_MS);
    assert_false(atomic_load(&jam.may_go));
    atomic_store(&jam.may_go, true);
    worker_join(&worker);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
    registry_end(tapped);
}

/* ------------------------------------------------ connections that break -- */

struct breakage {
    const char *renewal;
    struct sql *sql; /* ends the sessions; NULL: the tap breaks connections */
    bool loses_answer;
    atomic_uint renewals;
    atomic_uint broken;
};

/* Return whether to break this call: every other renewal, so that a renewal
 * which is sent again succeeds. */
static bool is_its_turn(struct breakage *breakage,
                        const struct tap_event *event)
{
    return event->call == TAP_EXECUTE && event->text == breakage->renewal &&
           atomic_fetch_add(&breakage->renewals, 1) % 2 == 0;
}

static int cut_before(void *context, const struct tap_event *event)
{
    struct breakage *breakage = context;
    int64_t ids[16];
    size_t count;

    if (breakage->loses_answer || !is_its_turn(breakage, event))
        return 0;
    (void)atomic_fetch_add(&breakage->broken, 1);
    if (breakage->sql == NULL)
        return SQLOCK_EUNREACHABLE;
    count = tap_connections(ids, 16);
    (void)server_end_some(breakage->sql, ids, count);
    return 0;
}

static int cut_after(void *context, const struct tap_event *event, int rc)
{
    struct breakage *breakage = context;

    if (rc < 0 || !breakage->loses_answer || !is_its_turn(breakage, event))
        return rc;
    (void)atomic_fetch_add(&breakage->broken, 1);
    return SQLOCK_EUNCERTAIN;
}

static void check_breakage(struct fixture *f, struct breakage *breakage)
{
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    struct told told = {0};
    int64_t ends;

    breakage->renewal = census_text(tapped, SQLOCK_SQL_RENEW_MANY);
    take_renewed(lock, RENEWED_MS, &told);
    ends = fixture_row(f, f->name).expires_us;
    tap_hooks(cut_before, cut_after, breakage);
    assert_becomes_true(row_ends_after(f, lock, ends + 6 * TTL_MS * 1000),
                        PATIENCE_MS);
    tap_hooks(NULL, NULL, NULL);
    assert_true(atomic_load(&breakage->broken) >= 4);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
    registry_end(tapped);
}

static void test_F5_the_session_is_ended_at_every_renewal(void **state)
{
    struct fixture *f = *state;
    struct breakage breakage = {0};
    struct sql sql;
    int rc = sql_open(&sql, f->database, database_admin_url(f->database));

    assert_lock_ok(rc, &sql.err);
    breakage.sql = &sql;
    check_breakage(f, &breakage);
    sql_close(&sql);
}

static void test_F5_the_connection_breaks_before_every_renewal(void **state)
{
    struct breakage breakage = {0};

    check_breakage(*state, &breakage);
}

static void test_F5_the_answer_to_every_renewal_is_lost(void **state)
{
    struct breakage breakage = {.loses_answer = true};

    check_breakage(*state, &breakage);
}

/* ------------------------------------------------- renewals are refused -- */

static int refuse_renewal(void *context, const struct tap_event *event)
{
    struct spy *spy = context;

    if (event->text != spy->text)
        return 0;
    (void)atomic_fetch_add(&spy->times, 1);
    return SQLOCK_EACCESS;
}

/* Renewals are refused at once: they are tried again, but no more than eight
 * times per period. */
static void test_refused_renewals_are_tried_again_with_pauses(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    struct spy spy = {.text = census_text(tapped, SQLOCK_SQL_RENEW_MANY)};
    int64_t pause_ns = PERIOD_MS * LK_NS_PER_MS / 8;
    int64_t began_ns;
    unsigned times;

    tap_hooks(refuse_renewal, NULL, &spy);
    began_ns = lk_boottime_ns();
    take_renewed(lock, RENEWED_MS, NULL);
    assert_becomes_true(atomic_load(&spy.times) > 16, PATIENCE_MS);
    times = atomic_load(&spy.times);
    assert_true(times <= (lk_boottime_ns() - began_ns) / pause_ns + 1);
    tap_hooks(NULL, NULL, NULL);
    assert_true(sqlock_is_held(lock));
    lock_end(lock);
    registry_end(tapped);
}

/* -------------------------------------------------------- time limits -- */

struct late {
    const char *renewal;
    atomic_bool is_sent;
    atomic_bool is_answered;
    atomic_int rc;
};

/* Hold the first renewal up for two periods before it is sent. */
static int send_late(void *context, const struct tap_event *event)
{
    struct late *late = context;

    if (event->text == late->renewal && !atomic_exchange(&late->is_sent, true))
        check_sleep(2 * PERIOD_MS);
    return 0;
}

static int note_answer(void *context, const struct tap_event *event, int rc)
{
    struct late *late = context;

    if (event->text == late->renewal &&
        !atomic_exchange(&late->is_answered, true))
        atomic_store(&late->rc, rc);
    return rc;
}

/* The answer to a renewal takes two periods and is awaited: a renewal may take
 * an eighth of the TTL, because giving it up costs the connection. */
static void test_an_answer_may_take_longer_than_a_short_period(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = renewer_tapped(f);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    struct late late = {.renewal = census_text(tapped, SQLOCK_SQL_RENEW_MANY),
                        .rc = SQLOCK_EUNCERTAIN};

    tap_hooks(send_late, note_answer, &late);
    take_renewed(lock, LONG_TTL_MS, NULL);
    assert_becomes_true(atomic_load(&late.is_answered), PATIENCE_MS);
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&late.rc), 0);
    lock_end(lock);
    registry_end(tapped);
}

#define CONNECT_MS 8000
#define STATEMENT_MS 2500

/* Assert that the renewer waits that long for a connection, and other callers
 * CONNECT_MS. */
static void expect_connect_ms(struct fixture *f, uint32_t ttl_ms,
                              uint32_t expected_ms)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;

    options.ttl_ms = ttl_ms;
    options.connect_timeout_ms = CONNECT_MS;
    options.statement_timeout_ms = STATEMENT_MS;
    registry = fixture_registry(f, &options);
    assert_int_equal(registry->store.db.reserved.options.connect_timeout_ms,
                     expected_ms);
    assert_int_equal(registry->store.db.pool.options.connect_timeout_ms,
                     CONNECT_MS);
    assert_int_equal(registry->store.db.waiting.options.connect_timeout_ms,
                     CONNECT_MS);
    registry_end(registry);
}

static void test_a_renewal_waits_for_a_connection_by_the_ttl(void **state)
{
    struct fixture *f = *state;

    expect_connect_ms(f, 4 * STATEMENT_MS - 400, STATEMENT_MS);
    expect_connect_ms(f, 4 * STATEMENT_MS + 400, STATEMENT_MS + 100);
    expect_connect_ms(f, 4 * CONNECT_MS - 400, CONNECT_MS - 100);
    expect_connect_ms(f, 4 * CONNECT_MS + 400, CONNECT_MS);
}

static void expect_lock_ms(struct fixture *f, uint32_t statement_ms,
                           uint32_t expected_ms)
{
    sqlock_registry *registry = registry_within(f, statement_ms);
    const struct lk_db *db = &registry->store.db;

    assert_int_equal(db->pool.options.lock_timeout_ms, expected_ms);
    assert_int_equal(db->reserved.options.lock_timeout_ms, expected_ms);
    registry_end(registry);
}

/* A statement waits for a row for half of its timeout, but for no more than a
 * second; the rest is for reading which holder has the row. */
static void test_a_statement_waits_for_a_row_for_a_second_at_most(void **state)
{
    struct fixture *f = *state;

    expect_lock_ms(f, 1500, 750);
    expect_lock_ms(f, 2000, 1000);
    expect_lock_ms(f, 10000, 1000);
}

static const struct test tests[] = {
    TEST(test_F35_renewals_do_not_wait_for_the_pool),
    TEST_ON(test_F5_the_session_is_ended_at_every_renewal, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_F5_the_connection_breaks_before_every_renewal),
    TEST(test_F5_the_answer_to_every_renewal_is_lost),
    TEST(test_refused_renewals_are_tried_again_with_pauses),
    TEST(test_an_answer_may_take_longer_than_a_short_period),
    TEST(test_a_renewal_waits_for_a_connection_by_the_ttl),
    TEST(test_a_statement_waits_for_a_row_for_a_second_at_most),
};
const struct topic topic_outage = TOPIC(tests);
