/*
 * clock.c - the database's clock steps (F15, F16): leases that nothing but time
 * protects are given up, fenced ones stay, and the log says so
 *
 * End to end, the step is in the answers to renewals: a driver around the real
 * one shifts the time that they say.  Nothing else of them is touched.
 */
#include "renewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/driver.h"
#include "lease/dbclock.h"
#include "locks/registry.h"
#include "sqlock/event.h"

/* -------------------------------------------------------- the arithmetic -- */

#define MS INT64_C(1000000)
#define DB_US INT64_C(1700000000000000)

static void test_F15_what_a_step_is(void **state)
{
    struct lk_dbclock clock = {0};
    int64_t at = 1000 * MS;

    (void)state;
    /* The first answer only teaches; read between 1000 and 1010 ms. */
    assert_true(lk_dbclock_observe(&clock, DB_US, at, at + 10 * MS) == 0);
    /* A second later on both clocks. */
    assert_true(lk_dbclock_observe(&clock, DB_US + 1000000, at + 1000 * MS,
                                   at + 1010 * MS) == 0);
    /* A slow answer fits any offset of the last seconds, and teaches nothing */
    assert_true(lk_dbclock_observe(&clock, DB_US + 2000000, at + 1500 * MS,
                                   at + 4000 * MS) == 0);
    assert_true(lk_dbclock_observe(&clock, DB_US + 5000000, at + 5000 * MS,
                                   at + 5010 * MS) == 0);
    /* Forth by 3 s: between 2.99 and 3.01 as far as can be said. */
    {
        int64_t step = lk_dbclock_observe(&clock, DB_US + 9000000,
                                          at + 6000 * MS, at + 6010 * MS);

        assert_in_range(step, 2980000, 3020000);
    }
    /* That is its time now. */
    assert_true(lk_dbclock_observe(&clock, DB_US + 10000000, at + 7000 * MS,
                                   at + 7010 * MS) == 0);
    /* And back by 3 s. */
    {
        int64_t step = lk_dbclock_observe(&clock, DB_US + 8000000,
                                          at + 8000 * MS, at + 8010 * MS);

        assert_in_range(-step, 2980000, 3020000);
    }
    assert_true(lk_dbclock_observe(&clock, DB_US + 9000000, at + 9000 * MS,
                                   at + 9010 * MS) == 0);
}

/* 200 ppm, for an hour, asked every 2 s: no single step is worth a word. */
static void test_F16_a_clock_that_drifts_does_not_step(void **state)
{
    struct lk_dbclock clock = {0};
    int64_t worst = 0;
    int i;

    (void)state;
    for (i = 0; i < 1800; i++) {
        int64_t at = (int64_t)i * 2000 * MS;
        int64_t now = DB_US + (int64_t)i * 2000400;
        int64_t step = lk_dbclock_observe(&clock, now, at, at + MS);

        if (llabs(step) > worst)
            worst = llabs(step);
    }
    assert_true(clock.offset_us > DB_US + 1800 * 300);
    assert_true(worst < 2000);
}

/* --------------------------------------------------------------- end to end */

#define PREFIX "shifted+"

static const sqlock_driver *real;
static sqlock_driver shifted;
static const char *renewal; /* the statement's text */
static _Atomic int64_t shift_us;

static int shifted_check(const char *url, sqlock_error *err)
{
    return real->check_url(url + strlen(PREFIX), err);
}

static int shifted_open(void *connection, const char *url,
                        const sqlock_connect *how, sqlock_error *err)
{
    return real->open(connection, url + strlen(PREFIX), how, err);
}

static int shifted_execute(void *connection, const sqlock_statement *statement,
                           const sqlock_value *parameters, size_t count,
                           int64_t deadline_ns, sqlock_result *result,
                           sqlock_error *err)
{
    int rc = real->execute(connection, statement, parameters, count,
                           deadline_ns, result, err);

    if (rc < 0 || renewal == NULL || statement->text != renewal)
        return rc;
    for (size_t row = 0; row < result->rows; row++)
        result->cells[row * result->columns + result->columns - 1].integer +=
            atomic_load(&shift_us);
    return 0;
}

