/*
 * quorum.c - one lock in three registries: who is let in, and losses
 */
#include <unistd.h>

#include "sqlock/tx.h"
#include "support/workers.h"
#include "trio.h"

/* --- what is refused --- */

static void test_what_is_no_quorum_is_refused(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_options of_threads = trio_options(t);
    sqlock_registry *many[SQLOCK_QUORUM_MAX + 2] = {t->a[0], t->a[1], t->a[2]};
    sqlock_quorum_options all = SQLOCK_QUORUM_INIT;
    sqlock_quorum *q = (sqlock_quorum *)1;

    all.all = true;
    for (size_t count = 0; count <= SQLOCK_QUORUM_MAX + 2; count++)
        if (count != 3 &&
            (count < 3 || count % 2 == 0 || count > SQLOCK_QUORUM_MAX)) {
            assert_fails(
                SQLOCK_EINVAL,
                sqlock_quorum_obtain(&q, many, count, f->name, NULL, &f->err));
            assert_null(q);
            if (count > 3 && count < SQLOCK_QUORUM_MAX)
                assert_contains(f->err.message, "an even number");
        }
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 1, f->name, &all, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_quorum_obtain(&q, many, 5, f->name, NULL,
                                                     &f->err)); /* NULL */
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, NULL, 3, f->name, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, NULL, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(NULL, many, 3, f->name, NULL, &f->err));
    many[2] = t->a[0];
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "registry 2 is registry 0");
    many[2] = t->b[1];
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "registries 1 and 2 lead to one server");
    of_threads.ownership = SQLOCK_OWNED_BY_THREAD;
    assert_ok(sqlock_registry_open(&many[2], t->urls[2], &of_threads, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "SQLOCK_OWNED_BY_HANDLE");
    registry_end(many[2]);
    assert_ok(sqlock_quorum_obtain(&q, t->a, 2, f->name, &all, &f->err));
    assert_ok(sqlock_quorum_drop(q, &f->err));
    assert_ok(sqlock_quorum_drop(NULL, &f->err));
    trio_close(t);
}

static void test_calls_out_of_turn_are_refused(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    assert_fails(SQLOCK_EOWNER, sqlock_quorum_release(q, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, quorum_acquire(t, q, -2, NULL));
    options.mode = SQLOCK_SHARED;
    options.permits = 2;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_acquire(q, 0, &options, NULL, &f->err));
    assert_contains(f->err.message, "permits");
    options.permits = 0;
    options.ttl_ms = 1;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_acquire(q, 0, &options, NULL, &f->err));
    assert_contains(f->err.message, "registry 0");
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    assert_fails(SQLOCK_EINUSE, quorum_acquire(t, q, 0, NULL));
    assert_fails(SQLOCK_EINUSE, sqlock_quorum_drop(q, &f->err));
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    assert_null(sqlock_quorum_lock(q, SERVERS));
    assert_null(sqlock_quorum_lock(NULL, 0));
    quorum_end(t, q);
    assert_int_equal(sqlock_quorum_remaining_ms(NULL), 0);
    assert_fails(SQLOCK_EINVAL, sqlock_quorum_release(NULL, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, quorum_acquire(t, NULL, 0, NULL));
    trio_close(t);
}

/* --- exclusion --- */

static void test_a_quorum_excludes_another(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *ours = quorum_obtain(t, t->a, false);
    sqlock_quorum *theirs = quorum_obtain(t, t->b, false);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int results[SERVERS];

    options.ttl_ms = LONG_TTL_MS;
    quorum_acquire_each(t, ours, &options);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_true(sqlock_token(sqlock_quorum_lock(ours, i)) > 0);
    assert_fails(SQLOCK_EBUSY, quorum_acquire(t, theirs, 0, results));
    assert_fails(SQLOCK_ETIMEDOUT, quorum_acquire(t, theirs, 300, results));
    assert_int_equal(sqlock_quorum_remaining_ms(theirs), 0);
    assert_ok(sqlock_quorum_release(ours, results, &f->err));
    for (unsigned i = 0; i < SERVERS; i++)
        assert_int_equal(results[i], 0);
    assert_ok(quorum_acquire(t, theirs, PATIENCE_MS, NULL));
    assert_fails(SQLOCK_EBUSY, quorum_acquire(t, ours, 0, NULL));
    quorum_end(t, theirs);
    assert_ok(sqlock_quorum_drop(ours, &f->err));
    for (unsigned i = 0; i < SERVERS; i++)
        trio_assert_free(t, i);
    trio_close(t);
}

