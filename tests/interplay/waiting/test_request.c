/*
 * test_request.c - acquiring and releasing by requests, which block no thread
 * of the caller
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/many.h"
#include "support/tap.h"

static int open_eventfd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}

/* Get the sum written to the eventfd since it was last read. */
static uint64_t drain(int fd)
{
    uint64_t count = 0;

    return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

sqlock_request *request_ask(struct fixture *f, sqlock_lock *lock,
                            int64_t wait_ms,
                            const sqlock_acquire_options *options, int done_fd)
{
    sqlock_request *request = NULL;

    assert_ok(sqlock_request_acquire(&request, lock, wait_ms, options, done_fd,
                                     &f->err));
    assert_non_null(request);
    return request;
}

bool request_is_over(sqlock_request *request)
{
    sqlock_request_state state = sqlock_request_status(request);

    return state != SQLOCK_REQUEST_FETCHING &&
           state != SQLOCK_REQUEST_RELEASING;
}

/* Wait until the request has ended, check its state and result, and finish
 * it. */
void request_expect(struct fixture *f, sqlock_request *request,
                    sqlock_request_state state, int rc)
{
    assert_becomes_true(request_is_over(request), PATIENCE_MS);
    assert_int_equal(sqlock_request_status(request), state);
    assert_code(rc, sqlock_request_finish(request, &f->err), &f->err);
}

void request_give_up(struct fixture *f, sqlock_request *request)
{
    assert_ok(sqlock_request_abandon(request, &f->err));
}

static void test_what_was_granted_belongs_to_who_finishes_it(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int done = open_eventfd();
    sqlock_request *request = request_ask(f, lock, 0, NULL, done);
    int64_t token;

    assert_becomes_true(drain(done) == 1, PATIENCE_MS);
    assert_int_equal(sqlock_request_status(request), SQLOCK_REQUEST_HELD);
    assert_false(fixture_is_free(f, f->name));
    assert_false(sqlock_is_held(lock)); /* by this thread */
    assert_fails(SQLOCK_EOWNER, sqlock_release(lock, &f->err));
    assert_ok(sqlock_request_finish(request, &f->err));
    assert_true(sqlock_is_held(lock));
    token = sqlock_token(lock);
    assert_true(token > 0);
    assert_ok(sqlock_renew(lock, 0, &f->err));
    lock_give(lock);
    assert_int_equal(drain(done), 0); /* written once only */
    (void)close(done);
    lock_drop(lock);
}

static void test_a_request_is_woken_by_another_process(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    sqlock_request *request;
    int64_t token;

    lock_take(held, 0);
    token = sqlock_token(held);
    request = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    assert_int_equal(sqlock_request_status(request), SQLOCK_REQUEST_FETCHING);
    assert_fails(SQLOCK_EINUSE, sqlock_request_finish(request, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_drop(lock, &f->err));
    lock_give(held);
    request_expect(f, request, SQLOCK_REQUEST_HELD, 0);
    assert_less(token, sqlock_token(lock));
    lock_end(lock);
    lock_drop(held);
}

static void test_a_request_that_is_not_served_says_why(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    int done = open_eventfd();
    sqlock_request *request;
    int rc;

    lock_take(held, 0);
    request_expect(f, request_ask(f, lock, 0, NULL, done), SQLOCK_REQUEST_FREE,
                   SQLOCK_EBUSY);
    assert_int_equal(drain(done), 1);
    request_expect(f, request_ask(f, held, 0, NULL, done), SQLOCK_REQUEST_FREE,
                   SQLOCK_EBUSY);
    request_expect(f, request_ask(f, lock, 40, NULL, 0), SQLOCK_REQUEST_FREE,
                   SQLOCK_ETIMEDOUT);
    request_expect(f, request_ask(f, held, 40, NULL, 0), SQLOCK_REQUEST_FREE,
                   SQLOCK_ETIMEDOUT); /* in the FIFO */
    request = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    assert_ok(sqlock_cancel(lock, &f->err));
    request_expect(f, request, SQLOCK_REQUEST_FREE, SQLOCK_ECANCELED);
    options.cancel_fd = open_eventfd();
    request = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    assert_true(write(options.cancel_fd, &(uint64_t){1}, 8) == 8);
    request_expect(f, request, SQLOCK_REQUEST_FREE, SQLOCK_ECANCELED);
    options.size = 3;
    request = NULL;
    rc = sqlock_request_acquire(&request, lock, 0, &options, 0, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_null(request);
    (void)close(options.cancel_fd);
    (void)close(done);
    lock_give(held);
    lock_drop(lock);
    lock_drop(held);
}

/* Two requests of one thread and another thread wait for a lock that the first
 * thread holds: they get it one at a time, in the order of their calls. */
static void test_requests_of_one_thread_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct contender last = {0};
    sqlock_request *first;
    sqlock_request *second;

    lock_take(lock, 0);
    first = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    second = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    contender_queue(&last, lock, SQLOCK_FOREVER);
    assert_int_equal(sqlock_request_status(first), SQLOCK_REQUEST_FETCHING);
    lock_give(lock);
    request_expect(f, first, SQLOCK_REQUEST_HELD, 0);
    assert_int_equal(sqlock_request_status(second), SQLOCK_REQUEST_FETCHING);
    assert_int_equal(sqlock_hold_count(lock), 1);
    lock_give(lock);
    request_expect(f, second, SQLOCK_REQUEST_HELD, 0);
    assert_int_equal(atomic_load(&last.rc), 1);
    lock_give(lock);
    contender_finish(&last);
    lock_drop(lock);
}

static void test_a_release_does_not_wait_either(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int done = open_eventfd();
    sqlock_request *release = NULL;
    sqlock_request *next;
    int rc;

    rc = sqlock_request_release(&release, lock, done, &f->err);
    assert_code(SQLOCK_EOWNER, rc, &f->err);
    assert_null(release);
    lock_take(lock, 0);
    lock_take(lock, 0);
    assert_ok(sqlock_request_release(&release, lock, done, &f->err));
    assert_int_equal(drain(done), 1); /* nested: over at once */
    request_expect(f, release, SQLOCK_REQUEST_FREE, 0);
    assert_int_equal(sqlock_hold_count(lock), 1);
    next = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    assert_ok(sqlock_request_release(&release, lock, done, &f->err));
    assert_false(sqlock_is_held(lock)); /* from the call on */
    request_expect(f, release, SQLOCK_REQUEST_FREE, 0);
    request_expect(f, next, SQLOCK_REQUEST_HELD, 0);
    assert_ok(sqlock_request_release(&release, lock, 0, &f->err));
    request_give_up(f, release); /* carried out all the same */
    lock_drop(lock);
    assert_becomes_true(fixture_is_free(f, f->name), PATIENCE_MS);
    (void)close(done);
}

/* Requests are abandoned in the FIFO, while they wait for the row, and after
 * the grant: each time the row becomes free, and the caller may drop the lock
 * at once. */
static void test_an_abandoned_request_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    int done = open_eventfd();
    sqlock_request *at_row;
    sqlock_request *queued;
    sqlock_request *granted;

    lock_take(held, 0);
    at_row = request_ask(f, lock, SQLOCK_FOREVER, NULL, done);
    queued = request_ask(f, lock, SQLOCK_FOREVER, NULL, done);
    request_give_up(f, queued);
    (void)wait_until(request_is_over(at_row), 100); /* let it reach the row */
    request_give_up(f, at_row);
    lock_drop(lock);
    lock_give(held);
    assert_true(fixture_is_free(f, f->name));
    granted = request_ask(f, held, 0, NULL, 0);
    assert_becomes_true(request_is_over(granted), PATIENCE_MS);
    assert_false(fixture_is_free(f, f->name));
    request_give_up(f, granted);
    lock_drop(held);
    assert_becomes_true(fixture_is_free(f, f->name), PATIENCE_MS);
    assert_int_equal(drain(done), 0);
    (void)close(done);
    assert_ok(sqlock_request_abandon(NULL, &f->err));
}

/* Requests are abandoned at every stage: in the end the lock is free. */
static void test_abandoned_at_every_stage(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    unsigned rounds = check_scale(60, 4000);

    for (unsigned i = 0; i < rounds; i++) {
        sqlock_request *one = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
        sqlock_request *two = request_ask(f, other, SQLOCK_FOREVER, NULL, 0);
        sqlock_request *three = request_ask(f, lock, (int64_t)(i % 4), NULL, 0);

        for (unsigned k = 0; k < i % 7; k++)
            (void)check_pause(INT64_MAX);
        request_give_up(f, i % 2 == 0 ? one : two);
        request_give_up(f, three);
        request_give_up(f, i % 2 == 0 ? two : one);
    }
    assert_ok(sqlock_acquire(other, SQLOCK_FOREVER, NULL, &f->err));
    lock_give(other);
    lock_drop(lock);
    lock_drop(other);
    assert_becomes_true(fixture_is_free(f, f->name), PATIENCE_MS);
}

/* --- many, in one thread --- */

#define KEYS_MAX 1000

struct crowd {
    sqlock_lock *held[KEYS_MAX];
    sqlock_lock *locks[KEYS_MAX];
    sqlock_request *requests[KEYS_MAX];
    unsigned count;
    unsigned over;
};

/* Run the event loop once: finish each request that has ended, and begin to
 * release each lock that was granted. */
static void serve(struct fixture *f, struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++) {
        sqlock_request *release = NULL;
        int rc;

        if (crowd->requests[i] == NULL || !request_is_over(crowd->requests[i]))
            continue;
        assert_ok(sqlock_request_finish(crowd->requests[i], &f->err));
        crowd->requests[i] = NULL;
        if (!sqlock_is_held(crowd->locks[i])) { /* that was the release */
            crowd->over++;
            continue;
        }
        rc = sqlock_request_release(&release, crowd->locks[i], 0, &f->err);
        assert_lock_ok(rc, &f->err);
        crowd->requests[i] = release;
    }
}