static void install(struct fixture *f)
{
    static char schemes[32];
    int rc;

    if (real != NULL)
        return;
    rc = lk_driver_find(&real, f->url, &f->err);
    assert_lock_ok(rc, &f->err);
    (void)snprintf(schemes, sizeof schemes, PREFIX "%.*s",
                   (int)strcspn(f->url, ":"), f->url);
    shifted = *real;
    shifted.name = "shifted";
    shifted.schemes = schemes;
    shifted.check_url = shifted_check;
    shifted.resolve_url = NULL;
    shifted.open = shifted_open;
    shifted.execute = shifted_execute;
    rc = sqlock_driver_register(&shifted, &f->err);
    assert_lock_ok(rc, &f->err);
}

struct log {
    pthread_mutex_t mutex;
    atomic_int lines;
    char last[512];
};

static void note_line(void *context, const sqlock_event *event)
{
    struct log *log = context;

    if (event->kind != SQLOCK_EVENT_CLOCK_STEP)
        return;
    pthread_mutex_lock(&log->mutex);
    (void)snprintf(log->last, sizeof log->last, "%s", event->text);
    pthread_mutex_unlock(&log->mutex);
    (void)atomic_fetch_add(&log->lines, 1);
}

static void check_step(struct fixture *f, int64_t step_us)
{
    sqlock_options options = fixture_options(f);
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told plain_told = {0};
    struct told fenced_told = {0};
    sqlock_acquire_options how;
    sqlock_registry *registry;
    sqlock_lock *plain;
    sqlock_lock *fenced;
    char url[1024];
    int rc;

    install(f);
    renewal = NULL;
    atomic_store(&shift_us, 0);
    options.on_event = note_line;
    options.event_context = &log;
    (void)snprintf(url, sizeof url, PREFIX "%s", f->url);
    registry = fixture_registry_at(f, url, &options);
    plain = nth_lock(f, registry, 0);
    fenced = nth_lock(f, registry, 1);
    how = renewed_options(5 * TTL_MS, &fenced_told);
    how.fenced = true;
    renewal = registry->store.statements[SQLOCK_SQL_RENEW_MANY].sent.text;
    take_renewed(plain, 5 * TTL_MS, &plain_told);
    rc = sqlock_acquire(fenced, 0, &how, &f->err);
    assert_lock_ok(rc, &f->err);
    await_renewals(plain, 2);
    assert_int_equal(atomic_load(&log.lines), 0);
    atomic_store(&shift_us, step_us);
    assert_becomes_true(atomic_load(&plain_told.times) > 0, PATIENCE_MS);
    assert_int_equal(atomic_load(&plain_told.code), SQLOCK_ELOST);
    assert_false(sqlock_is_held(plain));
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_contains(log.last, "clock");
    assert_true(check_one_line(log.last));
    await_renewals(fenced, 3);
    assert_int_equal(atomic_load(&fenced_told.times), 0);
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_code(SQLOCK_ELOST, sqlock_release(plain, &f->err), &f->err);
    lock_give(fenced);
    /* Its new time is its time. */
    take_renewed(plain, 5 * TTL_MS, &plain_told);
    await_renewals(plain, 2);
    lock_give(plain);
    lock_drop(plain);
    lock_drop(fenced);
    registry_end(registry);
}

static void test_F15_the_clock_is_set_forward(void **state)
{
    check_step(*state, INT64_C(3600) * 1000000);
}

static void test_F15_the_clock_is_set_back(void **state)
{
    check_step(*state, INT64_C(-3600) * 1000000);
}

/* Within the margin nothing is said. */
static void test_F16_a_small_step_is_borne(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told told = {0};
    sqlock_registry *registry;
    sqlock_lock *lock;
    char url[1024];

    install(f);
    atomic_store(&shift_us, 0);
    options.on_event = note_line;
    options.event_context = &log;
    options.margin_ms = TTL_MS;
    (void)snprintf(url, sizeof url, PREFIX "%s", f->url);
    registry = fixture_registry_at(f, url, &options);
    renewal = registry->store.statements[SQLOCK_SQL_RENEW_MANY].sent.text;
    lock = lock_obtain(registry, f->name);
    take_renewed(lock, 5 * TTL_MS, &told);
    await_renewals(lock, 2);
    atomic_store(&shift_us, TTL_MS * 1000 / 4);
    await_renewals(lock, 3);
    assert_int_equal(atomic_load(&log.lines), 0);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_F15_what_a_step_is),
    TEST(test_F16_a_clock_that_drifts_does_not_step),
    TEST_ON(test_F15_the_clock_is_set_forward, ON_ALL, IN_ALL),
    TEST(test_F15_the_clock_is_set_back),
    TEST(test_F16_a_small_step_is_borne),
};
const struct topic topic_clock = TOPIC(tests);
