/*
 * test_crowd.c - a thousand keys that are waited for at once, by threads and by
 * requests: they need no more connections, threads and descriptors than a few
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "sqlock/many.h"
#include "support/tap.h"

#define KEYS_MAX 1000
#define POOL 4

struct crowd {
    sqlock_registry *tapped;
    sqlock_lock *held[KEYS_MAX];
    sqlock_lock *locks[KEYS_MAX];
    sqlock_request *requests[KEYS_MAX];
    pthread_t threads[KEYS_MAX];
    unsigned count;
    unsigned over; /* requests that have acquired and released */
    atomic_uint next;
    atomic_uint waiting;
};

/* Have another registry hold all keys. */
static struct crowd *open_crowd(struct fixture *f)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    sqlock_options options = fixture_options(f);
    int rc;

    assert_non_null(crowd);
    options.pool_size = POOL;
    crowd->tapped = fixture_tapped(f, &options);
    crowd->count = check_scale(100, KEYS_MAX);
    for (unsigned i = 0; i < crowd->count; i++) {
        char name[96];

        (void)snprintf(name, sizeof name, "%s key %u", f->name, i);
        crowd->held[i] = lock_obtain(f->a, name);
        crowd->locks[i] = lock_obtain(crowd->tapped, name);
    }
    rc = sqlock_acquire_many(crowd->held, crowd->count, 0, NULL, NULL, &f->err);
    assert_lock_ok(rc, &f->err);
    return crowd;
}

static void give_all(struct fixture *f, struct crowd *crowd)
{
    int rc = sqlock_release_many(crowd->held, crowd->count, NULL, &f->err);

    assert_lock_ok(rc, &f->err);
}

/* The pool; half as many connections for waiting; one that is reserved. */
static void expect_few_connections(void)
{
    int64_t ids[64];

    assert_in_range(tap_connections(ids, 64), 0, POOL + POOL / 2 + 1);
}

static void close_crowd(struct crowd *crowd)
{
    expect_few_connections();
    for (unsigned i = 0; i < crowd->count; i++) {
        lock_drop(crowd->held[i]);
        lock_drop(crowd->locks[i]);
    }
    registry_end(crowd->tapped);
    free(crowd);
}

static void *wait_for_one(void *context)
{
    struct crowd *crowd = context;
    sqlock_lock *lock = crowd->locks[atomic_fetch_add(&crowd->next, 1)];
    int rc;

    (void)atomic_fetch_add(&crowd->waiting, 1);
    rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, NULL);
    if (rc == 0)
        rc = sqlock_release(lock, NULL);
    return rc == 0 ? NULL : context;
}

TEST(test_keys_by_the_thousand_need_no_more_connections)
{
    struct crowd *crowd = open_crowd(f);

    for (unsigned i = 0; i < crowd->count; i++)
        assert_int_equal(
            pthread_create(&crowd->threads[i], NULL, wait_for_one, crowd), 0);
    assert_becomes_true(atomic_load(&crowd->waiting) == crowd->count,
                        PATIENCE_MS);
    expect_few_connections();
    give_all(f, crowd);
    for (unsigned i = 0; i < crowd->count; i++) {
        void *failed = crowd;

        assert_int_equal(pthread_join(crowd->threads[i], &failed), 0);
        assert_null(failed);
    }
    close_crowd(crowd);
}

static bool is_over(sqlock_request *request)
{
    sqlock_request_state state = sqlock_request_status(request);

    return state != SQLOCK_REQUEST_FETCHING &&
           state != SQLOCK_REQUEST_RELEASING;
}

/* Run the event loop once: finish each request that has ended, and begin to
 * release each lock that was granted. */
static bool serve(struct fixture *f, struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->count; i++) {
        if (crowd->requests[i] == NULL || !is_over(crowd->requests[i]))
            continue;
        assert_ok(sqlock_request_finish(crowd->requests[i], &f->err));
        crowd->requests[i] = NULL;
        if (!sqlock_is_held(crowd->locks[i])) /* that was the release */
            crowd->over++;
        else
            assert_ok(sqlock_request_release(&crowd->requests[i],
                                             crowd->locks[i], 0, &f->err));
    }
    return crowd->over == crowd->count;
}

TEST(test_keys_by_the_thousand_in_one_thread)
{
    size_t threads = check_entries("/proc/self/task");
    struct crowd *crowd = open_crowd(f);
    size_t fds = check_entries("/proc/self/fd");

    for (unsigned i = 0; i < crowd->count; i++)
        assert_ok(sqlock_request_acquire(&crowd->requests[i], crowd->locks[i],
                                         SQLOCK_FOREVER, NULL, 0, &f->err));
    give_all(f, crowd);
    assert_becomes_true(serve(f, crowd), PATIENCE_MS);
    /* There is a thread for each connection that claims or waits, and a few
     * more of the registry. */
    assert_in_range(check_entries("/proc/self/task"), threads,
                    threads + POOL + POOL / 2 + 2 /* SQLite's */ + 4);
    assert_in_range(check_entries("/proc/self/fd"), 0, fds + 40);
    close_crowd(crowd);
}
