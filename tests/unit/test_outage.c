/*
 * test_outage.c - opening connections while the database is slow or away:
 * limits of time, and one attempt at a time
 *
 * The driver is SQLite's, with an `open` that the tests delay and let fail.
 */
#include "support/test.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/db.h"
#include "support/workers.h"

#define TAKERS 8

struct scene {
    struct lk_db db;
    struct lk_pool other; /* second pool of the registry */
    char path[64];
};

static const sqlock_driver *sqlite;
static atomic_bool is_away;
static atomic_uint opened;       /* attempts that have ended */
static atomic_uint at_once;      /* attempts under way */
static atomic_uint most;         /* maximum of at_once */
static atomic_llong deadline_ns; /* of the last attempt */
static atomic_llong opens_at_ns; /* no attempt ends sooner */

static int slow_open(void *connection, const struct lk_url *url,
                     const sqlock_connect *how, sqlock_error *err)
{
    unsigned now = atomic_fetch_add(&at_once, 1) + 1;
    bool was_away = atomic_load(&is_away);

    if (now > atomic_load(&most))
        atomic_store(&most, now);
    deadline_ns = how->deadline_ns;
    lk_sleep_until(opens_at_ns);
    (void)check_pause(INT64_MAX);
    atomic_fetch_sub(&at_once, 1);
    atomic_fetch_add(&opened, 1);
    if (was_away)
        return sqlock_error_set(err, SQLOCK_EUNREACHABLE, 0, NULL, "away");
    return sqlite->open(connection, url, how, err);
}

static struct scene *stage; /* of the test that runs */

static void open_scene(void)
{
    static struct scene scene;
    static sqlock_driver slow;
    const struct lk_pool_options options = {
        .size = TAKERS / 2,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS,
    };
    char url[80];
    int fd;

    (void)snprintf(scene.path, sizeof scene.path, "/tmp/sqlock-away.XXXXXX");
    fd = mkstemp(scene.path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "sqlite:%s", scene.path);
    assert_int_equal(lk_db_init(&scene.db, url, &options, NULL), 0);
    sqlite = scene.db.driver;
    slow = *sqlite;
    slow.open = slow_open;
    scene.db.driver = &slow;
    lk_pool_init(&scene.other, &scene.db, &options);
    atomic_store(&is_away, false);
    atomic_store(&opened, 0);
    atomic_store(&most, 0);
    opens_at_ns = 0;
    stage = &scene;
}

static void close_scene(void)
{
    lk_pool_clear(&stage->other);
    lk_db_clear(&stage->db);
    (void)unlink(stage->path);
}

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_scene, .close = close_scene)

/* The statement's deadline passes while the connection is being opened, which
 * may take connect_timeout_ms more. */
SCENE_TEST(test_opening_has_a_time_of_its_own)
{
    struct lk_connection *connection = NULL;
    int64_t begun_ns = sqlock_monotonic_ns();
    int64_t soon_ns = begun_ns + LK_NS_PER_MS;
    sqlock_error err = {0};
    int rc;

    opens_at_ns = begun_ns + 20 * LK_NS_PER_MS;
    rc = lk_pool_take(&stage->db.pool, soon_ns, &connection, &err);
    assert_lock_ok(rc, &err);
    assert_true(deadline_ns > soon_ns);
    assert_true(connection->late_ns >= 19 * LK_NS_PER_MS);
    lk_pool_give(&stage->db.pool, connection);
    rc = lk_pool_take(&stage->db.pool, soon_ns, &connection, &err);
    assert_lock_ok(rc, &err); /* an idle one, even after the deadline */
    lk_pool_discard(&stage->db.pool, connection);
}

SCENE_TEST(test_opening_ends_with_the_callers_time)
{
    struct lk_connection *connection = NULL;
    int64_t soon_ns = sqlock_monotonic_ns() + LK_NS_PER_MS;
    const struct lk_wish wish = {.wait_until_ns = soon_ns,
                                 .latest_ns = soon_ns};
    sqlock_error err = {0};

    deadline_ns = INT64_MAX;
    (void)lk_pool_take_as(&stage->db.pool, &wish, &connection, &err);
    assert_int_equal(opened, 1);
    assert_true(deadline_ns <= soon_ns);
    if (connection != NULL)
        lk_pool_give(&stage->db.pool, connection);
}

