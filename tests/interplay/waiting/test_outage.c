/*
 * test_outage.c - waits while the database is away: they go on until their time
 * is over, unless fail_fast ends them with the first error
 */
#include "suite.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlock/many.h"
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

/* A wait for two locks outlasts an outage, as a wait for one does.  Without a
 * wait the acquire reports the outage, not EBUSY as for a lock that is
 * taken. */
static void test_a_wait_for_many_outlasts_an_outage(void **state)
{
    sqlock_lock *locks[2];
    struct scene scene;
    int rc;

    open_scene(&scene, *state);
    locks[0] = scene.lock;
    locks[1] = lock_obtain(scene.registry, "outage, another");
    scene.next.many = locks;
    scene.next.many_count = 2;
    wait_through(&scene, FAULT_BEFORE, SQLOCK_EUNREACHABLE);
    /* The contender has released locks[0] only: use a third lock. */
    locks[1] = lock_obtain(scene.registry, "outage, a third");
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    rc = sqlock_acquire_many(locks, 2, 0, NULL, NULL, &scene.f->err);
    assert_code(SQLOCK_EUNREACHABLE, rc, &scene.f->err);
    fault_heal();
    lock_drop(locks[1]);
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

/* EBUSY: another session has the database's file, or the whole table,
 * locked. */
static void test_a_wait_outlasts_a_busy_database(void **state)
{
    outlast(*state, SQLOCK_EBUSY);
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

/* An outage begins while another process holds the lock: the wait goes on. */
static void test_an_outage_behind_a_holder(void **state)
{
    struct scene scene;
    sqlock_lock *held;
    uint64_t sent;

    open_scene(&scene, *state);
    held = lock_obtain(scene.f->a, scene.f->name);
    lock_take(held, 0);
    sent = tap_count(TAP_EXECUTE);
    contender_queue(&scene.next, scene.lock, SQLOCK_FOREVER);
    /* The waiter's claim was refused, and the waiter has sent something
     * else. */
    assert_becomes_true(tap_count(TAP_EXECUTE) >= sent + 2, PATIENCE_MS);
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    lock_give(held);
    check_sleep(NAP_MS);
    assert_int_equal(atomic_load(&scene.next.rc), 1);
    fault_heal();
    expect_grant(&scene);
    lock_drop(held);
    close_scene(&scene);
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

static void test_fail_fast_ends_a_wait_with_the_first_error(void **state)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct scene scene;

    open_scene(&scene, *state);
    options.fail_fast = true;
    scene.next.options = &options;
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    contender_start(&scene.next, scene.lock, SQLOCK_FOREVER);
    contender_expect(&scene.next, SQLOCK_EUNREACHABLE);
    close_scene(&scene);
}

/* One waiter of a process makes the attempts; those behind it are told how an
 * attempt ended, at once with fail_fast, otherwise when their time is over. */
static void test_an_outage_is_told_to_who_waits_behind(void **state)
{
    sqlock_acquire_options hasty = SQLOCK_ACQUIRE_INIT;
    struct contender behind = {.options = &hasty};
    struct contender brief = {0};
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    struct scene scene;
    int rc;

    open_scene(&scene, *state);
    hasty.fail_fast = true;
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    contender_start(&scene.next, scene.lock, SQLOCK_FOREVER);
    assert_becomes_true(fault_times() > 0, PATIENCE_MS);
    contender_start(&behind, scene.lock, SQLOCK_FOREVER);
    contender_expect(&behind, SQLOCK_EUNREACHABLE);
    do { /* until an attempt ends during the wait */
        contender_start(&brief, scene.lock, STATEMENT_MS);
        assert_becomes_true(atomic_load(&brief.rc) <= 0, PATIENCE_MS);
        worker_join(&brief.worker);
    } while (atomic_load(&brief.rc) == SQLOCK_ETIMEDOUT && check_pause(end_ns));
    assert_code(SQLOCK_EUNREACHABLE, atomic_load(&brief.rc), &brief.worker.err);
    rc = sqlock_acquire(scene.lock, 0, NULL, &scene.f->err);
    assert_code(SQLOCK_EUNREACHABLE, rc, &scene.f->err);
    assert_int_equal(atomic_load(&scene.next.rc), 1);
    fault_heal();
    expect_grant(&scene);
    close_scene(&scene);
}

static void test_a_wait_in_an_outage_is_cancelled(void **state)
{
    struct scene scene;

    open_scene(&scene, *state);
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    contender_start(&scene.next, scene.lock, SQLOCK_FOREVER);
    check_sleep(NAP_MS);
    assert_lock_ok(sqlock_cancel(scene.lock, &scene.f->err), &scene.f->err);
    contender_expect(&scene.next, SQLOCK_ECANCELED);
    close_scene(&scene);
}

/* Check that a request gets the result of the last attempt, which the waiter
 * before it has made.  On a busy machine no attempt may end while the request
 * waits: then try again. */
static void expect_told(struct scene *scene, int code)
{
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    sqlock_request *request;
    int rc;

    do {
        request = request_ask(scene->f, scene->lock, STATEMENT_MS, NULL, 0);
        assert_becomes_true(request_is_over(request), PATIENCE_MS);
        rc = sqlock_request_finish(request, &scene->f->err);
    } while (rc == SQLOCK_ETIMEDOUT && check_pause(end_ns));
    assert_code(code, rc, &scene->f->err);
}

/* Between attempts a request is suspended, where a thread would sleep.  The
 * first request gets the lock after the outage, the second one is cancelled. */
static void test_a_request_outlasts_an_outage(void **state)
{
    struct scene scene;
    sqlock_request *request;
    int rc;

    open_scene(&scene, *state);
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    request = request_ask(scene.f, scene.lock, SQLOCK_FOREVER, NULL, 0);
    check_sleep(NAP_MS);
    assert_false(request_is_over(request));
    expect_told(&scene, SQLOCK_EUNREACHABLE);
    fault_heal();
    request_expect(scene.f, request, SQLOCK_REQUEST_HELD, 0);
    rc = sqlock_release(scene.lock, &scene.f->err);
    expect_release(&scene, rc, &scene.f->err);
    go_away(FAULT_BEFORE, SQLOCK_EUNREACHABLE, NULL);
    request = request_ask(scene.f, scene.lock, SQLOCK_FOREVER, NULL, 0);
    check_sleep(NAP_MS);
    assert_lock_ok(sqlock_cancel(scene.lock, &scene.f->err), &scene.f->err);
    request_expect(scene.f, request, SQLOCK_REQUEST_FREE, SQLOCK_ECANCELED);
    close_scene(&scene);
}

/* Claims are carried out, but their answers are lost: these claims in doubt do
 * not keep the lock from the wait that made them. */
static void test_a_wait_outlasts_claims_in_doubt(void **state)
{
    struct scene scene;

    open_scene(&scene, *state);
    wait_through(&scene, FAULT_SENT, SQLOCK_EUNCERTAIN);
    go_away(FAULT_SENT, SQLOCK_EUNCERTAIN, NULL);
    expect_code(&scene, 5 * STATEMENT_MS, SQLOCK_EUNCERTAIN);
    close_scene(&scene);
}

/* A missing table, which no retry puts right, is reported at once. */
static void test_a_wait_ends_where_the_table_is_gone(void **state)
{
    struct scene scene;
    struct fixture *f = *state;

    open_scene(&scene, f);
    sql_run(&f->sql, "ALTER TABLE %s RENAME TO %s_AWAY", f->table, f->table);
    contender_start(&scene.next, scene.lock, SQLOCK_FOREVER);
    (void)wait_until(atomic_load(&scene.next.rc) <= 0, PATIENCE_MS);
    sql_run(&f->sql, "ALTER TABLE %s_AWAY RENAME TO %s", f->table, f->table);
    contender_expect(&scene.next, SQLOCK_ESCHEMA);
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
    TEST(test_a_wait_for_many_outlasts_an_outage),
    TEST(test_a_wait_outlasts_a_lack_of_resources),
    TEST(test_a_wait_outlasts_conflicts),
    TEST(test_a_wait_outlasts_a_busy_database),
    TEST(test_opening_outlasts_a_busy_moment),
    TEST(test_an_outage_behind_a_holder),
    TEST(test_the_end_of_a_wait_tells_the_cause),
    TEST(test_fail_fast_ends_a_wait_with_the_first_error),
    TEST(test_an_outage_is_told_to_who_waits_behind),
    TEST(test_a_wait_in_an_outage_is_cancelled),
    TEST(test_a_request_outlasts_an_outage),
    TEST(test_a_wait_outlasts_claims_in_doubt),
    TEST(test_a_wait_ends_where_the_table_is_gone),
    TEST_ON(test_a_wait_outlasts_a_standby, ON_POSTGRES, IN_SQLOCK),
};

const struct topic topic_outage = TOPIC(tests);
