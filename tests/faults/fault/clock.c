/*
 * clock.c - a database whose clock is set forward or back during leases (F15)
 *
 * The server reads its clock from a file, through libfaketime; clock.sh starts
 * such a server for these tests alone.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "fault.h"
#include "sqlock/event.h"
#include "support/server.h"
#include "support/told.h"
#include "support/workers.h"

#define CLOCK_TTL_MS 20000 /* of which a twentieth is the margin */
#define KEEP_MS 100
#define WITHIN_MS 500
#define BEYOND_MS 5000

const char *clock_file;

/* Return by how much the server's clock is ahead of this host's. */
static int64_t offset_ms(void)
{
    int64_t theirs_us = sql_now_us(&stage.fixture.sql);
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return theirs_us / 1000 -
           ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static void step_to(int ms)
{
    server_set_clock(clock_file, ms);
    assert_becomes_true(offset_ms() > ms - 300 && offset_ms() < ms + 300,
                        PATIENCE_MS);
}

/* Two renewed locks; the second one is acquired as fenced. */
struct scene {
    sqlock_registry *registry;
    sqlock_lock *plain;
    sqlock_lock *fenced;
    struct told plain_told;
    struct told fenced_told;
    atomic_int reports; /* number of events CLOCK_STEP */
};

static void log_line(void *context, const sqlock_event *event)
{
    struct scene *scene = context;

    if (event->kind == SQLOCK_EVENT_CLOCK_STEP)
        (void)atomic_fetch_add(&scene->reports, 1);
}

static void begin_scene(struct scene *scene)
{
    sqlock_options options = stage_options();
    sqlock_acquire_options acquire = SQLOCK_ACQUIRE_INIT;
    int rc;

    memset(scene, 0, sizeof *scene);
    step_to(0);
    options.ttl_ms = CLOCK_TTL_MS;
    options.renew_period_ms = KEEP_MS;
    options.statement_timeout_ms = 2000;
    options.connect_timeout_ms = 2000;
    options.on_event = log_line;
    options.event_context = scene;
    scene->registry = stage_registry(&options);
    scene->plain = lock_obtain(scene->registry, stage.names[0]);
    scene->fenced = lock_obtain(scene->registry, stage.names[1]);
    acquire.auto_renew = true;
    acquire.on_lost = told_note;
    acquire.lost_context = &scene->plain_told;
    rc = sqlock_acquire(scene->plain, 0, &acquire, &stage.a.err);
    assert_lock_ok(rc, &stage.a.err);
    acquire.fenced = true;
    acquire.lost_context = &scene->fenced_told;
    rc = sqlock_acquire(scene->fenced, 0, &acquire, &stage.a.err);
    assert_lock_ok(rc, &stage.a.err);
}

/* Wait for so many renewals of the fenced lock. */
static void await_renewals(int times)
{
    for (int i = 0; i < times; i++) {
        int64_t before = stage_row(1).expires_us;

        assert_becomes_true(stage_row(1).expires_us != before, PATIENCE_MS);
    }
}

static void end_scene(struct scene *scene, int expected)
{
    int64_t token = sqlock_token(scene->fenced);
    int rc;

    /* the fenced lock is still held: its token protects the writes */
    assert_int_equal(atomic_load(&scene->fenced_told.times), 0);
    assert_true(sqlock_is_held(scene->fenced));
    rc = sqlock_release(scene->plain, &stage.a.err);
    assert_code(expected, rc, &stage.a.err);
    lock_give(scene->fenced);
    /* tokens rise, whatever the clock says now */
    lock_take(scene->fenced, 0);
    assert_less(token, sqlock_token(scene->fenced));
    lock_give(scene->fenced);
    registry_end(scene->registry);
    step_to(0);
}

TEST_WITH(test_F15_a_clock_set_forth_ends_leases_without_a_guard,
          .databases = ON_SERVERS, .set = SET_CLOCK)
{
    struct scene scene;

    begin_scene(&scene);
    await_renewals(3);
    step_to(BEYOND_MS);
    assert_becomes_true(atomic_load(&scene.plain_told.times) == 1, PATIENCE_MS);
    assert_int_equal(atomic_load(&scene.plain_told.code), SQLOCK_ELOST);
    assert_false(sqlock_is_held(scene.plain));
    assert_int_equal(atomic_load(&scene.reports), 1);
    await_renewals(2);
    assert_int_equal(atomic_load(&scene.reports), 1); /* no second one */
    end_scene(&scene, SQLOCK_ELOST);
}

/* The clock is set back beyond the beginning of the leases: rows last longer
 * than their holders believe, and are renewed. */
TEST_WITH(test_F15_a_clock_set_back_ends_nothing, .databases = ON_SERVERS,
          .set = SET_CLOCK)
{
    struct scene scene;

    begin_scene(&scene);
    await_renewals(3);
    step_to(-10 * CLOCK_TTL_MS);
    assert_becomes_true(atomic_load(&scene.reports) == 1, PATIENCE_MS);
    await_renewals(6);
    assert_int_equal(atomic_load(&scene.reports), 1); /* no second one */
    assert_int_equal(atomic_load(&scene.plain_told.times), 0);
    assert_true(sqlock_is_held(scene.plain));
    end_scene(&scene, 0);
}

TEST_WITH(test_F15_a_step_within_the_margin_ends_nothing,
          .databases = ON_SERVERS, .set = SET_CLOCK)
{
    struct scene scene;

    begin_scene(&scene);
    await_renewals(3);
    step_to(WITHIN_MS);
    await_renewals(3);
    step_to(0);
    await_renewals(3);
    assert_int_equal(atomic_load(&scene.plain_told.times), 0);
    assert_int_equal(atomic_load(&scene.reports), 0);
    assert_true(sqlock_is_held(scene.plain));
    end_scene(&scene, 0);
}

/* The clock is set forward beyond the end of the leases, which are then over
 * for the database: on_lost is called for both locks, and B gets the first. */
TEST_WITH(test_F15_a_clock_set_beyond_the_lease_is_told,
          .databases = ON_SERVERS, .set = SET_CLOCK)
{
    struct scene scene;
    int rc;

    begin_scene(&scene);
    await_renewals(3);
    step_to(CLOCK_TTL_MS + BEYOND_MS);
    assert_becomes_true(atomic_load(&scene.plain_told.times) == 1, PATIENCE_MS);
    assert_becomes_true(atomic_load(&scene.fenced_told.times) == 1,
                        PATIENCE_MS);
    assert_false(sqlock_is_held(scene.plain));
    assert_false(sqlock_is_held(scene.fenced));
    assert_lock_ok(party_acquire(&stage.b, 0, 0), &stage.b.err);
    rc = sqlock_release(scene.plain, &stage.a.err);
    assert_code(SQLOCK_ELOST, rc, &stage.a.err);
    assert_true(sqlock_is_held(stage.b.locks[0]));
    rc = sqlock_release(scene.fenced, &stage.a.err);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &stage.a.err);
    registry_end(scene.registry);
    step_to(0);
}

