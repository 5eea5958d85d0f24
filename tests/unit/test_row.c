/*
 * test_row.c - for how long a taken row is not to be claimed, and what a row
 * tells of a lease
 */
#include "support/test.h"

#include <stdio.h>

#include "base/clock.h"
#include "lease/row.h"

#define DAY_US (86400 * INT64_C(1000000))

TEST(test_a_taken_row_is_not_claimed_before_it_is_over)
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

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct lk_row row = {.exists = true,
                                   .is_taken = true,
                                   .is_sqlocks = true,
                                   .remaining_us = rows[i].remaining_us};

        assert_true(lk_row_blocked_ns(&row) == rows[i].blocked_ns);
    }
}

/* The rows are judged for a lease "mine" with token 7, which ends at 100, and a
 * statement about it that was sent first at sent_ns. */
TEST(test_a_row_tells_what_has_become_of_a_lease)
{
    static const struct {
        const char *client_id; /* NULL: there is no row */
        int64_t token;
        int64_t sent_ns;
        bool is_taken, is_broken, was_uncertain, is_spring;
        enum lk_verdict verdict;
    } rows[] = {
        {"mine", 7, 50, true, false, false, false, LK_VERDICT_HELD},
        {"mine", 7, LK_NEVER, false, false, false, false, LK_VERDICT_OVER},
        {"mine", 8, 50, true, false, false, false, LK_VERDICT_LOST},
        {"mine", 8, 50, true, false, false, true, LK_VERDICT_HELD},
        {"other", 8, 50, true, false, false, false, LK_VERDICT_LOST},
        {"other", 8, 50, true, false, true, false, LK_VERDICT_UNKNOWN},
        {"other", 8, 50, true, true, true, false, LK_VERDICT_LOST},
        {"other", 8, LK_NEVER, true, false, true, false, LK_VERDICT_LOST},
        {"", 7, 50, false, false, false, false, LK_VERDICT_FREED},
        {"", 7, 200, false, false, false, false, LK_VERDICT_FREED},
        {"", 8, 50, false, false, false, false, LK_VERDICT_LOST},
        {NULL, 0, 50, false, false, false, false, LK_VERDICT_LOST},
        {NULL, 0, 50, false, false, true, false, LK_VERDICT_FREED},
        {NULL, 0, 50, false, false, false, true, LK_VERDICT_FREED},
        {NULL, 0, 100, false, false, true, false, LK_VERDICT_UNKNOWN},
        {NULL, 0, 100, false, false, false, true, LK_VERDICT_LOST},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct lk_store store = {.layout = rows[i].is_spring
                                                     ? SQLOCK_LAYOUT_SPRING7
                                                     : SQLOCK_LAYOUT_SQLOCK};
        struct lk_row row = {.exists = rows[i].client_id != NULL,
                             .token = rows[i].token,
                             .is_taken = rows[i].is_taken,
                             .is_broken = rows[i].is_broken};
        const struct lk_lease lease = {.client_id = "mine",
                                       .asked.weight = rows[i].is_broken,
                                       .answered.token = 7,
                                       .believed.until_boot_ns = 100};

        if (row.exists)
            (void)snprintf(row.client_id, sizeof row.client_id, "%s",
                           rows[i].client_id);
        if (lk_row_judge(&store, &row, &lease, rows[i].sent_ns,
                         rows[i].was_uncertain) != rows[i].verdict)
            fail_msg("row %zu", i);
    }
}
