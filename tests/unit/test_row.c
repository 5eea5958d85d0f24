/*
 * test_row.c - for how long a taken row is not to be claimed
 */
#include "unit.h"

#include "base/clock.h"
#include "lease/row.h"

#define DAY_US (86400 * INT64_C(1000000))

static void test_a_taken_row_is_not_claimed_before_it_is_over(void **state)
{
    static const struct {
        int64_t remaining_us;
        int64_t blocked_ns;
    } rows[] = {
        {0, 1000},
        {999, 1000000},
        {DAY_US, (DAY_US + 1) * 1000},
        /* the year 9999: more nanoseconds than 64 bits hold */
        {7973 * 365 * DAY_US, LK_NEVER},
        {INT64_MAX, LK_NEVER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct lk_row row = {.exists = true,
                                   .is_taken = true,
                                   .is_sqlocks = true,
                                   .remaining_us = rows[i].remaining_us};

        assert_true(lk_row_blocked_ns(&row) == rows[i].blocked_ns);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_taken_row_is_not_claimed_before_it_is_over),
};
const struct suite suite_row = SUITE("taken rows", tests);
