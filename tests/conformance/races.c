/*
 * races.c - many claims at once: exactly one is granted (F20, F24)
 */
#include "conformance.h"

#include "support/workers.h"

#define REGISTRIES 4

struct contest {
    sqlock_lock *locks[REGISTRIES];
    atomic_uint granted;
};

static int claim_once(struct worker *worker)
{
    struct contest *contest = worker->context;
    sqlock_lock *lock = contest->locks[worker->index];
    int rc = lock_try(lock, 0, 0, &worker->err);

    if (rc == 0) {
        (void)atomic_fetch_add(&contest->granted, 1);
        return 0;
    }
    if (rc != SQLOCK_EBUSY)
        return worker_fail(worker, "acquire gave %d: %s", rc,
                           worker->err.message);
    return 0;
}

/* Let all registries claim the lock at once, and assert that one is granted
 * it. */
static void contend(struct fixture *f, sqlock_registry *const *registries)
{
    struct contest contest = {.granted = 0};
    struct workers workers;
    int i;

    for (i = 0; i < REGISTRIES; i++)
        contest.locks[i] = lock_obtain(registries[i], f->name);
    workers_start(&workers, REGISTRIES, claim_once, &contest);
    workers_join(&workers);
    assert_int_equal(atomic_load(&contest.granted), 1);
}

/* Open the registries.  A lock whose thread has ended stays held until its
 * registry is closed. */
static void open_all(struct fixture *f, sqlock_registry **registries)
{
    sqlock_options options = fixture_options(f);
    int i;

    options.pool_size = 1;
    for (i = 0; i < REGISTRIES; i++)
        registries[i] = fixture_registry(f, &options);
}

static void close_all(sqlock_registry **registries)
{
    int i;

    for (i = 0; i < REGISTRIES; i++)
        registry_end(registries[i]);
}

/* The row does not exist yet, and all claim it at once.  The count of affected
 * rows must not make two of them believe that they have inserted it. */
static void test_F20_of_many_first_claims_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(25, 2000); round++) {
        fixture_next(f);
        contend(f, registries);
    }
    close_all(registries);
}

/* The holder's row is deleted, and all claim the lock at once.  A row that does
 * not exist cannot be locked to keep others out, so the claiming statement
 * itself must let only one in. */
static void test_F24_a_row_that_is_not_there_lets_only_one_in(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(10, 500); round++) {
        lock_take(old, 0);
        fixture_delete(f, f->name);
        contend(f, registries);
        assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
        close_all(registries);
        open_all(f, registries);
    }
    close_all(registries);
    lock_drop(old);
}

/* One claim takes over an expired lease; the others find the lock busy. */
static void test_of_many_takeovers_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);

    open_all(f, registries);
    lock_take(old, 100);
    fixture_await_expiry(f, f->name);
    contend(f, registries);
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    close_all(registries);
    lock_drop(old);
}

static const struct test tests[] = {
    TEST(test_F20_of_many_first_claims_one_is_granted),
    TEST(test_F24_a_row_that_is_not_there_lets_only_one_in),
    TEST(test_of_many_takeovers_one_is_granted),
};
const struct topic topic_races = TOPIC(tests);