static void test_a_majority_is_enough(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_quorum *all = quorum_obtain(t, t->a, true);
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two;
    int results[SERVERS];

    assert_ok(quorum_acquire(t, q, PATIENCE_MS, results));
    assert_int_equal(results[0], 0);
    assert_true(results[1] < 0);
    assert_int_equal(results[2], 0);
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[1], SQLOCK_EOWNER);
    assert_fails(SQLOCK_EBUSY, quorum_acquire(t, all, 0, results));
    assert_int_equal(results[1], SQLOCK_EBUSY);
    trio_assert_free(t, 0);
    trio_assert_free(t, 2);
    two = trio_rival(t, 2);
    assert_fails(SQLOCK_EBUSY, quorum_acquire(t, q, 0, results));
    assert_int_equal(results[0], 0); /* and given back */
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_int_equal(results[2], SQLOCK_EBUSY);
    assert_contains(f->err.message, "2 of 3");
    trio_assert_free(t, 0);
    lock_end(one);
    lock_end(two);
    assert_ok(quorum_acquire(t, all, PATIENCE_MS, NULL));
    quorum_end(t, all);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    trio_close(t);
}

static void test_readers_share_a_quorum(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *one = quorum_obtain(t, t->a, false);
    sqlock_quorum *two = quorum_obtain(t, t->b, false);
    sqlock_quorum *writer = quorum_obtain(t, t->b, false);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = SQLOCK_SHARED;
    assert_ok(sqlock_quorum_acquire(one, PATIENCE_MS, &options, NULL, &f->err));
    assert_ok(sqlock_quorum_acquire(two, PATIENCE_MS, &options, NULL, &f->err));
    assert_fails(SQLOCK_EBUSY, quorum_acquire(t, writer, 0, NULL));
    quorum_end(t, one);
    quorum_end(t, two);
    assert_ok(quorum_acquire(t, writer, PATIENCE_MS, NULL));
    quorum_end(t, writer);
    trio_close(t);
}

static void test_what_remains_is_the_majoritys(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);

    for (unsigned all = 0; all < 2; all++) {
        sqlock_quorum *q = quorum_obtain(t, t->a, all != 0);
        sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

        options.ttl_ms = LONG_TTL_MS;
        quorum_acquire_each(t, q, &options);
        assert_ok(sqlock_renew(sqlock_quorum_lock(q, 0), 10000000, &f->err));
        assert_ok(sqlock_renew(sqlock_quorum_lock(q, 1), 1000000, &f->err));
        assert_ok(sqlock_renew(sqlock_quorum_lock(q, 2), 100000, &f->err));
        assert_less(all != 0 ? 0 : 100000, sqlock_quorum_remaining_ms(q));
        assert_less(sqlock_quorum_remaining_ms(q), all != 0 ? 100000 : 1000000);
        quorum_end(t, q);
    }
    trio_close(t);
}

/* --- contenders that split the servers --- */

/* With leases that do not end by themselves. */
static int wait_for_quorum(struct worker *worker)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.auto_renew = true;
    worker_expect(worker, 0,
                  sqlock_quorum_acquire(worker->context, 10 * PATIENCE_MS,
                                        &options, NULL, &worker->err));
    return 0;
}

/* One that waits for the rest of a quorum keeps nobody from what it has got,
 * which it gives back before a busy machine has looked. */
static void test_who_has_too_few_gives_them_back(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two = trio_rival(t, 2);
    sqlock_lock *zero = lock_obtain(t->b[0], f->name);
    sqlock_quorum *q;
    atomic_int grants = 0;
    struct worker worker;

    trio_count_grants(t, &grants);
    q = quorum_obtain(t, t->a, false);
    worker_start(&worker, wait_for_quorum, q);
    assert_becomes_true(atomic_load(&grants) > 0, PATIENCE_MS);
    assert_ok(lock_try(zero, PATIENCE_MS, LONG_TTL_MS, &f->err));
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    lock_end(zero);
    check_sleep(600); /* it waits for the others, with nothing held */
    assert_false(sqlock_is_held(sqlock_quorum_lock(q, 0)));
    lock_end(one);
    lock_end(two);
    worker_join(&worker);
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    quorum_end(t, q);
    trio_close(t);
}

