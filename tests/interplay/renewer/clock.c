/*
 * clock.c - steps of the database's clock (F15, F16): after one forward leases
 * without the option `fenced` count as lost, fenced ones stay; after one back
 * all stay; and an event reports the step
 *
 * In the end-to-end tests a driver around the real one makes the step: it adds
 * an offset to the database's time in the answers to renewals, and changes
 * nothing else.
 */
#include "renewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/drivers.h"
#include "lease/dbclock.h"
#include "lock/registry.h"
#include "sqlock/event.h"

/* -------------------------------------------------------- the arithmetic -- */

#define MS INT64_C(1000000)
#define DB_US INT64_C(1700000000000000)

/* lk_dbclock_observe() gets one reading of the database's clock after the other
 * and returns the step, if any, that each of them shows. */
static void test_F15_what_a_step_is(void **state)
{
    static const struct {
        const char *name;
        int64_t clock_ms; /* the database's clock */
        int64_t asked_ms; /* this host's clock before the reading */
        int64_t told_ms;  /* this host's clock after the reading */
        int64_t step_ms;  /* expected, to within 20 ms; 0: exactly 0 */
    } answers[] = {
        {"the first one only teaches", 0, 0, 10, 0},
        {"a second later on both clocks", 1000, 1000, 1010, 0},
        {"one so slow that any offset fits", 2000, 1500, 4000, 0},
        {"it has taught nothing", 5000, 5000, 5010, 0},
        {"set forth by 3 s", 9000, 6000, 6010, 3000},
        {"that is its time now", 10000, 7000, 7010, 0},
        {"set back by 3 s", 8000, 8000, 8010, -3000},
        {"and that is its time now", 9000, 9000, 9010, 0},
        {"set forth by an hour, told late", 3614000, 10000, 14000, 3600000},
        {"how late, a fast answer says", 3615005, 15000, 15010, 0},
    };
    struct lk_dbclock clock = {0};

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        int64_t step_us =
            lk_dbclock_observe(&clock, DB_US + 1000 * answers[i].clock_ms,
                               (1000 + answers[i].asked_ms) * MS,
                               (1000 + answers[i].told_ms) * MS);
        int64_t off_us = llabs(step_us - 1000 * answers[i].step_ms);

        if (off_us > (answers[i].step_ms == 0 ? 0 : 20000))
            fail_msg("%s: a step of %lld us", answers[i].name,
                     (long long)step_us);
    }
}

/* Each answer leaves a range for the offset, which others narrow from both
 * sides: so a step shows that is smaller than the range of any of them. */
static void test_F15_answers_narrow_the_offset_from_both_sides(void **state)
{
    struct lk_dbclock clock = {0};
    int64_t step_us;

    (void)state;
    /* offsets from 0 to 1000, from -900 to 100, and from 50 to 1050 ms */
    assert_int_equal(lk_dbclock_observe(&clock, DB_US + 1000000, 0, 1000 * MS),
                     0);
    assert_int_equal(
        lk_dbclock_observe(&clock, DB_US + 2100000, 2000 * MS, 3000 * MS), 0);
    assert_true(clock.least_us == DB_US && clock.most_us == DB_US + 100000);
    assert_int_equal(
        lk_dbclock_observe(&clock, DB_US + 5050000, 4000 * MS, 5000 * MS), 0);
    assert_true(clock.least_us == DB_US + 50000 &&
                clock.most_us == DB_US + 100000);
    /* from 300 to 1300 ms: forward by 200 at least */
    step_us = lk_dbclock_observe(&clock, DB_US + 7300000, 6000 * MS, 7000 * MS);
    assert_true(step_us == 200000);
    /* from -900 to 100 ms: back by 200 at least */
    step_us = lk_dbclock_observe(&clock, DB_US + 8100000, 8000 * MS, 9000 * MS);
    assert_true(step_us == -200000);
}

