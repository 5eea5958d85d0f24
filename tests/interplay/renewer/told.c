/*
 * told.c - a loss is reported before the release returns or never, whatever the
 * acquisition and the release do at the same moment (the scenes of lost.scene
 * say when and how often it is reported)
 */
#include "renewer.h"

#include <string.h>

#include "base/clock.h"
#include "lock/registry.h"
#include "sqlock/async.h"
#include "sqlock/event.h"
#include "support/workers.h"

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
TEST(test_no_callback_runs_after_the_release)
{
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
TEST(test_a_lock_that_is_released_is_neither_renewed_nor_watched)
{
    struct told told = {0};
    sqlock_acquire_options how = renewed_options(RENEWED_MS, &told);
    struct held_up held_up;

    begin_held_up(f, &held_up, &how);
    let_go(&held_up);
    assert_null(held_up.registry->renewer.renewing);
    assert_null(held_up.registry->expiry.expiring);
    lock_drop(held_up.lock);
    registry_end(held_up.registry);
    assert_int_equal(atomic_load(&told.times), 0);
}

/* The lock is acquired again, with renewals and on_lost, before the held-up
 * worker goes on.  The worker's acquisition asked for neither, and must not end
 * those of the second acquisition. */
TEST(test_a_lock_that_is_acquired_again_is_renewed_and_watched)
{
    struct told told = {0};
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    struct held_up held_up;

    begin_held_up(f, &held_up, &how);
    take_renewed(held_up.lock, RENEWED_MS, &told);
    let_go(&held_up);
    await_renewals(held_up.lock, 2);
    lock_break(f, held_up.lock, true);
    await_told(&told, SQLOCK_ELOST);
    assert_fails(SQLOCK_ELOST, sqlock_release(held_up.lock, &f->err));
    lock_drop(held_up.lock);
    registry_end(held_up.registry);
}
