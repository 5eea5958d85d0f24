/*
 * faults.c - servers that stop answering (F42) and sessions that the server
 * ends (F41)
 */
#include "conformance.h"

#include <string.h>

#include "sqlock/event.h"
#include "support/server.h"
#include "support/tap.h"
#include "support/workers.h"

static sqlock_options hasty(const struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.connect_timeout_ms = 300;
    options.statement_timeout_ms = 200;
    return options;
}

/* Open a registry with the short time limits of hasty(); try again for
 * PATIENCE_MS, since a busy machine, or a commit that waits for a standby, may
 * exceed these limits, and the test proper begins later.  Skip the test if the
 * server must not be stopped. */
static sqlock_registry *hasty_registry(struct fixture *f)
{
    sqlock_options options = hasty(f);
    sqlock_registry *registry = NULL;

    if (!server_can_stop(f->database))
        skip_or_fail("the server is not ours to stop");
    assert_becomes_true(
        sqlock_registry_open(&registry, f->url, &options, &f->err) == 0,
        PATIENCE_MS);
    return registry;
}

static void take_patiently(struct fixture *f, sqlock_lock *lock,
                           uint32_t ttl_ms)
{
    assert_becomes_true(lock_try(lock, 0, ttl_ms, &f->err) == 0, PATIENCE_MS);
}

static bool is_outage(int rc)
{
    return rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE;
}

static bool recovers(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *lock = lock_obtain(registry, "recovery");
    int rc = lock_try(lock, 0, 0, &f->err);

    if (rc == 0)
        rc = sqlock_release(lock, &f->err);
    (void)sqlock_drop(lock, NULL);
    return rc == 0;
}

/* Each call returns while the server is still stopped: EUNCERTAIN or
 * EUNREACHABLE. */
static void test_F42_calls_on_a_stopped_server_return(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = hasty_registry(f);
    sqlock_error errs[4] = {{0}};
    sqlock_lock *held;
    sqlock_lock *other;
    char name[64];
    int64_t left;
    bool believed;
    int rcs[4];
    int i;

    memcpy(name, f->name, sizeof name);
    held = lock_obtain(registry, name);
    fixture_next(f);
    other = lock_obtain(registry, f->name);
    take_patiently(f, held, LONG_TTL_MS);

    server_stop(f->database);
    rcs[0] = lock_try(other, 0, 0, &errs[0]);
    rcs[1] = lock_try(other, 400, 0, &errs[1]);
    left = sqlock_remaining_ms(held);
    rcs[2] = sqlock_renew(held, 0, &errs[2]);
    believed = sqlock_is_held(held) && left > 0;
    rcs[3] = sqlock_release(held, &errs[3]);
    server_go_on();

    for (i = 0; i < 4; i++)
        assert_code_of(SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE, rcs[i],
                       &errs[i]);
    assert_true(believed); /* the old deadline stands */
    assert_false(sqlock_is_held(held));
    assert_false(sqlock_is_held(other));
    assert_becomes_true(recovers(f, registry), PATIENCE_MS);
    registry_end(registry);
}

/* A claim is sent to a stopped server and given up.  When the server goes on,
 * it may still carry the claim out, but only for the claim's TTL: then another
 * registry gets the lock. */