static void test_keys_by_the_thousand_in_one_thread(void **state)
{
    struct fixture *f = *state;
    struct crowd *crowd = calloc(1, sizeof *crowd);
    sqlock_options options = fixture_options(f);
    size_t threads = check_entries("/proc/self/task");
    size_t fds;
    sqlock_registry *tapped;
    int64_t ids[64];
    int rc;

    options.pool_size = 4;
    tapped = fixture_tapped(f, &options);
    crowd->count = check_scale(100, KEYS_MAX);
    for (unsigned i = 0; i < crowd->count; i++) {
        char name[96];

        (void)snprintf(name, sizeof name, "%s key %u", f->name, i);
        crowd->held[i] = lock_obtain(f->a, name);
        crowd->locks[i] = lock_obtain(tapped, name);
    }
    rc = sqlock_acquire_many(crowd->held, crowd->count, 0, NULL, NULL, &f->err);
    assert_lock_ok(rc, &f->err);
    fds = check_entries("/proc/self/fd");
    for (unsigned i = 0; i < crowd->count; i++)
        crowd->requests[i] =
            request_ask(f, crowd->locks[i], SQLOCK_FOREVER, NULL, 0);
    assert_ok(sqlock_release_many(crowd->held, crowd->count, NULL, &f->err));
    assert_becomes_true((serve(f, crowd), crowd->over == crowd->count),
                        PATIENCE_MS);
    /* The pool; half as many connections for waiting; one that is reserved.
     * There is a thread for each of the first two, and a few more of the
     * registry. */
    assert_in_range(tap_connections(ids, 64), 0, 4 + 2 + 1);
    assert_in_range(check_entries("/proc/self/task"), threads,
                    threads + 4 + 2 + 2 /* SQLite's wait queues */ + 4);
    assert_in_range(check_entries("/proc/self/fd"), 0, fds + 40);
    for (unsigned i = 0; i < crowd->count; i++) {
        lock_drop(crowd->held[i]);
        lock_drop(crowd->locks[i]);
    }
    registry_end(tapped);
    free(crowd);
}

