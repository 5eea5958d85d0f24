/*
 * by_handle.c - locks that are owned by their handles: each sqlock_obtain()
 * gives an owner of its own, whichever thread uses it
 */
#include "conformance.h"

#include <poll.h>
#include <stdlib.h>

#include "sqlock/async.h"
#include "sqlock/many.h"
#include "support/workers.h"

#define OWNERS 16

static sqlock_registry *handles_of(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    return fixture_registry(f, &options);
}

static void test_each_obtain_gives_another_owner(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *one = lock_obtain(registry, f->name);
    sqlock_lock *two = lock_obtain(registry, f->name);

    assert_ptr_not_equal(one, two);
    assert_string_equal(sqlock_key(one), sqlock_key(two));
    lock_take(one, 0);
    assert_false(sqlock_is_held(two));
    assert_int_equal(sqlock_hold_count(two), 0);
    assert_true(sqlock_token(two) == 0);
    assert_busy(two);
    assert_fails(SQLOCK_EOWNER, sqlock_release(two, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_renew(two, 0, &f->err));
    lock_drop(two); /* it holds nothing */
    assert_fails(SQLOCK_EINUSE, sqlock_drop(one, &f->err));
    lock_give(one);
    lock_drop(one);
    registry_end(registry);
}

static void test_a_held_handle_is_not_acquired_again(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    lock_take(lock, 0);
    assert_fails(SQLOCK_EINUSE, lock_try(lock, 0, 0, &f->err));
    assert_fails(SQLOCK_EINUSE, lock_try(lock, PATIENCE_MS, 0, &f->err));
    assert_fails(SQLOCK_EINUSE,
                 sqlock_acquire_many(&lock, 1, 0, NULL, NULL, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 1);
    lock_give(lock);
    assert_false(sqlock_is_held(lock));
    lock_take_and_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

static int renew_and_release(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    if (!sqlock_is_held(lock))
        return worker_fail(worker, "the handle holds it, in any thread");
    worker_expect(worker, 0, sqlock_renew(lock, 0, &worker->err));
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

static void test_any_thread_uses_a_handle(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    lock_take(lock, 0);
    worker_run(renew_and_release, lock);
    assert_false(sqlock_is_held(lock));
    lock_drop(lock);
    registry_end(registry);
}

struct turn {
    sqlock_lock *lock;
    atomic_int *inside;
    atomic_int *served;
    int place;
};

static int take_a_turn(struct worker *worker)
{
    struct turn *turn = worker->context;

    worker_expect(worker, 0,
                  lock_try(turn->lock, SQLOCK_FOREVER, 0, &worker->err));
    if (atomic_fetch_add(turn->inside, 1) != 0)
        return worker_fail(worker, "two owners were inside");
    turn->place = atomic_fetch_add(turn->served, 1) + 1;
    if (!sqlock_is_held(turn->lock))
        return worker_fail(worker, "it was granted and is not held");
    atomic_fetch_sub(turn->inside, 1);
    worker_expect(worker, 0, sqlock_release(turn->lock, &worker->err));
    return 0;
}

static void test_handles_of_one_name_are_served_in_order(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *first = lock_obtain(registry, f->name);
    struct worker workers[OWNERS];
    struct turn turns[OWNERS];
    atomic_int inside = 0;
    atomic_int served = 0;
    int i;

    lock_take(first, 0);
    for (i = 0; i < OWNERS; i++) {
        turns[i] = (struct turn){.lock = lock_obtain(registry, f->name),
                                 .inside = &inside,
                                 .served = &served};
        worker_start(&workers[i], take_a_turn, &turns[i]);
        assert_becomes_true(worker_is_parked(&workers[i]), PATIENCE_MS);
    }
    lock_give(first);
    for (i = 0; i < OWNERS; i++) {
        worker_join(&workers[i]);
        assert_int_equal(turns[i].place, i + 1);
        lock_drop(turns[i].lock);
    }
    lock_drop(first);
    registry_end(registry);
}

static int take_turns(struct worker *worker)
{
    int i;

    for (i = 0; i < 3; i++)
        if (take_a_turn(worker) < 0)
            return -1;
    return 0;
}

static void test_handles_of_one_name_never_overlap(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    struct worker workers[OWNERS];
    struct turn turns[OWNERS];
    atomic_int inside = 0;
    atomic_int served = 0;
    int i;

    for (i = 0; i < OWNERS; i++) {
        turns[i] = (struct turn){.lock = lock_obtain(registry, f->name),
                                 .inside = &inside,
                                 .served = &served};
        worker_start(&workers[i], take_turns, &turns[i]);
    }
    for (i = 0; i < OWNERS; i++)
        worker_join(&workers[i]);
    assert_int_equal(atomic_load(&served), 3 * OWNERS);
    for (i = 0; i < OWNERS; i++)
        lock_drop(turns[i].lock);
    registry_end(registry);
}

static bool is_over(sqlock_request *request)
{
    return sqlock_request_status(request) != SQLOCK_REQUEST_FETCHING;
}

static void test_requests_by_handle_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *locks[3];
    sqlock_request *requests[3];
    sqlock_request *twice = NULL;
    int i;

    for (i = 0; i < 3; i++) {
        locks[i] = lock_obtain(registry, f->name);
        assert_ok(sqlock_request_acquire(&requests[i], locks[i], SQLOCK_FOREVER,
                                         NULL, 0, &f->err));
        /* The first request has the lock before the others queue. */
        assert_becomes_true(i > 0 || is_over(requests[0]), PATIENCE_MS);
    }
    assert_ok(sqlock_request_acquire(&twice, locks[1], SQLOCK_FOREVER, NULL, 0,
                                     &f->err));
    assert_becomes_true(is_over(twice), PATIENCE_MS);
    assert_fails(SQLOCK_EINUSE, sqlock_request_finish(twice, &f->err));
    for (i = 0; i < 3; i++) {
        assert_becomes_true(is_over(requests[i]), PATIENCE_MS);
        assert_int_equal(sqlock_request_status(requests[i]),
                         SQLOCK_REQUEST_HELD);
        if (i < 2)
            assert_false(is_over(requests[i + 1]));
        assert_ok(sqlock_request_finish(requests[i], &f->err));
        assert_true(sqlock_is_held(locks[i]));
        lock_give(locks[i]);
    }
    for (i = 0; i < 3; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

static int wait_for_it(struct worker *worker)
{
    worker_expect(worker, SQLOCK_ECANCELED,
                  lock_try(worker->context, SQLOCK_FOREVER, 0, &worker->err));
    return 0;
}

static void test_a_cancellation_is_for_one_handle(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *held = lock_obtain(registry, f->name);
    sqlock_lock *stays = lock_obtain(registry, f->name);
    sqlock_lock *goes = lock_obtain(registry, f->name);
    atomic_int inside = 0;
    atomic_int served = 0;
    struct turn turn = {.lock = stays, .inside = &inside, .served = &served};
    struct worker one;
    struct worker two;

    lock_take(held, 0);
    worker_start(&one, take_a_turn, &turn);
    assert_becomes_true(worker_is_parked(&one), PATIENCE_MS);
    worker_start(&two, wait_for_it, goes);
    assert_becomes_true(worker_is_parked(&two), PATIENCE_MS);
    assert_fails(SQLOCK_EINUSE, sqlock_drop(goes, &f->err));
    assert_ok(sqlock_cancel(goes, &f->err));
    worker_join(&two);
    assert_int_equal(atomic_load(&served), 0);
    lock_give(held);
    worker_join(&one);
    lock_drop(goes);
    lock_drop(stays);
    lock_drop(held);
    registry_end(registry);
}

static void test_a_handle_that_is_over_lets_the_next_in(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *late = lock_obtain(registry, f->name);
    sqlock_lock *next = lock_obtain(registry, f->name);
    struct pollfd watch = {.events = POLLIN};

    assert_ok(sqlock_lost_fd(&watch.fd, late, &f->err));
    lock_take(late, 150);
    assert_ok(lock_try(next, PATIENCE_MS, 0, &f->err));
    assert_true(sqlock_is_held(next));
    assert_false(sqlock_is_held(late));
    assert_int_equal(poll(&watch, 1, 0), 1);
    assert_fails(SQLOCK_ELOST, sqlock_release(late, &f->err));
    assert_true(sqlock_is_held(next));
    lock_give(next);
    lock_drop(late);
    lock_drop(next);
    registry_end(registry);
}

static void test_many_handles_at_once(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = handles_of(f);
    sqlock_lock *locks[2] = {lock_obtain(registry, f->name),
                             lock_obtain(registry, "by handle, another")};
    sqlock_lock *others[2] = {lock_obtain(registry, f->name),
                              lock_obtain(registry, "by handle, another")};
    sqlock_lock *same[2] = {locks[0], others[0]};

    assert_ok(sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err));
    assert_fails(SQLOCK_EBUSY,
                 sqlock_acquire_many(others, 2, 0, NULL, NULL, &f->err));
    assert_fails(SQLOCK_EOWNER, sqlock_release_many(others, 2, NULL, &f->err));
    /* two handles of one name */
    assert_fails(SQLOCK_EINVAL,
                 sqlock_acquire_many(same, 2, 0, NULL, NULL, &f->err));
    assert_ok(sqlock_renew_many(locks, 2, NULL, &f->err));
    assert_ok(sqlock_release_many(locks, 2, NULL, &f->err));
    assert_ok(sqlock_acquire_many(others, 2, 0, NULL, NULL, &f->err));
    registry_end(registry); /* releases both */
    locks[0] = lock_obtain(f->b, f->name);
    lock_take(locks[0], 0);
    lock_give(locks[0]);
    lock_drop(locks[0]);
}

static const struct test tests[] = {
    TEST(test_each_obtain_gives_another_owner),
    TEST(test_a_held_handle_is_not_acquired_again),
    TEST(test_any_thread_uses_a_handle),
    TEST(test_handles_of_one_name_are_served_in_order),
    TEST(test_handles_of_one_name_never_overlap),
    TEST(test_requests_by_handle_exclude_each_other),
    TEST(test_a_cancellation_is_for_one_handle),
    TEST(test_a_handle_that_is_over_lets_the_next_in),
    TEST(test_many_handles_at_once),
};
const struct topic topic_by_handle = TOPIC(tests);