/* The database's clock drifts by 200 ppm for an hour and is read every 2 s: the
 * known offset follows, and no reading shows a step of 2 ms or more. */
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
    assert_true(clock.least_us > DB_US + 1800 * 300);
    assert_true(worst < 2000);
}

/* --------------------------------------------------------------- end to end */

#define PREFIX "shifted+"

static const sqlock_driver *real;
static sqlock_driver shifted;
static const char *renewal; /* the statement's text */
static _Atomic int64_t shift_us;

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
        result->cells[row * result->columns + (result->columns > 1)].integer +=
            atomic_load(&shift_us);
    return 0;
}

static void install(struct fixture *f)
{
    static char schemes[32];

    if (real != NULL)
        return;
    assert_ok(lk_driver_find(&real, f->url, &f->err));
    (void)snprintf(schemes, sizeof schemes, PREFIX "%.*s",
                   (int)strcspn(f->url, ":"), f->url);
    shifted = *real;
    shifted.name = "shifted";
    shifted.schemes = schemes;
    shifted.execute = shifted_execute;
    assert_true(lk_driver_add(&shifted));
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

/* Open a registry by the driver that shifts the time in answers to renewals;
 * `log` gets its CLOCK_STEP events.  registry_end() closes it. */
static sqlock_registry *open_shifted(struct fixture *f, struct log *log,
                                     uint32_t margin_ms)
{
    sqlock_options options = renewer_options(f);
    sqlock_registry *registry;
    char url[1024];

    install(f);
    atomic_store(&shift_us, 0);
    options.on_event = note_line;
    options.event_context = log;
    options.margin_ms = margin_ms;
    (void)snprintf(url, sizeof url, PREFIX "%s", f->url);
    registry = fixture_registry_at(f, url, &options);
    renewal = statement_text(registry, SQLOCK_SQL_RENEW_MANY);
    return registry;
}

static void test_F15_the_clock_is_set_forward(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told plain_told = {0};
    struct told fenced_told = {0};
    sqlock_acquire_options how = renewed_options(5 * TTL_MS, &fenced_told);
    sqlock_registry *registry = open_shifted(f, &log, 0);
    sqlock_lock *plain = nth_lock(f, registry, 0);
    sqlock_lock *fenced = nth_lock(f, registry, 1);

    how.fenced = true;
    take_renewed(plain, 5 * TTL_MS, &plain_told);
    assert_ok(sqlock_acquire(fenced, 0, &how, &f->err));
    await_renewals(plain, 2);
    assert_int_equal(atomic_load(&log.lines), 0);
    atomic_store(&shift_us, INT64_C(3600) * 1000000);
    await_told(&plain_told, SQLOCK_ELOST);
    assert_false(sqlock_is_held(plain));
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_contains(log.last, "clock");
    assert_true(check_one_line(log.last));
    await_renewals(fenced, 3);
    assert_int_equal(atomic_load(&fenced_told.times), 0);
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_fails(SQLOCK_ELOST, sqlock_release(plain, &f->err));
    lock_give(fenced);
    /* The new time of the database's clock is no further step. */
    take_renewed(plain, 5 * TTL_MS, &plain_told);
    await_renewals(plain, 2);
    lock_end(plain);
    lock_drop(fenced);
    registry_end(registry);
}

/* A step that the margin of the long lease bears, and that of a short one does
 * not; leases of RENEWED_MS are the short ones. */
#define SMALL_STEP_US (INT64_C(1000) * RENEWED_MS / 10)
#define LONG_MS (5 * RENEWED_MS)

static void test_F15_each_lease_bears_what_its_own_margin_does(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told long_told = {0};
    struct told short_told = {0};
    sqlock_registry *registry = open_shifted(f, &log, 0);
    sqlock_lock *long_one = nth_lock(f, registry, 0);
    sqlock_lock *short_one = nth_lock(f, registry, 1);

    take_renewed(long_one, LONG_MS, &long_told);
    take_renewed(short_one, RENEWED_MS, &short_told);
    await_renewals(short_one, 2);
    atomic_store(&shift_us, SMALL_STEP_US);
    await_told(&short_told, SQLOCK_ELOST);
    assert_true(sqlock_is_held(long_one));
    await_renewals(long_one, 2);
    assert_int_equal(atomic_load(&long_told.times), 0);
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_fails(SQLOCK_ELOST, sqlock_release(short_one, &f->err));
    lock_end(long_one);
    lock_drop(short_one);
    registry_end(registry);
}

/* The short lease, which is not renewed any more, is not in the statement that
 * shows the step. */
static void test_F15_a_step_is_judged_for_leases_of_other_batches(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told long_told = {0};
    struct told short_told = {0};
    sqlock_acquire_options how = renewed_options(RENEWED_MS, &short_told);
    sqlock_registry *registry = open_shifted(f, &log, 0);
    sqlock_lock *long_one = nth_lock(f, registry, 0);
    sqlock_lock *short_one = nth_lock(f, registry, 1);

    how.max_hold_ms = 1;
    take_renewed(long_one, LONG_MS, &long_told);
    await_renewals(long_one, 2);
    assert_ok(sqlock_acquire(short_one, 0, &how, &f->err));
    check_sleep(2);
    atomic_store(&shift_us, SMALL_STEP_US);
    await_told(&short_told, SQLOCK_ELOST);
    assert_true(sqlock_is_held(long_one));
    assert_int_equal(atomic_load(&long_told.times), 0);
    assert_fails(SQLOCK_ELOST, sqlock_release(short_one, &f->err));
    lock_end(long_one);
    lock_drop(short_one);
    registry_end(registry);
}

static void test_F15_the_close_tells_what_a_step_lost(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told told = {0};
    sqlock_registry *registry = open_shifted(f, &log, 0);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    take_renewed(lock, 5 * TTL_MS, &told);
    await_renewals(lock, 2);
    atomic_store(&shift_us, INT64_C(3600) * 1000000);
    await_told(&told, SQLOCK_ELOST);
    assert_fails(SQLOCK_ELOST, sqlock_registry_close(registry, &f->err));
}

/* Rows last longer than their holders believe: no lease is lost. */
static void test_F15_the_clock_is_set_back(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told told = {0};
    sqlock_registry *registry = open_shifted(f, &log, 0);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    take_renewed(lock, 5 * TTL_MS, &told);
    await_renewals(lock, 2);
    atomic_store(&shift_us, INT64_C(-3600) * 1000000);
    await_renewals(lock, 3);
    assert_int_equal(atomic_load(&log.lines), 1);
    assert_contains(log.last, "clock");
    assert_true(check_one_line(log.last));
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
    registry_end(registry);
}

/* A step of less than the margin is not reported, and no lease is lost. */
static void test_F16_a_small_step_is_borne(void **state)
{
    struct fixture *f = *state;
    struct log log = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct told told = {0};
    sqlock_registry *registry = open_shifted(f, &log, TTL_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    take_renewed(lock, 5 * TTL_MS, &told);
    await_renewals(lock, 2);
    atomic_store(&shift_us, TTL_MS * 1000 / 4);
    await_renewals(lock, 3);
    assert_int_equal(atomic_load(&log.lines), 0);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_F15_what_a_step_is),
    TEST(test_F15_answers_narrow_the_offset_from_both_sides),
    TEST(test_F16_a_clock_that_drifts_does_not_step),
    TEST_ON(test_F15_the_clock_is_set_forward, ON_ALL, IN_ALL),
    TEST(test_F15_each_lease_bears_what_its_own_margin_does),
    TEST(test_F15_a_step_is_judged_for_leases_of_other_batches),
    TEST(test_F15_the_close_tells_what_a_step_lost),
    TEST(test_F15_the_clock_is_set_back),
    TEST(test_F16_a_small_step_is_borne),
};
const struct topic topic_clock = TOPIC(tests);
