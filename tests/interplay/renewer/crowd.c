/*
 * crowd.c - one process holds ten thousand locks: one statement per period
 * renews them all, and the process needs a few connections only
 */
#include "renewer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "sqlock/many.h"
#include "support/server.h"
#include "support/tap.h"

/* Number of locks: fewer under a sanitizer, because a renewal must be answered
 * within half a period. */
#define LOCKS (SQLOCK_MANY_MAX / (SLOWNESS * SLOWNESS))
#define CROWD_TTL_MS (16000 * SLOWNESS)
#define PERIOD_NS (CROWD_TTL_MS / 4 * LK_NS_PER_MS)
#define PERIODS 3

static void check_handful(struct fixture *f, const sqlock_options *options)
{
    int64_t ids[64];
    size_t count = tap_connections(ids, 64);

    if (f->database->bit == ON_SQLITE)
        return; /* it has no server sessions */
    assert_true(count >= 1 && count <= options->pool_size + 1);
    for (size_t i = 0; i < count; i++)
        assert_true(server_has_session(&f->sql, ids[i]));
}

static bool are_all_held(sqlock_lock *const *locks)
{
    for (size_t i = 0; i < LOCKS; i++)
        if (!sqlock_is_held(locks[i]))
            return false;
    return true;
}

static void test_ten_thousand_locks_are_renewed_together(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct told told = {0};
    sqlock_acquire_options how = renewed_options(CROWD_TTL_MS, &told);
    sqlock_lock **locks = calloc(LOCKS, sizeof *locks);
    int *results = calloc(LOCKS, sizeof *results);
    struct census census = {0};
    sqlock_registry *tapped;
    int64_t first;
    int rc;

    assert_non_null(locks);
    assert_non_null(results);
    options.pool_size = 4;
    options.statement_timeout_ms = 5000 * SLOWNESS;
    tapped = fixture_tapped(f, &options);
    for (size_t i = 0; i < LOCKS; i++)
        locks[i] = nth_lock(f, tapped, i);
    rc = sqlock_acquire_many(locks, LOCKS, 0, &how, results, &f->err);
    assert_lock_ok(rc, &f->err);
    /* On a slow machine the first leases are renewed while the last are still
     * being added to the renewer's list; a period later one statement renews
     * all. */
    census_begin(&census, tapped);
    assert_becomes_true(atomic_load(&census.most) == LOCKS, 3 * PATIENCE_MS);
    census_begin(&census, tapped);
    first = lock_deadline(locks[0]);
    assert_becomes_true(atomic_load(&census.renewals) >= PERIODS,
                        3 * PATIENCE_MS);
    await_renewals(locks[LOCKS - 1], 1);
    /* The deadline has moved by PERIODS - 1 periods or more, with at most two
     * statements per period: each renewal may be tried again. */
    assert_true(atomic_load(&census.renewals) <= 2 * (PERIODS + 1));
    assert_less(first + PERIOD_NS * (PERIODS - 1),
                lock_deadline(locks[LOCKS - 1]));
    assert_true(are_all_held(locks));
    assert_int_equal(atomic_load(&told.times), 0);
    check_handful(f, &options);
    assert_ok(sqlock_release_many(locks, LOCKS, results, &f->err));
    for (size_t i = 0; i < LOCKS; i++) {
        assert_int_equal(results[i], 0);
        lock_drop(locks[i]);
    }
    registry_end(tapped);
    free(locks);
    free(results);
}

static const struct test tests[] = {
    TEST(test_ten_thousand_locks_are_renewed_together),
};
const struct topic topic_crowd = TOPIC(tests);
