/*
 * test_outage.c - waits while the database is away: they go on until their time
 * is over, unless fail_fast ends them with the first error
 */
#include "suite.h"

#include <string.h>

#include "support/fault_driver.h"
#include "support/server.h"

/* The time limit of a statement is short, so that several attempts fit into
 * each sleep of NAP_MS. */
#define STATEMENT_MS (100 * SLOWNESS)
#define NAP_MS (6 * STATEMENT_MS)

struct scene {
    struct fixture *f;
    sqlock_registry *registry; /* through the tap */
    sqlock_lock *lock;
    struct contender next;
};

static void open_scene(struct scene *scene, struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    memset(scene, 0, sizeof *scene);
    scene->f = f;
    options.statement_timeout_ms = STATEMENT_MS;
    scene->registry = fixture_tapped(f, &options);
    scene->lock = lock_obtain(scene->registry, f->name);
}

static void close_scene(struct scene *scene)
{
    fault_heal();
    lock_drop(scene->lock);
    registry_end(scene->registry);
}

/* From here on, each statement with that text in it (NULL: any) fails at that
 * point with that code. */
static void go_away(enum fault_point point, int code, const char *text)
{
    const struct fault_plan plan = {.call = TAP_EXECUTE,
                                    .containing = text,
                                    .nth = 0,
                                    .point = point,
                                    .code = code};

    fault_arm(&plan);
}

/* Check that a release which returned rc has freed the lock, or will do so.  On
 * a busy machine the release may fail at its time limit, that of one statement;
 * then the registry repeats it in the background. */
static void expect_release(struct scene *scene, int rc, const sqlock_error *err)
{
    sqlock_lock *next = lock_obtain(scene->f->b, scene->f->name);

    if (rc != SQLOCK_EUNREACHABLE && rc != SQLOCK_EUNCERTAIN)
        assert_code(0, rc, err);
    rc = lock_try(next, PATIENCE_MS, 0, &scene->f->err);
    assert_lock_ok(rc, &scene->f->err);
    lock_end(next);
}

static void expect_grant(struct scene *scene)
{
    struct contender *next = &scene->next;

    contender_await(next);
    atomic_store(&next->may_release, true);
    worker_join(&next->worker);
    expect_release(scene, next->released, &next->worker.err);
}

/* Check that a wait goes on while each statement fails in this way, and gets
 * the lock afterwards. */
static void wait_through(struct scene *scene, enum fault_point point, int code)
{
    go_away(point, code, NULL);
    contender_start(&scene->next, scene->lock, SQLOCK_FOREVER);
    check_sleep(NAP_MS);
    assert_int_equal(atomic_load(&scene->next.rc), 1);
    assert_becomes_true(fault_times() > 1, PATIENCE_MS);
    fault_heal();
    expect_grant(scene);
}

static void outlast(struct fixture *f, int code)
{
    struct scene scene;

    open_scene(&scene, f);
    wait_through(&scene, FAULT_BEFORE, code);
    close_scene(&scene);
}

static void test_a_wait_outlasts_an_outage(void **state)
{
    outlast(*state, SQLOCK_EUNREACHABLE);
}

static void test_a_wait_outlasts_a_lack_of_resources(void **state)
{
    outlast(*state, SQLOCK_ERESOURCE);
}

/* ERETRY: in a cluster, claims of other nodes come first. */
static void test_a_wait_outlasts_conflicts(void **state)
{
    outlast(*state, SQLOCK_ERETRY);
}

/* A process that closes a database in one file keeps the file locked for a
 * moment: a registry that is opened then tries again. */
static void test_opening_outlasts_a_busy_moment(void **state)
{
    const struct fault_plan plan = {.call = TAP_EXECUTE,
                                    .nth = 1,
                                    .point = FAULT_BEFORE,
                                    .code = SQLOCK_EBUSY};
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    char url[1024];

    tap_install();
    tap_reset();
    fault_arm(&plan);
    assert_ok(sqlock_registry_open(&registry, tap_url(url, f->url), &options,
                                   &f->err));
    assert_int_equal(fault_times(), 1);
    fault_heal();
    registry_end(registry);
}

/* Acquire until the result is that code: on a busy machine a statement may take
 * too long, once or twice. */
static void expect_code(struct scene *scene, int64_t wait_ms, int code)
{
    assert_becomes_true(
        sqlock_acquire(scene->lock, wait_ms, NULL, &scene->f->err) == code,
        PATIENCE_MS);
}

static void test_the_end_of_a_wait_tells_the_cause(void **state)
{
    struct scene scene;
    sqlock_lock *held;

    open_scene(&scene, *state);
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    expect_code(&scene, 5 * STATEMENT_MS, SQLOCK_EUNREACHABLE);
    go_away(FAULT_BEFORE, SQLOCK_ERETRY, "INSERT"); /* the claims */
    expect_code(&scene, 5 * STATEMENT_MS, SQLOCK_ETIMEDOUT);
    expect_code(&scene, 0, SQLOCK_EBUSY);
    fault_heal();
    held = lock_obtain(scene.f->a, scene.f->name);
    lock_take(held, 0);
    expect_code(&scene, 5 * STATEMENT_MS, SQLOCK_ETIMEDOUT);
    lock_end(held);
    close_scene(&scene);
}

/* The server is read-only for a while, as a standby is.  Its old sessions stay
 * read-only after that: the wait opens new ones. */
static void test_a_wait_outlasts_a_standby(void **state)
{
    struct scene scene;
    struct fixture *f = *state;
    int64_t ids[8];
    size_t count;
    int rc;

    open_scene(&scene, f);
    count = tap_connections(ids, 8);
    sql_run(&f->sql, "ALTER ROLE CURRENT_USER SET "
                     "default_transaction_read_only = on");
    (void)server_end_some(&f->sql, ids, count);
    (void)wait_until((rc = sqlock_acquire(scene.lock, 0, NULL, &f->err)) ==
                         SQLOCK_EREADONLY,
                     PATIENCE_MS);
    contender_start(&scene.next, scene.lock, SQLOCK_FOREVER);
    check_sleep(NAP_MS);
    sql_run(&f->sql,
            "ALTER ROLE CURRENT_USER RESET default_transaction_read_only");
    assert_code(SQLOCK_EREADONLY, rc, &f->err);
    assert_int_equal(atomic_load(&scene.next.rc), 1);
    expect_grant(&scene);
    close_scene(&scene);
}

static const struct test tests[] = {
    TEST(test_a_wait_outlasts_an_outage),
    TEST(test_a_wait_outlasts_a_lack_of_resources),
    TEST(test_a_wait_outlasts_conflicts),
    TEST(test_opening_outlasts_a_busy_moment),
    TEST(test_the_end_of_a_wait_tells_the_cause),
    TEST_ON(test_a_wait_outlasts_a_standby, ON_POSTGRES, IN_SQLOCK),
};

const struct topic topic_outage = TOPIC(tests);