struct taker {
    struct scene *scene;
    atomic_uint next;
};

/* Take a connection, half of the threads from each pool, as soon as the
 * database is back. */
static int take_until_open(struct worker *worker)
{
    struct taker *taker = worker->context;
    struct lk_pool *pool = atomic_fetch_add(&taker->next, 1) % 2 == 0
                               ? &taker->scene->db.pool
                               : &taker->scene->other;
    struct lk_connection *connection;
    int rc;

    do
        rc = lk_pool_take(pool, sqlock_monotonic_ns() + LK_NS_PER_MS,
                          &connection, &worker->err);
    while (rc == SQLOCK_EUNREACHABLE || rc == SQLOCK_ERESOURCE);
    worker_expect(worker, 0, rc);
    if (rc == 0)
        lk_pool_give(pool, connection);
    return 0;
}

SCENE_TEST(test_one_tries_while_the_database_is_away)
{
    struct taker taker = {.scene = stage};
    struct lk_connection *connection;
    struct workers workers;
    sqlock_error err = {0};
    int rc;

    atomic_store(&is_away, true);
    rc = lk_pool_take(&taker.scene->db.pool, sqlock_monotonic_ns(), &connection,
                      &err);
    assert_code(SQLOCK_EUNREACHABLE, rc, &err);
    workers_start(&workers, TAKERS, take_until_open, &taker);
    assert_becomes_true(atomic_load(&opened) > 4, PATIENCE_MS);
    assert_int_equal(atomic_load(&most), 1);
    atomic_store(&is_away, false);
    workers_join(&workers);
}

