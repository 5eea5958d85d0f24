/*
 * test_watchdog.c - a call that is past its deadline is aborted, once
 */
#include "support/test.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/watchdog.h"

static atomic_uint aborted;
static void *_Atomic aborted_last;

static void note_abort(void *connection)
{
    atomic_store(&aborted_last, connection);
    (void)atomic_fetch_add(&aborted, 1);
}

static void start(struct lk_watchdog *dog)
{
    atomic_store(&aborted, 0);
    atomic_store(&aborted_last, NULL);
    lk_watchdog_init(dog);
}

static void arm(struct lk_watchdog *dog, struct lk_watch *watch,
                void *connection, int64_t deadline_ns)
{
    watch->abort = note_abort;
    watch->connection = connection;
    assert_int_equal(lk_watchdog_arm(dog, watch, deadline_ns, NULL), 0);
}

static int64_t from_now(int64_t ms)
{
    return sqlock_monotonic_ns() + ms * LK_NS_PER_MS;
}

/* A driver may need a moment to end the aborted call.  Calling `abort` again
 * meanwhile would keep a processor busy. */
TEST(test_an_overdue_call_is_aborted_once)
{
    static struct lk_watchdog dog;
    struct lk_watch watch = {0};
    int connection;

    start(&dog);
    arm(&dog, &watch, &connection, from_now(1));
    assert_becomes_true(atomic_load(&aborted) > 0, PATIENCE_MS);
    check_sleep(20);
    lk_watchdog_disarm(&dog, &watch);
    assert_int_equal(atomic_load(&aborted), 1);
    assert_ptr_equal(atomic_load(&aborted_last), &connection);
    lk_watchdog_stop(&dog);
}

TEST(test_a_call_that_ended_in_time_is_not_aborted)
{
    static struct lk_watchdog dog;
    struct lk_watch ended = {0};
    struct lk_watch overdue = {0};
    int first;
    int second;

    start(&dog);
    arm(&dog, &ended, &first, from_now(PATIENCE_MS));
    lk_watchdog_disarm(&dog, &ended);
    arm(&dog, &overdue, &second, from_now(1));
    assert_becomes_true(atomic_load(&aborted) > 0, PATIENCE_MS);
    assert_ptr_equal(atomic_load(&aborted_last), &second);
    lk_watchdog_disarm(&dog, &overdue);
    assert_int_equal(atomic_load(&aborted), 1);
    lk_watchdog_stop(&dog);
}

/* The timer is set for the earliest deadline, although a call with a later one
 * began first. */
TEST(test_a_shorter_call_is_aborted_before_a_longer_one)
{
    static struct lk_watchdog dog;
    struct lk_watch watches[3] = {{0}};
    int connections[3];

    start(&dog);
    arm(&dog, &watches[0], &connections[0], from_now(PATIENCE_MS));
    arm(&dog, &watches[1], &connections[1], from_now(1));
    arm(&dog, &watches[2], &connections[2], from_now(2 * PATIENCE_MS));
    assert_becomes_true(atomic_load(&aborted) > 0, PATIENCE_MS / 2);
    assert_ptr_equal(atomic_load(&aborted_last), &connections[1]);
    for (unsigned i = 0; i < 3; i++)
        lk_watchdog_disarm(&dog, &watches[i]);
    assert_int_equal(atomic_load(&aborted), 1);
    lk_watchdog_stop(&dog);
}

/* Two calls are past their deadline at once; of two others, one is 50 ms later,
 * so the timer is set again, unless this thread is as late as that. */
TEST(test_each_of_two_overdue_calls_is_aborted)
{
    static struct lk_watchdog dog;
    struct lk_watch watches[2] = {{0}};
    int connections[2];

    for (int later_ms = 0; later_ms <= 50; later_ms += 50) {
        start(&dog);
        arm(&dog, &watches[0], &connections[0], from_now(10 + later_ms));
        arm(&dog, &watches[1], &connections[1], from_now(10));
        assert_becomes_true(atomic_load(&aborted) == 2, PATIENCE_MS);
        lk_watchdog_disarm(&dog, &watches[1]);
        lk_watchdog_disarm(&dog, &watches[0]);
        lk_watchdog_stop(&dog);
    }
}