/* --- the end of a registry or lease, and a fork --- */

static void test_a_registry_closes_with_requests_open(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_registry(f, NULL);
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    char name[96];
    sqlock_lock *free_one;
    sqlock_request *granted;
    sqlock_request *release = NULL;

    (void)snprintf(name, sizeof name, "%s free", f->name);
    free_one = lock_obtain(registry, name);
    lock_take(held, 0);
    (void)request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    (void)request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    request_give_up(f, request_ask(f, lock, SQLOCK_FOREVER, NULL, 0));
    granted = request_ask(f, free_one, 0, NULL, 0);
    assert_becomes_true(request_is_over(granted), PATIENCE_MS);
    free_one = lock_obtain(registry, f->database->name);
    lock_take(free_one, 0);
    assert_ok(sqlock_request_release(&release, free_one, 0, &f->err));
    registry_end(registry);
    lock_give(held);
    assert_true(fixture_is_free(f, f->name));
    assert_true(fixture_is_free(f, name));
    assert_true(fixture_is_free(f, f->database->name));
    lock_drop(held);
}

static void count_lost(void *context, sqlock_lock *lock, int code)
{
    (void)lock;
    if (code == SQLOCK_EEXPIRED)
        (void)atomic_fetch_add((atomic_uint *)context, 1);
}

