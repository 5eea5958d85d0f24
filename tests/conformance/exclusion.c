/*
 * exclusion.c - one owner at a time, between threads and between registries:
 * the behaviours of Spring's JdbcLockRegistryTests and
 * JdbcLockRegistryDifferentClientTests
 */
#include "conformance.h"

#include <sched.h>
#include <string.h>

#include "support/workers.h"

#define WAIT_SHORT_MS 60

static void test_lock_and_unlock_again_and_again(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int i;

    for (i = 0; i < 10; i++) {
        lock_take(lock, 0);
        assert_true(sqlock_is_held(lock));
        lock_give(lock);
        assert_false(sqlock_is_held(lock));
    }
    lock_drop(lock);
}

static void test_nested_acquire_and_release(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *again = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);

    assert_ptr_equal(lock, again);
    lock_take(lock, 0);
    lock_take(again, 0);
    lock_give(again);
    assert_true(sqlock_is_held(lock));
    assert_busy(other);
    lock_give(lock);
    lock_take_and_give(other);
    lock_drop(other);
    lock_drop(again);
    lock_drop(lock);
}

static void test_two_locks_nest(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *one = lock_obtain(f->a, f->name);
    sqlock_lock *two;

    fixture_next(f);
    two = lock_obtain(f->a, f->name);
    assert_ptr_not_equal(one, two);
    lock_take(one, 0);
    lock_take(two, 0);
    lock_give(two);
    lock_give(one);
    lock_drop(two);
    lock_drop(one);
}

static int refused_and_no_owner(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    worker_expect(worker, SQLOCK_ETIMEDOUT,
                  lock_try(lock, WAIT_SHORT_MS, 0, &worker->err));
    worker_expect(worker, SQLOCK_EOWNER, sqlock_release(lock, &worker->err));
    if (strstr(worker->err.message, "own") == NULL)
        return worker_fail(worker, "unclear: %s", worker->err.message);
    return 0;
}

static void test_second_thread_is_refused_and_may_not_release(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, 0);
    worker_run(refused_and_no_owner, lock);
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    lock_drop(lock);
}

static int take_and_give(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
    if (!sqlock_is_held(lock))
        return worker_fail(worker, "acquired, but not held");
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

static void test_second_thread_gets_the_lock_after_release(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct worker worker;

    lock_take(lock, 0);
    worker_start(&worker, take_and_give, lock);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    lock_give(lock);
    worker_join(&worker);
    lock_take_and_give(lock);
    lock_drop(lock);
}

static int release_foreign(struct worker *worker)
{
    worker_expect(worker, SQLOCK_EOWNER,
                  sqlock_release(worker->context, &worker->err));
    worker_expect(worker, SQLOCK_EOWNER,
                  sqlock_renew(worker->context, 0, &worker->err));
    return 0;
}

static void test_foreign_thread_may_neither_release_nor_renew(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, 0);
    worker_run(release_foreign, lock);
    assert_true(sqlock_is_held(lock));
    assert_int_equal(sqlock_hold_count(lock), 1);
    lock_give(lock);
    lock_drop(lock);
}

struct turns {
    sqlock_lock *locks[2];
    unsigned rounds;
    atomic_int inside;
};

static int take_turns(struct worker *worker)
{
    struct turns *turns = worker->context;
    sqlock_lock *lock = turns->locks[worker->index];
    unsigned i;

    for (i = 0; i < turns->rounds; i++) {
        worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
        if (atomic_fetch_add(&turns->inside, 1) != 0)
            return worker_fail(worker, "round %u: two owners", i);
        (void)sched_yield();
        (void)atomic_fetch_sub(&turns->inside, 1);
        worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    }
    return 0;
}

static void test_two_registries_take_turns(void **state)
{
    struct fixture *f = *state;
    struct turns turns = {.rounds = check_scale(50, 500)};
    struct workers workers;

    turns.locks[0] = lock_obtain(f->a, f->name);
    turns.locks[1] = lock_obtain(f->b, f->name);
    workers_start(&workers, 2, take_turns, &turns);
    workers_join(&workers);
    lock_drop(turns.locks[0]);
    lock_drop(turns.locks[1]);
}

