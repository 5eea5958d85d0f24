/*
 * sharers.c - many sharers of one lock in one process keep their leases, though
 * each of them is renewed by a statement of its own
 */
#include "renewer.h"

#include "sqlock/shared.h"
#include "support/tap.h"

#define SHARERS 40
#define SHARED_MS (12000 * SLOWNESS)
#define DELAY_MS (60 * SLOWNESS)

/* Renewals take so long that those of all sharers do not fit into the time that
 * the renewer has for one batch. */
static int delay_renewals(void *context, const struct tap_event *event)
{
    if (event->call == TAP_EXECUTE && event->text == context)
        check_sleep(DELAY_MS);
    return 0;
}

static void share(struct fixture *f, sqlock_lock *lock, struct told *told)
{
    sqlock_acquire_options how = renewed_options(SHARED_MS, told);

    how.mode = SQLOCK_SHARED;
    assert_ok(sqlock_acquire(lock, PATIENCE_MS, &how, &f->err));
}

TEST_ON(test_many_sharers_keep_their_leases, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    static struct told told;
    sqlock_lock *locks[SHARERS], *alone;
    sqlock_registry *registry;

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_tapped(f, &options);
    told = (struct told){0};
    for (unsigned i = 0; i < SHARERS; i++) {
        locks[i] = lock_obtain(registry, f->name);
        share(f, locks[i], &told);
    }
    alone = nth_lock(f, registry, 1); /* it is renewed beside them */
    take_renewed(alone, SHARED_MS, &told);
    tap_hooks(
        delay_renewals, NULL,
        (void *)(uintptr_t)statement_text(registry, SQLOCK_SQL_RENEW_SHARE));
    check_sleep(SHARED_MS + SHARED_MS / 4);
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_give(alone);
    for (unsigned i = 0; i < SHARERS; i++) {
        lock_give(locks[i]);
        lock_drop(locks[i]);
    }
    registry_end(registry);
}
