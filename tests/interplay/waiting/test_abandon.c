/*
 * test_abandon.c - what is given up while it is under way: the caller has
 * nothing of it any more, and its next call is answered as if it had never been
 */
#include "suite.h"

#include <sched.h>
#include <unistd.h>

#include "sqlock/lease.h"

static sqlock_registry *owned_by(struct fixture *f, sqlock_ownership ownership)
{
    sqlock_options options = fixture_options(f);

    options.ownership = ownership;
    return fixture_registry(f, &options);
}

/* Give requests up at different moments, and acquire with other options right
 * after that: the acquire waits for the release in the background. */
static void check_acquire_after(struct fixture *f, sqlock_ownership ownership)
{
    sqlock_registry *registry = owned_by(f, ownership);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    for (int i = 0; i < 40; i++) {
        sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
        sqlock_request *request;

        options.ttl_ms = LONG_TTL_MS + 1000;
        options.auto_renew = i % 2 == 0;
        request = request_ask(f, lock, PATIENCE_MS, &options, 0);
        if (i % 4 == 1)
            sched_yield();
        else if (i % 4 > 1)
            assert_becomes_true(request_is_over(request), PATIENCE_MS);
        request_give_up(f, request);
        options.ttl_ms = LONG_TTL_MS + 2000;
        options.auto_renew = i % 2 != 0;
        assert_ok(sqlock_acquire(lock, PATIENCE_MS, &options, &f->err));
        assert_int_equal(sqlock_hold_count(lock), 1);
        lock_give(lock);
    }
    lock_drop(lock);
    registry_end(registry);
}

static void test_after_an_abandoned_request_others_get_the_lock(void **state)
{
    check_acquire_after(*state, SQLOCK_OWNED_BY_REGISTRY);
    check_acquire_after(*state, SQLOCK_OWNED_BY_HANDLE);
    check_acquire_after(*state, SQLOCK_OWNED_BY_THREAD);
}

/* The caller has nothing of what an abandoned request has got. */
static void check_not_the_callers(struct fixture *f, sqlock_ownership ownership)
{
    sqlock_registry *registry = owned_by(f, ownership);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_request *request = request_ask(f, lock, PATIENCE_MS, NULL, 0);
    char id[SQLOCK_KEY_SIZE];

    assert_becomes_true(request_is_over(request), PATIENCE_MS);
    request_give_up(f, request);
    assert_false(sqlock_is_held(lock));
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_true(sqlock_token(lock) == 0);
    sqlock_client_id(lock, id);
    assert_string_equal(id, "");
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_renew(lock, 0, &f->err));
    lock_drop(lock);
    registry_end(registry);
    assert_true(fixture_is_free(f, f->name));
}

static void test_what_an_abandoned_request_got_is_not_the_callers(void **state)
{
    check_not_the_callers(*state, SQLOCK_OWNED_BY_REGISTRY);
    check_not_the_callers(*state, SQLOCK_OWNED_BY_HANDLE);
    check_not_the_callers(*state, SQLOCK_OWNED_BY_THREAD);
}

/* A request that is finished too late leaves nothing to be seen. */
static void check_late(struct fixture *f, sqlock_ownership ownership)
{
    sqlock_registry *registry = owned_by(f, ownership);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_request *request;

    options.ttl_ms = 100;
    request = request_ask(f, lock, PATIENCE_MS, &options, 0);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_LOST,
                        PATIENCE_MS);
    assert_fails(SQLOCK_EEXPIRED, sqlock_request_finish(request, &f->err));
    assert_true(sqlock_token(lock) == 0);
    assert_int_equal(sqlock_hold_count(lock), 0);
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    assert_ok(sqlock_acquire(lock, PATIENCE_MS, NULL, &f->err));
    lock_end(lock);
    registry_end(registry);
}

static void test_a_late_request_leaves_no_token(void **state)
{
    check_late(*state, SQLOCK_OWNED_BY_REGISTRY);
    check_late(*state, SQLOCK_OWNED_BY_HANDLE);
    check_late(*state, SQLOCK_OWNED_BY_THREAD);
}

static void note_loss(void *context, sqlock_lock *lock, int code)
{
    (void)lock;
    atomic_store((atomic_int *)context, code);
}

/* After a request was given up, on_lost is not called: the caller may have
 * freed what that uses. */
static void test_an_abandoned_request_calls_nobody(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    atomic_int told = 0;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_request *request;

    options.ttl_ms = 150;
    options.on_lost = note_loss;
    options.lost_context = &told;
    lock_take(other, 0); /* the request waits */
    request = request_ask(f, lock, PATIENCE_MS, &options, 0);
    request_give_up(f, request);
    lock_give(other);
    request = request_ask(f, lock, PATIENCE_MS, &options, 0);
    assert_becomes_true(request_is_over(request), PATIENCE_MS);
    sql_run(&f->sql, "BEGIN");
    sql_run(&f->sql, "UPDATE %s SET REGION = REGION", f->table);
    request_give_up(f, request); /* its release waits for the row */
    (void)usleep(400000);        /* the lease is over by now */
    assert_int_equal(atomic_load(&told), 0);
    sql_run(&f->sql, "ROLLBACK");
    lock_drop(lock);
    lock_drop(other);
}

static const struct test tests[] = {
    TEST(test_after_an_abandoned_request_others_get_the_lock),
    TEST(test_what_an_abandoned_request_got_is_not_the_callers),
    TEST(test_a_late_request_leaves_no_token),
    TEST(test_an_abandoned_request_calls_nobody),
};

const struct topic topic_abandon = TOPIC(tests);
