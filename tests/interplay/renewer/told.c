/*
 * told.c - a lease that is over is reported to its holder once, in time, by
 * on_lost and by the descriptor of sqlock_lost_fd(), and never after the
 * release
 */
#include "renewer.h"

#include <string.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "sqlock/async.h"
#include "sqlock/event.h"
#include "support/workers.h"

/* Break the lease as an administrator would; with `now`, at once. */
static void break_lease(struct fixture *f, sqlock_lock *lock, bool now)
{
    sqlock_break_options options = SQLOCK_BREAK_INIT;
    struct row row = fixture_row(f, f->name);

    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        options.token = sqlock_token(lock);
    else
        options.client_id = row.client;
    options.reason = "a test";
    options.now = now;
    assert_ok(sqlock_break(f->b, f->name, &options, &f->err));
}

static void expect_sticky(struct fixture *f, sqlock_lock *lock, int code)
{
    assert_false(sqlock_is_held(lock));
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    assert_int_equal(sqlock_hold_count(lock), 1);
    assert_code(code, sqlock_renew(lock, 0, &f->err), &f->err);
    assert_code(code, lock_try(lock, 0, 0, &f->err), &f->err);
    assert_int_equal(sqlock_hold_count(lock), 1);
    assert_code(code, sqlock_renew(lock, 0, &f->err), &f->err);
}

static void check_broken(struct fixture *f, bool now)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    int fd = -1;

    assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
    take_renewed(lock, RENEWED_MS, &told);
    await_renewals(lock, 2);
    assert_false(is_readable(fd));
    break_lease(f, lock, now);
    await_told(&told, SQLOCK_ELOST);
    assert_true(is_readable(fd));
    expect_sticky(f, lock, SQLOCK_ELOST);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);

    /* The lock can be acquired again, and nothing of the loss is left. */
    assert_ok(lock_try(lock, PATIENCE_MS, 0, &f->err));
    assert_false(is_readable(fd));
    assert_true(sqlock_is_held(lock));
    lock_give(lock);
    assert_int_equal(atomic_load(&told.times), 1);
    lock_drop(lock);
}

static void test_a_broken_lease_is_told_lost(void **state)
{
    check_broken(*state, false);
}

static void test_a_lease_that_is_broken_at_once_is_told_lost(void **state)
{
    check_broken(*state, true);
}

static void test_a_deleted_row_is_told_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};

    take_renewed(lock, LONG_TTL_MS / 10, &told);
    assert_int_equal(sql_run(&f->sql, "DELETE FROM %s WHERE LOCK_KEY = '%s'",
                             f->table, sqlock_key(lock)),
                     1);
    await_told(&told, SQLOCK_ELOST);
    expect_sticky(f, lock, SQLOCK_ELOST);
    assert_false(fixture_row(f, f->name).exists);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_F7_an_expired_lease_is_told_and_not_revived(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    sqlock_acquire_options options = told_options(TTL_MS, &told);
    int64_t deadline;

    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    deadline = lock_deadline(lock);
    await_told(&told, SQLOCK_EEXPIRED);
    assert_true(atomic_load(&told.at_ns) >= deadline);
    assert_less(atomic_load(&told.at_ns), deadline + LATE_MAX_NS);
    expect_sticky(f, lock, SQLOCK_EEXPIRED);
    fixture_await_expiry(f, f->name);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_a_renewal_puts_the_signal_off(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    sqlock_acquire_options options = told_options(RENEWED_MS, &told);
    int64_t first;
    int64_t second;

    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    first = lock_deadline(lock);
    assert_ok(sqlock_renew(lock, 3 * RENEWED_MS, &f->err));
    second = lock_deadline(lock);
    assert_less(first, second);
    /* and a renewal that shortens the lease brings the signal forward */
    assert_ok(sqlock_renew(lock, TTL_MS, &f->err));
    assert_becomes_true(atomic_load(&told.times) > 0, PATIENCE_MS);
    assert_true(atomic_load(&told.at_ns) >= lock_deadline(lock));
    assert_less(atomic_load(&told.at_ns), second);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* After the loss, sqlock_lost_fd(), a renewal, the expiry and the release look
 * at the lock again: on_lost is still called only once. */
static void test_it_is_told_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *later = nth_lock(f, f->a, 1);
    struct told told = {0};
    struct told later_told = {0};
    int fd = -1;

    take_renewed(lock, RENEWED_MS, &told);
    break_lease(f, lock, true);
    assert_becomes_true(atomic_load(&told.times) > 0, PATIENCE_MS);
    assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
    assert_becomes_true(is_readable(fd), PATIENCE_MS);
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    /* A later loss shows that the thread that calls on_lost has gone
     * over all locks again. */
    take_renewed(later, RENEWED_MS, &later_told);
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE LOCK_KEY = '%s'", f->table,
                  sqlock_key(later));
    assert_becomes_true(atomic_load(&later_told.times) > 0, PATIENCE_MS);
    assert_int_equal(atomic_load(&told.times), 1);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(later, &f->err));
    assert_int_equal(atomic_load(&told.times), 1);
    lock_drop(lock);
    lock_drop(later);
}

