/*
 * absent.c - a thread ends, or hangs, while it holds a lock: its lease runs
 * out, and other threads of its process get the lock as other processes do
 */
#include "renewer.h"

#include "sqlock/async.h"
#include "sqlock/many.h"
#include "sqlock/lease.h"
#include "support/workers.h"

struct absent {
    sqlock_lock *lock;
    sqlock_acquire_options options;
    unsigned times; /* how often the thread acquires the lock; 0: once */
    bool ends;      /* the thread ends without a release */
    atomic_bool is_in;
    /* if not `ends`: the thread is to renew and release the lock now */
    atomic_bool comes_back;
    int released[2];  /* results of the releases */
    uint32_t counted; /* hold count before the last release */
    int64_t renewed;  /* result of the renewal */
};

static int go_absent(struct worker *worker)
{
    struct absent *absent = worker->context;

    for (unsigned i = 0; i < absent->times; i++)
        worker_expect(
            worker, 0,
            sqlock_acquire(absent->lock, 0, &absent->options, &worker->err));
    atomic_store(&absent->is_in, true);
    if (absent->ends)
        return 0;
    while (!atomic_load(&absent->comes_back))
        (void)check_pause(INT64_MAX);
    absent->renewed = sqlock_renew(absent->lock, 0, &worker->err);
    for (unsigned i = 0; i < absent->times; i++) {
        absent->counted = sqlock_hold_count(absent->lock);
        absent->released[i] = sqlock_release(absent->lock, &worker->err);
    }
    return 0;
}

static void start_absent(struct absent *absent, struct worker *worker,
                         sqlock_lock *lock)
{
    absent->lock = lock;
    absent->times = absent->times == 0 ? 1 : absent->times;
    worker_start(worker, go_absent, absent);
    assert_becomes_true(atomic_load(&absent->is_in), PATIENCE_MS);
    if (absent->ends)
        worker_join(worker);
}

static void test_a_thread_that_ended_does_not_keep_its_process_out(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct absent absent = {.options = told_options(TTL_MS, NULL),
                            .ends = true};
    struct worker worker;

    start_absent(&absent, &worker, lock);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    lock_take(lock, 0);
    lock_end(lock);
}

/* A thread ends while its lease is renewed.  Renewals stop, and on_lost reports
 * the loss before another thread gets the lock. */
static void test_what_a_thread_renewed_ends_with_it(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    struct absent absent = {.options = renewed_options(RENEWED_MS, &told),
                            .ends = true};
    struct worker worker;

    start_absent(&absent, &worker, lock);
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    assert_int_equal(atomic_load(&told.times), 1);
    assert_int_equal(atomic_load(&told.code), SQLOCK_EEXPIRED);
    lock_end(lock);
}

static void test_what_a_registry_keeps_outlives_its_thread(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    struct absent absent = {.options = renewed_options(RENEWED_MS, NULL),
                            .ends = true};
    sqlock_registry *registry;
    struct worker worker;
    sqlock_lock *lock;

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    start_absent(&absent, &worker, lock);
    await_renewals(lock, 3);
    lock_give(lock);
    registry_end(registry);
}

/* The holder's thread hangs until another thread has got the lock.  Its renewal
 * fails, its inner release only counts down, and its outer release returns
 * ELOST and leaves the new holder's row as it is. */
static void test_a_thread_that_comes_back_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct absent absent = {.options = told_options(TTL_MS, NULL), .times = 2};
    struct worker worker;
    char client[SQLOCK_KEY_SIZE];

    start_absent(&absent, &worker, lock);
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    sqlock_client_id(lock, client);
    atomic_store(&absent.comes_back, true);
    worker_join(&worker);
    assert_int_equal(absent.renewed, SQLOCK_EEXPIRED);
    assert_int_equal(absent.released[0], 0); /* the inner one */
    assert_int_equal(absent.counted, 1);
    assert_int_equal(absent.released[1], SQLOCK_ELOST);
    assert_true(sqlock_is_held(lock));
    assert_string_equal(fixture_row(f, f->name).client, client);
    lock_end(lock);
}

/* The holder's thread hangs until its lease has expired, but nobody else takes
 * the lock: the release returns EEXPIRED, as after any expiry. */
static void test_a_thread_that_comes_back_to_its_lock(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct absent absent = {.options = told_options(TTL_MS, NULL)};
    struct worker worker;

    start_absent(&absent, &worker, lock);
    fixture_await_expiry(f, f->name);
    atomic_store(&absent.comes_back, true);
    worker_join(&worker);
    assert_int_equal(absent.released[0], SQLOCK_EEXPIRED);
    lock_take(lock, 0);
    lock_end(lock);
}

static void test_requests_go_past_an_absent_holder(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_acquire_options options = told_options(TTL_MS, NULL);
    struct absent absent = {.options = told_options(TTL_MS, NULL),
                            .ends = true};
    sqlock_request *first;
    sqlock_request *second;
    struct worker worker;
    int rc;

    start_absent(&absent, &worker, lock);
    rc = sqlock_request_acquire(&first, lock, SQLOCK_FOREVER, &options, 0,
                                &f->err);
    assert_lock_ok(rc, &f->err);
    assert_ok(sqlock_request_acquire(&second, lock, SQLOCK_FOREVER, NULL, 0,
                                     &f->err));
    /* The first request gets the lock; since nobody finishes the request, its
     * lease expires, and the second request gets the lock. */
    assert_becomes_true(sqlock_request_status(second) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_int_equal(sqlock_request_status(first), SQLOCK_REQUEST_LOST);
    assert_fails(SQLOCK_EEXPIRED, sqlock_request_finish(first, &f->err));
    assert_ok(sqlock_request_finish(second, &f->err));
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    /* The release of the first request's lease may still be under way. */
    assert_becomes_true(sqlock_drop(lock, NULL) == 0, PATIENCE_MS);
}

static void test_many_go_past_an_absent_holder(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[2] = {nth_lock(f, f->a, 0), nth_lock(f, f->a, 1)};
    struct absent absent = {.options = told_options(TTL_MS, NULL),
                            .ends = true};
    struct worker worker;

    start_absent(&absent, &worker, locks[1]);
    assert_ok(sqlock_acquire_many(locks, 2, PATIENCE_MS, NULL, NULL, &f->err));
    assert_ok(sqlock_release_many(locks, 2, NULL, &f->err));
    lock_drop(locks[0]);
    lock_drop(locks[1]);
}

static const struct test tests[] = {
    TEST_ON(test_a_thread_that_ended_does_not_keep_its_process_out, ON_ALL,
            IN_ALL),
    TEST(test_what_a_thread_renewed_ends_with_it),
    TEST(test_what_a_registry_keeps_outlives_its_thread),
    TEST_ON(test_a_thread_that_comes_back_is_told, ON_ALL, IN_ALL),
    TEST(test_a_thread_that_comes_back_to_its_lock),
    TEST(test_requests_go_past_an_absent_holder),
    TEST(test_many_go_past_an_absent_holder),
};
const struct topic topic_absent = TOPIC(tests);
