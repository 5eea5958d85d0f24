/*
 * background.c - calls that fail in the threads of the renewer and the expiry:
 * after one failure renewals go on; when memory fails for good the loss is
 * reported, and the threads do not spin
 */
#include "exhaust.h"

#include <time.h>

#include "base/clock.h"
#include "support/told.h"

/* A lease long enough for a busy machine to open a new connection, and renewed
 * often. */
#define TTL_MS (4000 * SLOWNESS)
#define PERIOD_MS (120 * SLOWNESS)
#define CALLS_MAX 50

static sqlock_lock *keep(struct fixture *f, sqlock_registry *registry,
                         struct told *told)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(registry, f->name);

    options.ttl_ms = TTL_MS;
    options.auto_renew = true;
    options.on_lost = told_note;
    options.lost_context = told;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    return lock;
}

static int64_t end_of(sqlock_lock *lock)
{
    return lk_boottime_ns() / LK_NS_PER_MS + sqlock_remaining_ms(lock);
}

/* Wait until the lease's end has moved by more than rounding to milliseconds
 * does; return whether it has, and the lock is held. */
static bool is_renewed(sqlock_lock *lock)
{
    int64_t before = end_of(lock);

    return wait_until(end_of(lock) > before + PERIOD_MS / 4, 2 * TTL_MS) &&
           sqlock_is_held(lock);
}

static void survive_each(struct fixture *f, enum exhaust_kind kind)
{
    sqlock_options options = exhaust_options(f);
    struct told told = {0};
    sqlock_registry *registry;
    sqlock_lock *lock;
    unsigned failed = 1;
    unsigned nth;

    options.renew_period_ms = PERIOD_MS;
    registry = fixture_registry(f, &options);
    lock = keep(f, registry, &told);
    for (nth = 1; failed > 0; nth++) {
        assert_true(nth < CALLS_MAX);
        exhaust_arm(kind, nth, false, true);
        /* Two: the armed call may have failed in the first renewal. */
        if (!is_renewed(lock) || !is_renewed(lock)) {
            print_error("it was not renewed: call %u failed in %s; told %d\n",
                        nth, exhaust_where(), atomic_load(&told.code));
            fail();
        }
        failed = exhaust_disarm();
        assert_true(sqlock_is_held(lock));
        assert_int_equal(atomic_load(&told.times), 0);
    }
    assert_true(nth > 2); /* a call has failed */
    lock_give(lock);
    registry_end(registry);
}

TEST(test_memory_is_missed_once)
{
    survive_each(f, EXHAUST_MEMORY);
}

TEST(test_waiting_fails_once)
{
    survive_each(f, EXHAUST_POLL);
}

TEST(test_a_signal_ends_a_wait)
{
    survive_each(f, EXHAUST_SIGNALS);
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 * LK_NS_PER_MS + now.tv_nsec;
}

/* Every allocation fails, so that no renewal can succeed: the loss is reported,
 * and the renewer pauses between its attempts, as the CPU time shows. */
TEST(test_memory_is_missing_for_good)
{
    sqlock_options options = exhaust_options(f);
    struct told told = {0};
    sqlock_registry *registry;
    sqlock_lock *lock;
    int64_t spent_ns;

    options.renew_period_ms = PERIOD_MS;
    registry = fixture_registry(f, &options);
    lock = keep(f, registry, &told);
    assert_true(is_renewed(lock));
    spent_ns = cpu_ns();
    exhaust_arm(EXHAUST_MEMORY, 1, true, true);
    assert_becomes_true(atomic_load(&told.times) > 0, PATIENCE_MS);
    spent_ns = cpu_ns() - spent_ns;
    assert_true(exhaust_disarm() > 0);
    assert_false(sqlock_is_held(lock));
    assert_less(spent_ns, TTL_MS * LK_NS_PER_MS / 4);
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, sqlock_release(lock, &f->err),
                   &f->err);
    lock_take(lock, 0);
    lock_give(lock);
    registry_end(registry);
}