static void test_nobody_is_told_of_a_lock_that_was_released(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *later = nth_lock(f, f->a, 1);
    struct told told = {0};
    struct told later_told = {0};
    sqlock_acquire_options options = told_options(RENEWED_MS, &told);
    int fd = -1;

    assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    lock_give(lock);
    options.ttl_ms = TTL_MS;
    options.lost_context = &later_told;
    assert_ok(sqlock_acquire(later, 0, &options, &f->err));
    assert_becomes_true(atomic_load(&later_told.times) > 0, PATIENCE_MS);
    assert_int_equal(atomic_load(&told.times), 0);
    assert_false(is_readable(fd));
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(later, &f->err));
    lock_drop(lock);
    lock_drop(later);
}

/* ------------------------------------------------------ against the release */

struct race {
    atomic_bool is_released;
    atomic_int began;
    atomic_int ended;
    atomic_int late; /* ran after the release had returned */
};

static void note_race(void *context, sqlock_lock *lock, int code)
{
    struct race *race = context;
    int64_t until = check_deadline_ns(2);

    (void)atomic_fetch_add(&race->began, 1);
    (void)code;
    (void)sqlock_remaining_ms(lock);
    while (check_pause(until))
        ;
    if (atomic_load(&race->is_released))
        (void)atomic_fetch_add(&race->late, 1);
    (void)atomic_fetch_add(&race->ended, 1);
}

/* Each lease is released at the moment it runs out, or less than a millisecond
 * before or after: on_lost is called and ends before the release returns, or is
 * not called at all. */
static void test_no_callback_runs_after_the_release(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    unsigned rounds = check_scale(60, 2000);
    unsigned told = 0;
    unsigned i;

    for (i = 0; i < rounds; i++) {
        struct race race = {0};
        sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
        int64_t skew = ((int64_t)(i % 7) - 3) * 300000;
        int64_t at;
        int rc;

        options.ttl_ms = 20 * SLOWNESS;
        options.on_lost = note_race;
        options.lost_context = &race;
        rc = sqlock_acquire(lock, PATIENCE_MS, &options, &f->err);
        if (rc == SQLOCK_ETIMEDOUT) /* it took longer than the lease */
            continue;
        assert_lock_ok(rc, &f->err);
        at = lock_deadline(lock) + skew;
        while (lk_boottime_ns() < at)
            ;
        rc = sqlock_release(lock, &f->err);
        atomic_store(&race.is_released, true);
        assert_code_of(0, SQLOCK_EEXPIRED, rc, &f->err);
        assert_int_equal(atomic_load(&race.began), atomic_load(&race.ended));
        assert_int_equal(atomic_load(&race.late), 0);
        assert_true(atomic_load(&race.began) <= 1);
        told += (unsigned)atomic_load(&race.began);
    }
    print_message("%u of %u were told before the release\n", told, rounds);
    assert_true(told > 0);
    lock_drop(lock);
}

/* -------------------------------------------------- against the acquisition */

/* The registry owns the lock.  A worker acquires the lock, and is held up after
 * the grant, before its lease is renewed and watched. */
struct held_up {
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_acquire_options how;
    struct worker worker;
    atomic_bool is_up;
    atomic_bool may_go;
};

/* Event hook: hold up the first acquisition until may_go; let later ones
 * pass. */
static void hold_grant(void *context, const sqlock_event *event)
{
    struct held_up *held_up = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->kind != SQLOCK_EVENT_ACQUIRED ||
        atomic_exchange(&held_up->is_up, true))
        return;
    while (!atomic_load(&held_up->may_go) && check_pause(until))
        ;
}

static int acquire_as_asked(struct worker *worker)
{
    struct held_up *held_up = worker->context;

    worker_expect(
        worker, 0,
        sqlock_acquire(held_up->lock, 0, &held_up->how, &worker->err));
    return 0;
}