static void test_a_lease_that_is_over_is_not_taken_over(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    atomic_uint lost = 0;
    sqlock_request *request;

    options.ttl_ms = 300;
    options.on_lost = count_lost;
    options.lost_context = &lost;
    request = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_LOST,
                        PATIENCE_MS);
    assert_becomes_true(atomic_load(&lost) == 1, PATIENCE_MS);
    assert_fails(SQLOCK_EEXPIRED, sqlock_request_finish(request, &f->err));
    assert_ok(sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &f->err));
    lock_end(lock);
}

/* Hook of the tap: hold up all statements that the main thread does not send,
 * until the atomic_bool `context` is true. */
static int hold_back_others(void *context, const struct tap_event *event)
{
    if (event->call == TAP_EXECUTE && getpid() != gettid())
        while (!atomic_load((atomic_bool *)context))
            (void)check_pause(INT64_MAX);
    return 0;
}

/* The lease of a request is over, and the lock is acquired anew and released.
 * Then finishing the request fails, and the registry has to release the old
 * lease in the background: the caller can drop the lock meanwhile. */
static void test_a_late_request_keeps_no_lock_from_being_dropped(void **state)
{
    struct fixture *f = *state;
    sqlock_options own = fixture_options(f);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    atomic_bool may_go_on = false;
    sqlock_registry *registry = fixture_tapped(f, &own);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_request *request;
    int rc;

    options.ttl_ms = 300;
    request = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_LOST,
                        PATIENCE_MS);
    assert_ok(sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &f->err));
    lock_give(lock);
    tap_hooks(hold_back_others, NULL, &may_go_on);
    assert_fails(SQLOCK_EEXPIRED, sqlock_request_finish(request, &f->err));
    rc = sqlock_drop(lock, &f->err);
    atomic_store(&may_go_on, true);
    assert_lock_ok(rc, &f->err);
    registry_end(registry);
    tap_hooks(NULL, NULL, NULL);
}

/* The lease is renewed from the grant on: before the request is finished, and
 * after. */
