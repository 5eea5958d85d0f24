/*
 * test_clock.c - arithmetic on deadlines: it saturates and never wraps
 */
#include "support/test.h"

#include "base/clock.h"
#include "db/driver.h"

TEST(test_deadlines_saturate)
{
    static const struct {
        int64_t from;
        int64_t ms;
        int64_t expected;
    } rows[] = {
        {0, 0, 0},
        {0, 1, 1000000},
        {5, 3, 3000005},
        {0, INT64_MAX, LK_NEVER},
        {1, INT64_MAX, LK_NEVER},
        {INT64_MAX, 0, LK_NEVER},
        {INT64_MAX, INT64_MAX, LK_NEVER},
        {INT64_MAX - 999999, 1, LK_NEVER},
        {INT64_MAX - 3000000, 1, INT64_MAX - 2000000},
        {0, INT64_MAX / 1000000 + 1, LK_NEVER},
        {1000, INT64_MAX / 1000000, LK_NEVER},
    };
    size_t i;

    for (i = 0; i < sizeof rows / sizeof *rows; i++)
        if (lk_after_ms(rows[i].from, rows[i].ms) != rows[i].expected)
            fail_msg("row %zu gave %lld", i,
                     (long long)lk_after_ms(rows[i].from, rows[i].ms));
}

TEST(test_a_deadline_never_lies_before_its_start)
{
    int64_t ms;

    for (ms = 1; ms > 0 && ms < INT64_MAX / 3; ms *= 3) {
        int64_t now = sqlock_monotonic_ns();

        assert_true(lk_after_ms(now, ms) > now);
        assert_true(lk_after_ms(now, ms - 1) <= lk_after_ms(now, ms));
    }
}

TEST(test_the_sooner_deadline)
{
    assert_true(lk_sooner(1, 2) == 1);
    assert_true(lk_sooner(2, 1) == 1);
    assert_true(lk_sooner(LK_NEVER, 7) == 7);
    assert_true(lk_sooner(LK_NEVER, LK_NEVER) == LK_NEVER);
}

TEST(test_the_later_deadline)
{
    assert_true(lk_later(1, 2) == 2);
    assert_true(lk_later(2, -1) == 2);
    assert_true(lk_later(LK_NEVER, 7) == LK_NEVER);
    assert_true(lk_after_ns(2, -1) == 1);
    assert_true(lk_after_ns(LK_NEVER, 7) == LK_NEVER);
}

TEST(test_clocks_go_forward)
{
    int64_t monotonic = sqlock_monotonic_ns();
    int64_t boot = lk_boottime_ns();
    int i;

    for (i = 0; i < 1000; i++) {
        assert_true(sqlock_monotonic_ns() >= monotonic);
        assert_true(lk_boottime_ns() >= boot);
        monotonic = sqlock_monotonic_ns();
        boot = lk_boottime_ns();
    }
    lk_sleep_until(monotonic); /* past: returns at once */
    lk_sleep_until(sqlock_monotonic_ns() + 2000000);
    assert_true(sqlock_monotonic_ns() >= monotonic + 2000000);
}

TEST(test_timespec_of_a_deadline)
{
    struct timespec at = lk_timespec(INT64_C(3000000007));

    assert_int_equal(at.tv_sec, 3);
    assert_int_equal(at.tv_nsec, 7);
    at = lk_timespec(LK_NEVER);
    assert_true(at.tv_sec > 0);
    assert_in_range(at.tv_nsec, 0, 999999999);
}