static void test_second_registry_loses_every_time(void **state)
{
    struct fixture *f = *state;
    unsigned rounds = check_scale(30, 100);
    unsigned i;

    for (i = 0; i < rounds; i++) {
        sqlock_lock *mine = lock_obtain(f->a, f->name);
        sqlock_lock *theirs = lock_obtain(f->b, f->name);

        lock_take(mine, 0);
        assert_busy(theirs);
        assert_false(sqlock_is_held(theirs));
        lock_give(mine);
        lock_drop(theirs);
        lock_drop(mine);
    }
}

#define CLIENTS 20

struct crowd {
    sqlock_lock *locks[CLIENTS];
    atomic_int inside;
    atomic_int entered;
};

static int enter_alone(struct worker *worker)
{
    struct crowd *crowd = worker->context;
    sqlock_lock *lock = crowd->locks[worker->index];
    int place;

    worker_expect(worker, 0, lock_try(lock, INT64_MAX, 0, &worker->err));
    if (atomic_fetch_add(&crowd->inside, 1) != 0)
        return worker_fail(worker, "somebody is inside already");
    place = atomic_fetch_add(&crowd->entered, 1);
    (void)sched_yield();
    if (atomic_load(&crowd->entered) != place + 1)
        return worker_fail(worker, "somebody else entered");
    (void)atomic_fetch_sub(&crowd->inside, 1);
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

static void test_only_one_of_twenty_registries_is_in(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registries[CLIENTS];
    struct crowd crowd = {.inside = 0};
    struct workers workers;
    unsigned round;
    size_t i;

    options.pool_size = 1;
    for (i = 0; i < CLIENTS; i++) {
        registries[i] = fixture_registry(f, &options);
        crowd.locks[i] = lock_obtain(registries[i], f->name);
    }
    for (round = 0; round < check_scale(2, 100); round++) {
        atomic_store(&crowd.entered, 0);
        workers_start(&workers, CLIENTS, enter_alone, &crowd);
        workers_join(&workers);
        assert_int_equal(atomic_load(&crowd.entered), CLIENTS);
    }
    for (i = 0; i < CLIENTS; i++)
        registry_end(registries[i]);
}

struct diary {
    sqlock_lock *locks[2];
    char text[8]; /* written under the lock only */
    size_t length;
};

static int write_three(struct worker *worker)
{
    struct diary *diary = worker->context;
    sqlock_lock *lock = diary->locks[worker->index];
    int i;

    worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
    for (i = 0; i < 3; i++) {
        diary->text[diary->length] = (char)('A' + worker->index);
        diary->length++;
        (void)sched_yield();
    }
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

static void test_one_owner_is_done_before_the_next_begins(void **state)
{
    struct fixture *f = *state;
    struct diary diary = {.length = 0};
    struct workers workers;

    diary.locks[0] = lock_obtain(f->a, f->name);
    diary.locks[1] = lock_obtain(f->b, f->name);
    workers_start(&workers, 2, write_three, &diary);
    workers_join(&workers);
    if (strcmp(diary.text, "AAABBB") != 0)
        assert_string_equal(diary.text, "BBBAAA");
    lock_drop(diary.locks[0]);
    lock_drop(diary.locks[1]);
}

static const struct test tests[] = {
    TEST(test_lock_and_unlock_again_and_again),
    TEST(test_nested_acquire_and_release),
    TEST(test_two_locks_nest),
    TEST(test_second_thread_is_refused_and_may_not_release),
    TEST(test_second_thread_gets_the_lock_after_release),
    TEST(test_foreign_thread_may_neither_release_nor_renew),
    TEST(test_two_registries_take_turns),
    TEST(test_second_registry_loses_every_time),
    TEST(test_only_one_of_twenty_registries_is_in),
    TEST(test_one_owner_is_done_before_the_next_begins),
};
const struct topic topic_exclusion = TOPIC(tests);