static int cancel(struct worker *worker)
{
    const int *fd = worker->context;

    check_sleep(50);
    return write(*fd, "x", 1) == 1 ? 0 : worker_fail(worker, "write");
}

static void test_a_wait_is_cancelled(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two = trio_rival(t, 2);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct worker worker;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    options.cancel_fd = fds[0];
    worker_start(&worker, cancel, &fds[1]);
    assert_fails(
        SQLOCK_ECANCELED,
        sqlock_quorum_acquire(q, PATIENCE_MS, &options, NULL, &f->err));
    worker_join(&worker);
    (void)close(fds[0]);
    (void)close(fds[1]);
    trio_assert_free(t, 0);
    lock_end(one);
    lock_end(two);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    quorum_end(t, q);
    trio_close(t);
}

/* --- guards --- */

/* A lock that a transaction guards is released when that has ended. */
static void test_a_guard_keeps_one_lock(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, true);
    sqlock_tx *tx = NULL;
    int results[SERVERS];

    quorum_acquire_each(t, q, NULL);
    assert_ok(sqlock_tx_begin(&tx, t->a[1], &f->err));
    assert_ok(sqlock_tx_guard(tx, sqlock_quorum_lock(q, 1), &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], SQLOCK_EINUSE);
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[1], 0);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    trio_assert_free(t, 1);
    trio_close(t);
}

/* The lock that is left is less than a majority: others may have theirs. */
static void test_a_guard_keeps_no_majority(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_quorum *other = quorum_obtain(t, t->b, false);
    sqlock_tx *tx = NULL;
    int results[SERVERS];

    quorum_acquire_each(t, q, NULL);
    assert_ok(sqlock_tx_begin(&tx, t->a[1], &f->err));
    assert_ok(sqlock_tx_guard(tx, sqlock_quorum_lock(q, 1), &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_ok(quorum_acquire(t, other, PATIENCE_MS, NULL));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    assert_true(sqlock_quorum_remaining_ms(other) > 0);
    assert_ok(sqlock_quorum_release(other, NULL, &f->err));
    assert_ok(sqlock_quorum_drop(q, &f->err));
    assert_ok(sqlock_quorum_drop(other, &f->err));
    trio_close(t);
}

/* --- losses --- */

static void test_the_loss_of_the_majority_is_told_once(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    struct told told = {.quorum = quorum_obtain(t, t->a, false)};
    sqlock_quorum *q = told.quorum;
    sqlock_acquire_options options = watched(&told);
    int results[SERVERS];

    quorum_acquire_each(t, q, &options);
    trio_break(t, 0);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    assert_int_equal(told.times, 0);
    trio_break(t, 1);
    assert_becomes_true(told.times == 1, PATIENCE_MS);
    assert_int_equal(told.code, SQLOCK_ELOST);
    assert_int_equal(told.refused, SQLOCK_EINUSE);
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    trio_break(t, 2);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 2)), PATIENCE_MS);
    check_sleep(100); /* for on_lost, if it were called */
    assert_fails(SQLOCK_ELOST, sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(told.times, 1);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_int_equal(results[i], SQLOCK_ELOST);
    quorum_acquire_each(t, q, &options);
    quorum_end(t, q);
    assert_int_equal(told.times, 1);
    trio_close(t);
}

static const struct test tests[] = {
    TEST_OF_TRIO(test_what_is_no_quorum_is_refused),
    TEST_OF_TRIO(test_calls_out_of_turn_are_refused),
    TEST_OF_TRIO(test_a_quorum_excludes_another),
    TEST_OF_TRIO(test_a_majority_is_enough),
    TEST_OF_TRIO(test_readers_share_a_quorum),
    TEST_OF_TRIO(test_what_remains_is_the_majoritys),
    TEST_OF_TRIO(test_who_has_too_few_gives_them_back),
    TEST_OF_TRIO(test_a_wait_is_cancelled),
    TEST_OF_TRIO(test_a_guard_keeps_one_lock),
    TEST_OF_TRIO(test_a_guard_keeps_no_majority),
    TEST_OF_TRIO(test_the_loss_of_the_majority_is_told_once),
};
const struct topic topic_quorum = TOPIC(tests);
