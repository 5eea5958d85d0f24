/*
 * stranger.c - a transaction of another session, the stranger, has a row locked
 *
 * Servers lock rows: only the lease of that row cannot be renewed; its loss is
 * reported in time, and the other leases stay.  SQLite locks the file: no lease
 * can be renewed meanwhile, and all losses are reported in time.
 */
#include "renewer.h"

#include <string.h>

#include "base/clock.h"
#include "sqlock/many.h"
#include "support/tap.h"

#define LEASES 100
#define VICTIM 37
#define TTL RENEWED_MS

struct crowd {
    sqlock_lock *locks[LEASES];
    struct told told[LEASES];
};

static void take_all(struct fixture *f, struct crowd *crowd)
{
    for (size_t i = 0; i < LEASES; i++) {
        crowd->locks[i] = nth_lock(f, f->a, i);
        atomic_store(&crowd->told[i].times, 0);
        take_renewed(crowd->locks[i], TTL, &crowd->told[i]);
    }
}

static size_t count_held(const struct crowd *crowd)
{
    size_t held = 0;

    for (size_t i = 0; i < LEASES; i++)
        held += sqlock_is_held(crowd->locks[i]);
    return held;
}

/* Return whether that time is past; assert that all locks but VICTIM are
 * held. */
static bool is_past(const struct crowd *crowd, int64_t until)
{
    for (size_t i = 0; i < LEASES; i++)
        if (i != VICTIM)
            assert_true(sqlock_is_held(crowd->locks[i]));
    return lk_boottime_ns() >= until;
}

static void release_all(struct fixture *f, struct crowd *crowd, int *results)
{
    int rc = sqlock_release_many(crowd->locks, LEASES, results, &f->err);

    assert_code(SQLOCK_EEXPIRED, rc, &f->err); /* one at least was lost */
    for (size_t i = 0; i < LEASES; i++)
        lock_drop(crowd->locks[i]);
}

static void test_one_row_that_a_stranger_has_locked(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    const struct told *told = &crowd.told[VICTIM];
    int results[LEASES];
    struct sql sql;
    int64_t deadline;
    int64_t since;

    take_all(f, &crowd);
    await_renewals(crowd.locks[LEASES - 1], 2);
    fixture_lock_row(f, &sql, crowd.locks[VICTIM]);
    since = lk_boottime_ns();
    assert_becomes_true(atomic_load(&told->times) > 0, PATIENCE_MS);
    deadline = lock_deadline(crowd.locks[VICTIM]);
    assert_true(atomic_load(&told->at_ns) >= deadline);
    assert_less(atomic_load(&told->at_ns), deadline + LATE_MAX_NS);
    assert_int_equal(atomic_load(&told->code), SQLOCK_EEXPIRED);
    assert_becomes_true(is_past(&crowd, since + 3 * TTL * LK_NS_PER_MS),
                        PATIENCE_MS);
    assert_int_equal(count_held(&crowd), LEASES - 1);
    fixture_unlock_row(&sql);
    release_all(f, &crowd, results);
    for (int i = 0; i < LEASES; i++) {
        assert_int_equal(results[i], i == VICTIM ? SQLOCK_EEXPIRED : 0);
        assert_int_equal(atomic_load(&crowd.told[i].times), i == VICTIM);
    }
}

/* Another session has the row locked for a third of the TTL: no lease is
 * lost. */
static void test_a_row_that_is_locked_for_a_moment(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct told told = {0};
    struct sql sql;
    int64_t until;

    take_renewed(lock, TTL, &told);
    await_renewals(lock, 1);
    fixture_lock_row(f, &sql, NULL);
    (void)sql_run(&sql, "UPDATE %s SET FENCE = FENCE + 0 WHERE LOCK_KEY = '%s'",
                  f->table, sqlock_key(lock));
    until = lk_boottime_ns() + TTL / 3 * LK_NS_PER_MS;
    assert_becomes_true(lk_boottime_ns() >= until, PATIENCE_MS);
    fixture_unlock_row(&sql);
    await_renewals(lock, 2);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
}

static void test_a_file_that_a_stranger_has_locked(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    struct sql sql;
    int results[LEASES];

    take_all(f, &crowd);
    fixture_lock_row(f, &sql, NULL);
    assert_becomes_true(count_held(&crowd) == 0, PATIENCE_MS);
    for (size_t i = 0; i < LEASES; i++) {
        int64_t deadline = lock_deadline(crowd.locks[i]);

        await_told(&crowd.told[i], SQLOCK_EEXPIRED);
        assert_true(atomic_load(&crowd.told[i].at_ns) >= deadline);
        assert_less(atomic_load(&crowd.told[i].at_ns), deadline + LATE_MAX_NS);
    }
    fixture_unlock_row(&sql);
    release_all(f, &crowd, results);
    for (size_t i = 0; i < LEASES; i++) {
        assert_int_equal(results[i], SQLOCK_EEXPIRED);
        assert_int_equal(atomic_load(&crowd.told[i].times), 1);
    }
}

/* --- the transaction of a renewal that passes locked rows over --- */

struct halfway {
    bool has_begun;
    unsigned rollbacks;
};

/* Answer the renewal of all rows as if one were locked, and refuse the renewal
 * of the others, in a transaction that has locked them. */
static int fail_halfway(void *context, const struct tap_event *event)
{
    struct halfway *halfway = context;

    if (event->call == TAP_BEGIN)
        halfway->has_begun = true;
    if (event->call == TAP_ROLLBACK)
        halfway->rollbacks++;
    if (event->call != TAP_EXECUTE || event->text == NULL ||
        strstr(event->text, "SET ") == NULL)
        return 0;
    return halfway->has_begun ? SQLOCK_EDATABASE : SQLOCK_EBUSY;
}

/* Without a rollback, the row locks would stay, and the connection's next
 * statements would never be committed. */
static void test_a_renewal_that_fails_halfway_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    struct halfway halfway = {false, 0};
    sqlock_lock *locks[2];
    struct sql sql;

    for (unsigned i = 0; i < 2; i++)
        locks[i] = nth_lock(f, registry, i);
    for (int i = 0; i < 2; i++)
        lock_take(locks[i], 0);
    tap_hooks(fail_halfway, NULL, &halfway);
    assert_fails(SQLOCK_EDATABASE, sqlock_renew_many(locks, 2, NULL, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_true(halfway.has_begun);
    assert_int_equal(halfway.rollbacks, 1);
    fixture_lock_row(f, &sql, NULL);
    assert_int_equal(sql_try(&sql, NULL,
                             "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' "
                             "FOR UPDATE NOWAIT",
                             f->table, sqlock_key(locks[0])),
                     0);
    fixture_unlock_row(&sql);
    for (int i = 0; i < 2; i++)
        lock_end(locks[i]);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_one_row_that_a_stranger_has_locked, ON_SERVERS, IN_SQLOCK),
    TEST(test_a_row_that_is_locked_for_a_moment),
    TEST_ON(test_a_file_that_a_stranger_has_locked, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_a_renewal_that_fails_halfway_is_rolled_back, ON_MYSQL, IN_ALL),
};
const struct topic topic_stranger = TOPIC(tests);
