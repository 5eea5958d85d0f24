/*
 * flight.c - a renewal that is in flight when its lease ends cannot change the
 * next holder's lease (F4, F6)
 *
 * The renewal is held up on its way to the database; meanwhile the lock gets
 * another holder; then the renewal arrives.
 */
#include "renewer.h"

#include <string.h>

#include "support/tap.h"

struct trip {
    sqlock_registry *tapped;
    sqlock_lock *old;
    sqlock_lock *next;
    struct barrier flight;
    struct told told;
    struct row row;
};

static void begin(struct fixture *f, struct trip *trip)
{
    memset(trip, 0, sizeof *trip);
    trip->tapped = renewer_tapped(f);
    trip->old = lock_obtain(trip->tapped, f->name);
    trip->next = lock_obtain(f->b, f->name);
    barrier_begin(&trip->flight, trip->tapped, SQLOCK_SQL_RENEW_MANY, false);
    take_renewed(trip->old, 5 * TTL_MS, &trip->told);
    assert_becomes_true(atomic_load(&trip->flight.is_up), PATIENCE_MS);
}

/* Let the next holder take the lock, and then let the renewal arrive: it must
 * not change the next holder's row. */
static void let_land(struct fixture *f, struct trip *trip)
{
    struct row row;

    lock_take(trip->next, LONG_TTL_MS);
    trip->row = fixture_row(f, f->name);
    atomic_store(&trip->flight.may_go, true);
    assert_becomes_true(atomic_load(&trip->flight.has_passed), PATIENCE_MS);
    row = fixture_row(f, f->name);
    assert_string_equal(row.client, trip->row.client);
    assert_true(row.expires_us == trip->row.expires_us);
    assert_true(sqlock_is_held(trip->next));
}

static void end(struct trip *trip)
{
    lock_end(trip->next);
    registry_end(trip->tapped);
}

static void test_F4_a_renewal_in_flight_at_the_release(void **state)
{
    struct fixture *f = *state;
    struct trip trip;

    begin(f, &trip);
    lock_give(trip.old);
    let_land(f, &trip);
    assert_int_equal(sqlock_remaining_ms(trip.old), 0);
    assert_int_equal(sqlock_hold_count(trip.old), 0);
    assert_int_equal(atomic_load(&trip.told.times), 0);
    end(&trip);
}

/* The lock is released and its handle dropped while the renewal is in flight:
 * the handle is not freed before the renewal has ended. */
static void test_F4_a_renewal_in_flight_when_the_lock_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct trip trip;

    begin(f, &trip);
    lock_end(trip.old);
    let_land(f, &trip);
    end(&trip);
}

/* The lock is released, and acquired again by the same thread, while the
 * renewal is in flight.  The renewal is one of the first lease, so it changes
 * neither the row nor the deadline of the second. */
static void test_F4_a_renewal_in_flight_over_a_new_acquisition(void **state)
{
    struct fixture *f = *state;
    struct trip trip;
    int64_t deadline;

    begin(f, &trip);
    lock_give(trip.old);
    lock_take(trip.old, LONG_TTL_MS);
    deadline = lock_deadline(trip.old);
    trip.row = fixture_row(f, f->name);
    atomic_store(&trip.flight.may_go, true);
    assert_becomes_true(atomic_load(&trip.flight.has_passed), PATIENCE_MS);
    assert_true(fixture_row(f, f->name).expires_us == trip.row.expires_us);
    assert_true(sqlock_is_held(trip.old));
    assert_true(lock_deadline(trip.old) == deadline);
    assert_int_equal(atomic_load(&trip.told.times), 0);
    lock_give(trip.old);
    lock_drop(trip.next);
    registry_end(trip.tapped);
}

/* While the renewal is in flight, the row is deleted and another holder takes
 * the lock.  The renewal changes nothing, and the first holder learns of the
 * loss. */
static void test_F6_a_renewal_in_flight_when_the_row_is_taken(void **state)
{
    struct fixture *f = *state;
    struct trip trip;

    begin(f, &trip);
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE LOCK_KEY = '%s'", f->table,
                  sqlock_key(trip.old));
    let_land(f, &trip);
    assert_becomes_true(atomic_load(&trip.told.times) > 0, PATIENCE_MS);
    assert_code_of(SQLOCK_ELOST, SQLOCK_EEXPIRED,
                   sqlock_renew(trip.old, 0, &f->err), &f->err);
    assert_fails(SQLOCK_ELOST, sqlock_release(trip.old, &f->err));
    assert_string_equal(fixture_row(f, f->name).client, trip.row.client);
    end(&trip);
}

/* On SQLite the writes of a registry are run one after the other, so a release
 * would wait for the renewal in flight: three tests are for servers only. */
static const struct test tests[] = {
    TEST_ON(test_F4_a_renewal_in_flight_at_the_release, ON_SERVERS, IN_ALL),
    TEST_ON(test_F4_a_renewal_in_flight_when_the_lock_is_dropped, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_F4_a_renewal_in_flight_over_a_new_acquisition, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_F6_a_renewal_in_flight_when_the_row_is_taken, ON_ALL, IN_ALL),
};
const struct topic topic_flight = TOPIC(tests);