SCENE_TEST(test_who_has_no_time_to_try_is_told_the_last_failure)
{
    sqlock_error why = {.code = SQLOCK_ERESOURCE, .message = "full"};
    sqlock_error err = {0};
    int rc;

    assert_int_equal(lk_outage_enter(&stage->db.outage, 0, &err), 0);
    (void)lk_outage_leave(&stage->db.outage, SQLOCK_ERESOURCE, &why);
    rc = lk_outage_enter(&stage->db.outage, sqlock_monotonic_ns(), &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    assert_string_equal(err.message, "full");
    rc = lk_outage_enter(&stage->db.outage, LK_NEVER, &err);
    assert_lock_ok(rc, &err);
    (void)lk_outage_leave(&stage->db.outage, SQLOCK_EACCESS,
                          &why); /* server answers */
    assert_int_equal(lk_outage_enter(&stage->db.outage, 0, &err), 0);
    assert_int_equal(lk_outage_enter(&stage->db.outage, 0, &err), 0);
    (void)lk_outage_leave(&stage->db.outage, 0, NULL);
}

/* A URL that has led to a database is right: if its host is unknown later, the
 * database is away, and a wait goes on. */
SCENE_TEST(test_a_url_that_was_right_stays_right)
{
    sqlock_error why = {.code = SQLOCK_EINVAL};
    struct lk_outage outage;

    lk_outage_init(&outage);
    assert_int_equal(lk_outage_enter(&outage, LK_NEVER, NULL), 0);
    assert_int_equal(lk_outage_leave(&outage, SQLOCK_EINVAL, &why),
                     SQLOCK_EINVAL);
    assert_int_equal(outage.retry.failures, 0);
    assert_int_equal(lk_outage_leave(&outage, 0, NULL), 0);
    assert_int_equal(lk_outage_leave(&outage, SQLOCK_EINVAL, &why),
                     SQLOCK_EUNREACHABLE);
    assert_int_equal(why.code, SQLOCK_EUNREACHABLE);
    assert_int_equal(outage.retry.failures, 1);
    lk_outage_clear(&outage);
}

/* Several threads that try at the same time and are refused count as one
 * failure: otherwise the next pause would at once be the longest one. */
SCENE_TEST(test_attempts_at_one_time_are_one_failure)
{
    sqlock_error why = {.code = SQLOCK_EUNREACHABLE};
    struct lk_outage outage;
    unsigned i;

    lk_outage_init(&outage);
    for (i = 0; i < TAKERS; i++)
        assert_int_equal(lk_outage_enter(&outage, LK_NEVER, NULL), 0);
    for (i = 0; i < TAKERS; i++)
        (void)lk_outage_leave(&outage, SQLOCK_EUNREACHABLE, &why);
    assert_int_equal(outage.retry.failures, 1);
    assert_int_equal(lk_outage_enter(&outage, LK_NEVER, NULL), 0);
    (void)lk_outage_leave(&outage, SQLOCK_EUNREACHABLE, &why);
    assert_int_equal(outage.retry.failures, 2);
    lk_outage_clear(&outage);
}

/* An attempt that began before the outage fails in another thread. */
static int fail_late(struct worker *worker)
{
    sqlock_error why = {.code = SQLOCK_EUNREACHABLE};

    (void)lk_outage_leave(worker->context, SQLOCK_EUNREACHABLE, &why);
    return 0;
}

SCENE_TEST(test_an_earlier_attempt_does_not_pass_for_the_probe)
{
    sqlock_error why = {.code = SQLOCK_EUNREACHABLE};
    struct lk_outage outage;

    lk_outage_init(&outage);
    for (int i = 0; i < 2; i++) /* for this thread, and for the other one */
        assert_int_equal(lk_outage_enter(&outage, LK_NEVER, NULL), 0);
    (void)lk_outage_leave(&outage, SQLOCK_EUNREACHABLE, &why);
    assert_int_equal(lk_outage_enter(&outage, LK_NEVER, NULL), 0);
    worker_run(fail_late, &outage);
    assert_int_equal(outage.retry.failures, 1);
    assert_int_not_equal(lk_outage_enter(&outage, 0, NULL), 0);
    (void)lk_outage_leave(&outage, SQLOCK_EUNREACHABLE, &why);
    assert_int_equal(outage.retry.failures, 2);
    lk_outage_clear(&outage);
}

/* The threads that wait for a probe all begin their own attempts when it has
 * succeeded, not at their deadlines, and not one after another. */
#define FOLLOWERS 3

struct follower {
    struct worker worker;
    struct lk_outage *outage;
    atomic_uint *entered;
};

static int follow(struct worker *worker)
{
    const struct follower *self = worker->context;
    int64_t until_ns = check_deadline_ns(2 * PATIENCE_MS);

    worker_expect(worker, 0,
                  lk_outage_enter(self->outage, until_ns, &worker->err));
    atomic_fetch_add(self->entered, 1);
    while (atomic_load(self->entered) < FOLLOWERS)
        worker_expect(worker, true, check_pause(until_ns));
    lk_outage_leave(self->outage, 0, &worker->err);
    return 0;
}

SCENE_TEST(test_a_probe_that_succeeds_lets_all_go_on)
{
    struct follower followers[FOLLOWERS];
    atomic_uint entered = 0;
    sqlock_error err = {0};

    assert_int_equal(lk_outage_enter(&stage->db.outage,
                                     check_deadline_ns(PATIENCE_MS), &err),
                     0);
    lk_outage_leave(&stage->db.outage, SQLOCK_EUNREACHABLE, &err);
    assert_int_equal(lk_outage_enter(&stage->db.outage,
                                     check_deadline_ns(PATIENCE_MS), &err),
                     0); /* the probe */
    for (int i = 0; i < FOLLOWERS; i++) {
        followers[i].outage = &stage->db.outage;
        followers[i].entered = &entered;
        worker_start(&followers[i].worker, follow, &followers[i]);
    }
    for (int i = 0; i < FOLLOWERS; i++)
        assert_becomes_true(worker_is_parked(&followers[i].worker),
                            PATIENCE_MS);
    lk_outage_leave(&stage->db.outage, 0, &err);
    for (int i = 0; i < FOLLOWERS; i++)
        worker_join(&followers[i].worker);
}

#endif