/* Acquire the lock in a worker, and release it while the worker is held up. */
static void begin_held_up(struct fixture *f, struct held_up *held_up,
                          const sqlock_acquire_options *how)
{
    sqlock_options options = renewer_options(f);

    memset(held_up, 0, sizeof *held_up);
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.on_event = hold_grant;
    options.event_context = held_up;
    options.event_level = SQLOCK_LEVEL_DEBUG;
    held_up->how = *how;
    held_up->registry = fixture_registry(f, &options);
    held_up->lock = lock_obtain(held_up->registry, f->name);
    worker_start(&held_up->worker, acquire_as_asked, held_up);
    assert_becomes_true(atomic_load(&held_up->is_up), PATIENCE_MS);
    lock_give(held_up->lock);
}

static void let_go(struct held_up *held_up)
{
    atomic_store(&held_up->may_go, true);
    worker_join(&held_up->worker);
}

/* A released lock may be freed at any time, so it must be in no list of the
 * renewer or the expiry. */
static void
test_a_lock_that_is_released_is_neither_renewed_nor_watched(void **state)
{
    struct fixture *f = *state;
    struct told told = {0};
    sqlock_acquire_options how = renewed_options(RENEWED_MS, &told);
    struct held_up held_up;

    begin_held_up(f, &held_up, &how);
    let_go(&held_up);
    assert_false(held_up.lock->renewing.is_listed);
    assert_false(held_up.lock->expiring.is_listed);
    lock_drop(held_up.lock);
    registry_end(held_up.registry);
    assert_int_equal(atomic_load(&told.times), 0);
}

/* The lock is acquired again, with renewals and on_lost, before the held-up
 * worker goes on.  The worker's acquisition asked for neither, and must not end
 * those of the second acquisition. */
static void
test_a_lock_that_is_acquired_again_is_renewed_and_watched(void **state)
{
    struct fixture *f = *state;
    struct told told = {0};
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct held_up held_up;

    begin_held_up(f, &held_up, &how);
    take_renewed(held_up.lock, RENEWED_MS, &told);
    let_go(&held_up);
    await_renewals(held_up.lock, 2);
    break_lease(f, held_up.lock, true);
    await_told(&told, SQLOCK_ELOST);
    assert_fails(SQLOCK_ELOST, sqlock_release(held_up.lock, &f->err));
    lock_drop(held_up.lock);
    registry_end(held_up.registry);
}

/* -------------------------------------------------------------- descriptors */

static void test_a_descriptor_asked_for_after_the_loss(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int fd = -1;
    int again = -1;

    lock_take(lock, TTL_MS);
    assert_becomes_true(!sqlock_is_held(lock), PATIENCE_MS);
    assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
    assert_becomes_true(is_readable(fd), PATIENCE_MS);
    assert_ok(sqlock_lost_fd(&again, lock, &f->err));
    assert_int_equal(fd, again);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_take(lock, 0);
    assert_false(is_readable(fd));
    lock_end(lock);
}

static void test_a_descriptor_asked_for_while_it_is_held(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t deadline;
    int fd = -1;

    lock_take(lock, TTL_MS);
    assert_ok(sqlock_lost_fd(&fd, lock, &f->err));
    deadline = lock_deadline(lock);
    assert_becomes_true(is_readable(fd), PATIENCE_MS);
    assert_true(lk_boottime_ns() >= deadline);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_descriptors_that_cannot_be_had(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int fd = -1;

    assert_fails(SQLOCK_EINVAL, sqlock_lost_fd(NULL, lock, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_lost_fd(&fd, NULL, &f->err));
    assert_int_equal(fd, -1);
    lock_drop(lock);
}

static const struct test tests[] = {
    TEST_ON(test_a_broken_lease_is_told_lost, ON_ALL, IN_ALL),
    TEST_ON(test_a_lease_that_is_broken_at_once_is_told_lost, ON_ALL, IN_ALL),
    TEST(test_a_deleted_row_is_told_lost),
    TEST(test_F7_an_expired_lease_is_told_and_not_revived),
    TEST(test_a_renewal_puts_the_signal_off),
    TEST(test_it_is_told_once),
    TEST(test_nobody_is_told_of_a_lock_that_was_released),
    TEST(test_no_callback_runs_after_the_release),
    TEST(test_a_lock_that_is_released_is_neither_renewed_nor_watched),
    TEST(test_a_lock_that_is_acquired_again_is_renewed_and_watched),
    TEST(test_a_descriptor_asked_for_after_the_loss),
    TEST(test_a_descriptor_asked_for_while_it_is_held),
    TEST(test_descriptors_that_cannot_be_had),
};
const struct topic topic_told = TOPIC(tests);