/* --- the clock is set while others wait --- */

/* One who waits in a registry of its own, as a process does. */
struct waiting {
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct worker worker;
    atomic_bool has_lock;
};

static int await_lock(struct worker *worker)
{
    struct waiting *waiting = worker->context;

    worker_expect(
        worker, 0,
        sqlock_acquire(waiting->lock, SQLOCK_FOREVER, NULL, &worker->err));
    atomic_store(&waiting->has_lock, true);
    return 0;
}

static int64_t tickets(void)
{
    return sql_integer(&stage.fixture.sql,
                       "SELECT coalesce(sum((length(QUEUE) - "
                       "length(replace(QUEUE, '[\"', ''))) / 2), 0) FROM %s "
                       "WHERE LOCK_KEY = '%s'",
                       stage.fixture.table, stage_row(0).key);
}

static void open_one(struct waiting *one)
{
    sqlock_options options = stage_options();

    options.ttl_ms = 60 * CLOCK_TTL_MS;
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    one->registry = stage_registry(&options);
    one->lock = lock_obtain(one->registry, stage.names[0]);
}

static void begin_to_wait(struct waiting *one)
{
    int64_t before = tickets();

    open_one(one);
    worker_start(&one->worker, await_lock, one);
    assert_becomes_true(tickets() == before + 1, PATIENCE_MS);
}

static void check_order_after(int ms)
{
    static struct waiting all[3];

    memset(all, 0, sizeof all);
    open_one(&all[0]);
    lock_take(all[0].lock, 0);
    begin_to_wait(&all[1]);
    begin_to_wait(&all[2]);
    step_to(ms);
    for (size_t i = 1; i < 3; i++) {
        lock_give(all[i - 1].lock);
        worker_join(&all[i].worker);
        assert_true(i == 2 || !atomic_load(&all[2].has_lock));
    }
    lock_give(all[2].lock);
    for (size_t i = 0; i < 3; i++)
        registry_end(all[i].registry);
    step_to(0);
}

TEST_WITH(test_F15_who_waits_keeps_the_order_when_the_clock_is_set,
          .databases = ON_SERVERS, .set = SET_CLOCK)
{
    step_to(0);
    check_order_after(-600000);
    check_order_after(20000);
}