static void test_F42_what_was_given_up_leaves_no_lock_behind(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = hasty_registry(f);
    sqlock_lock *lock;
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    int rc;

    lock = lock_obtain(registry, f->name);
    server_stop(f->database);
    rc = lock_try(lock, 0, 500, &f->err);
    server_go_on();
    assert_true(is_outage(rc));
    /* a claim that was carried out late expires with its TTL */
    assert_ok(lock_try(theirs, PATIENCE_MS, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    lock_give(theirs);
    lock_drop(theirs);
    registry_end(registry);
}

static void test_F42_opening_on_a_stopped_server_returns(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hasty(f);
    sqlock_registry *registry = (sqlock_registry *)1;
    int opened;

    if (!server_can_stop(f->database))
        skip_or_fail("the server is not ours to stop");
    server_stop(f->database);
    opened = sqlock_registry_open(&registry, f->url, &options, &f->err);
    server_go_on();
    assert_code(SQLOCK_EUNREACHABLE, opened, &f->err);
    assert_null(registry);
}

/* A registry with a held lock is closed while the server is stopped.  The call
 * returns an error, and the lease expires. */
static void test_F42_closing_on_a_stopped_server_returns(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = hasty_registry(f);
    sqlock_lock *lock;
    int rc;

    lock = lock_obtain(registry, f->name);
    take_patiently(f, lock, 500);
    server_stop(f->database);
    rc = sqlock_registry_close(registry, &f->err);
    server_go_on();
    assert_true(rc < 0);
    lock = lock_obtain(f->b, f->name);
    assert_ok(lock_try(lock, PATIENCE_MS, 0, &f->err));
    lock_give(lock);
    lock_drop(lock);
}

/* Another session has SQLite's write lock, which is to SQLite what a stopped
 * server is to the others: each call returns with an error. */
static void test_F42_a_locked_file_does_not_hang_anybody(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hasty(f);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *held = lock_obtain(registry, f->name);
    sqlock_lock *other;
    sqlock_error errs[3] = {{0}};
    int rcs[3];
    int i;

    fixture_next(f);
    other = lock_obtain(registry, f->name);
    lock_take(held, LONG_TTL_MS);
    assert_int_equal(sql_begin(&f->sql), 0);
    rcs[0] = lock_try(other, 0, 0, &errs[0]);
    rcs[1] = sqlock_renew(held, 0, &errs[1]);
    rcs[2] = sqlock_release(held, &errs[2]);
    assert_int_equal(sql_rollback(&f->sql), 0);
    for (i = 0; i < 3; i++) {
        assert_true(rcs[i] < 0);
        assert_true(check_one_line(errs[i].message));
    }
    assert_false(sqlock_is_held(other));
    assert_true(recovers(f, registry));
    registry_end(registry);
}

/* --- F41: sessions ended between calls --- */

static void open_admin(struct sql *admin, const struct fixture *f)
{
    int rc = sql_open(admin, f->database, database_admin_url(f->database));

    assert_lock_ok(rc, &admin->err);
}

static void end_sessions(struct sql *admin)
{
    int64_t ids[16];
    size_t count = tap_connections(ids, 16);

    assert_true(count > 0);
    server_end_sessions(admin, ids, count);
}

static void test_F41_a_session_ended_between_calls_is_not_seen(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct sql admin;
    int round;

    open_admin(&admin, f);
    for (round = 0; round < 3; round++) {
        int64_t token;

        end_sessions(&admin);
        lock_take(lock, 0);
        token = sqlock_token(lock);
        end_sessions(&admin);
        lock_renew(lock, 0);
        assert_true(sqlock_token(lock) == token);
        end_sessions(&admin);
        lock_give(lock);
    }
    sql_close(&admin);
    registry_end(registry);
}

/* The server ends all sessions of a registry, several times, while threads
 * acquire and release in a loop.  Each call succeeds, or returns a timeout or
 * the code of an outage, and never do two threads have the lock. */
struct storm {
    sqlock_lock *lock;
    atomic_int inside;
    atomic_bool over;
};

static int in_the_storm(struct worker *worker)
{
    struct storm *storm = worker->context;
    int rc;

    while (!atomic_load(&storm->over)) {
        rc = lock_try(storm->lock, 200, 0, &worker->err);
        if (rc == SQLOCK_ETIMEDOUT || is_outage(rc))
            continue;
        if (rc < 0)
            return worker_fail(worker, "acquire gave %d: %s", rc,
                               worker->err.message);
        if (atomic_fetch_add(&storm->inside, 1) != 0)
            return worker_fail(worker, "two owners");
        (void)atomic_fetch_sub(&storm->inside, 1);
        rc = sqlock_release(storm->lock, &worker->err);
        if (rc < 0 && !is_outage(rc))
            return worker_fail(worker, "release gave %d: %s", rc,
                               worker->err.message);
    }
    return 0;
}

static void test_F41_sessions_ended_during_calls(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    struct storm storm = {.lock = lock_obtain(registry, f->name)};
    struct worker workers[3];
    struct sql admin;
    size_t ended = 0;
    unsigned i;

    open_admin(&admin, f);
    lock_take(storm.lock, 0);
    lock_give(storm.lock);
    for (i = 0; i < 3; i++)
        worker_start(&workers[i], in_the_storm, &storm);
    for (i = 0; i < check_scale(5, 100); i++) {
        int64_t ids[16];
        size_t count = 0;

        /* The threads use this function's variables: nothing may fail the test
         * before they are joined. */
        (void)wait_until((count = tap_connections(ids, 16)) > 0, PATIENCE_MS);
        ended += server_end_some(&admin, ids, count);
    }
    atomic_store(&storm.over, true);
    for (i = 0; i < 3; i++)
        worker_join(&workers[i]);
    assert_true(ended > 0);
    sql_close(&admin);
    assert_becomes_true(recovers(f, registry), PATIENCE_MS);
    registry_end(registry);
}

/* --- F57: another server answers, or a standby that was promoted --- */

struct news {
    atomic_uint changes; /* events that name "epoch-two" */
};

static void note_news(void *context, const sqlock_event *event)
{
    struct news *news = context;

    if (strstr(event->text, "epoch-two") != NULL)
        (void)atomic_fetch_add(&news->changes, 1);
}

static int break_off(void *context, const struct tap_event *event)
{
    atomic_bool *is_contended = context;

    return event->call == TAP_EXECUTE && atomic_exchange(is_contended, false)
               ? SQLOCK_EUNREACHABLE
               : 0;
}

/* Break the connection, so that a new session is opened, which reports that
 * epoch.  Return how many changes of the epoch the registry has counted. */
static uint32_t reconnect(struct fixture *f, sqlock_registry *registry,
                          const char *epoch)
{
    char last[SQLOCK_EPOCH_SIZE];
    atomic_bool is_contended = true;
    uint32_t changes;

    tap_epoch(epoch);
    tap_hooks(break_off, NULL, &is_contended);
    assert_true(recovers(f, registry));
    tap_hooks(NULL, NULL, NULL);
    assert_false(atomic_load(&is_contended));
    changes = sqlock_registry_epoch(registry, last);
    assert_string_equal(last, epoch);
    return changes;
}

static void test_F57_a_promotion_is_noticed_and_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct news news = {0};
    sqlock_registry *registry;
    uint32_t before;

    options.on_event = note_news;
    options.event_context = &news;
    registry = fixture_tapped(f, &options);
    before = reconnect(f, registry, "epoch-one");
    assert_int_equal(reconnect(f, registry, "epoch-one"), before);
    assert_int_equal(atomic_load(&news.changes), 0);
    assert_int_equal(reconnect(f, registry, "epoch-two"), before + 1);
    assert_int_equal(atomic_load(&news.changes), 1);
    tap_epoch("");
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_STOPPING_IN(test_F42_calls_on_a_stopped_server_return, ON_SERVERS,
                     IN_ALL),
    TEST_STOPPING_IN(test_F42_what_was_given_up_leaves_no_lock_behind,
                     ON_SERVERS, IN_ALL),
    TEST_STOPPING_IN(test_F42_opening_on_a_stopped_server_returns, ON_SERVERS,
                     IN_SQLOCK),
    TEST_STOPPING_IN(test_F42_closing_on_a_stopped_server_returns, ON_SERVERS,
                     IN_SQLOCK),
    TEST_ON(test_F42_a_locked_file_does_not_hang_anybody, ON_SQLITE, IN_ALL),
    TEST_ON(test_F41_a_session_ended_between_calls_is_not_seen, ON_SERVERS,
            IN_ALL),
    TEST_ON(test_F41_sessions_ended_during_calls, ON_SERVERS, IN_SQLOCK),
    TEST(test_F57_a_promotion_is_noticed_and_told),
};
const struct topic topic_faults = TOPIC(tests);
