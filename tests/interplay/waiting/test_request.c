/*
 * test_request.c - acquiring and releasing by requests, which block no thread
 * of the caller
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/many.h"
#include "support/tap.h"

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

static const struct test tests[] = {
    TEST(test_abandoned_at_every_stage),
    TEST(test_keys_by_the_thousand_in_one_thread),
    TEST(test_a_late_request_keeps_no_lock_from_being_dropped),
    TEST(test_F17_a_child_has_no_requests),
};

const struct topic topic_request = TOPIC(tests);