static void test_a_request_is_renewed(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *request;
    struct row row;

    options.ttl_ms = 4000;
    options.auto_renew = true;
    request = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    assert_becomes_true(request_is_over(request), PATIENCE_MS);
    row = fixture_row(f, f->name);
    assert_becomes_true(fixture_row(f, f->name).expires_us > row.expires_us,
                        PATIENCE_MS);
    request_expect(f, request, SQLOCK_REQUEST_HELD, 0);
    row = fixture_row(f, f->name);
    assert_becomes_true(fixture_row(f, f->name).expires_us > row.expires_us,
                        PATIENCE_MS);
    lock_end(lock);
}

static void test_owned_by_the_registry_requests_are_counted(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_request *requests[2];
    sqlock_lock *lock;

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    requests[0] = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    requests[1] = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    request_expect(f, requests[0], SQLOCK_REQUEST_HELD, 0);
    assert_becomes_true(request_is_over(requests[1]), PATIENCE_MS);
    assert_int_equal(sqlock_hold_count(lock), 2);
    request_give_up(f, requests[1]);
    assert_becomes_true(sqlock_hold_count(lock) == 1, PATIENCE_MS);
    assert_false(fixture_is_free(f, f->name));
    lock_end(lock);
    registry_end(registry);
}

static bool refused_in_child(sqlock_lock *lock, sqlock_request *request)
{
    sqlock_request *another = NULL;

    return sqlock_request_acquire(&another, lock, 0, NULL, 0, NULL) ==
               SQLOCK_EFORK &&
           sqlock_request_release(&another, lock, 0, NULL) == SQLOCK_EFORK &&
           sqlock_request_status(request) == SQLOCK_REQUEST_FREE &&
           sqlock_request_finish(request, NULL) == SQLOCK_EFORK &&
           sqlock_request_abandon(request, NULL) == SQLOCK_EFORK;
}

static void test_F17_a_child_has_no_requests(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *request = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    int status = -1;
    pid_t pid;

    assert_becomes_true(request_is_over(request), PATIENCE_MS);
    pid = fork();
    if (pid == 0)
        _exit(refused_in_child(lock, request) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    request_expect(f, request, SQLOCK_REQUEST_HELD, 0);
    lock_end(lock);
}

/* The claim waits for the row lock of a transaction: a thread of the registry
 * waits, not the caller. */
static void test_a_statement_that_waits_does_not_block_the_caller(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *request;

    lock_take(lock, 0);
    lock_give(lock);
    sql_run(&f->sql, "BEGIN");
    sql_run(&f->sql, "UPDATE %s SET FENCE = FENCE", f->table);
    request = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    assert_int_equal(sqlock_request_status(request), SQLOCK_REQUEST_FETCHING);
    sql_run(&f->sql, "ROLLBACK");
    request_expect(f, request, SQLOCK_REQUEST_HELD, 0);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST(test_what_was_granted_belongs_to_who_finishes_it),
    TEST_ON(test_a_request_is_woken_by_another_process, ON_ALL, IN_ALL),
    TEST(test_a_request_that_is_not_served_says_why),
    TEST_ON(test_requests_of_one_thread_exclude_each_other, ON_ALL, IN_ALL),
    TEST(test_a_release_does_not_wait_either),
    TEST_ON(test_an_abandoned_request_leaves_nothing, ON_ALL, IN_ALL),
    TEST(test_abandoned_at_every_stage),
    TEST(test_keys_by_the_thousand_in_one_thread),
    TEST(test_a_registry_closes_with_requests_open),
    TEST(test_a_lease_that_is_over_is_not_taken_over),
    TEST(test_a_late_request_keeps_no_lock_from_being_dropped),
    TEST(test_a_request_is_renewed),
    TEST(test_owned_by_the_registry_requests_are_counted),
    TEST(test_F17_a_child_has_no_requests),
    TEST(test_a_statement_that_waits_does_not_block_the_caller),
};

const struct topic topic_request = TOPIC(tests);
