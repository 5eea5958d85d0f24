/*
 * clock.c - by how much the database's clock has stepped, as its readings tell
 * (F15, F16); scenes/clock.scene has what becomes of the leases
 */
#include "renewer.h"

#include <stdlib.h>

#include "lease/dbclock.h"

/* -------------------------------------------------------- the arithmetic -- */

#define MS INT64_C(1000000)
#define DB_US INT64_C(1700000000000000)

/* lk_dbclock_observe() gets one reading of the database's clock after the other
 * and returns the step, if any, that each of them shows. */
TEST(test_F15_what_a_step_is)
{
    static const struct {
        const char *name;
        int64_t clock_ms; /* the database's clock */
        int64_t asked_ms; /* this host's clock before the reading */
        int64_t told_ms;  /* this host's clock after the reading */
        int64_t step_ms;  /* expected, to within 20 ms; 0: exactly 0 */
    } answers[] = {
        {"the first one only teaches", 0, 0, 10, 0},
        {"a second later on both clocks", 1000, 1000, 1010, 0},
        {"one so slow that any offset fits", 2000, 1500, 4000, 0},
        {"it has taught nothing", 5000, 5000, 5010, 0},
        {"set forth by 3 s", 9000, 6000, 6010, 3000},
        {"that is its time now", 10000, 7000, 7010, 0},
        {"set back by 3 s", 8000, 8000, 8010, -3000},
        {"and that is its time now", 9000, 9000, 9010, 0},
        {"set forth by an hour, told late", 3614000, 10000, 14000, 3600000},
        {"how late, a fast answer says", 3615005, 15000, 15010, 0},
    };
    struct lk_dbclock clock = {0};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        int64_t step_us =
            lk_dbclock_observe(&clock, DB_US + 1000 * answers[i].clock_ms,
                               (1000 + answers[i].asked_ms) * MS,
                               (1000 + answers[i].told_ms) * MS);
        int64_t off_us = llabs(step_us - 1000 * answers[i].step_ms);

        if (off_us > (answers[i].step_ms == 0 ? 0 : 20000))
            fail_msg("%s: a step of %lld us", answers[i].name,
                     (long long)step_us);
    }
}

/* Each answer leaves a range for the offset, which others narrow from both
 * sides: so a step shows that is smaller than the range of any of them. */
TEST(test_F15_answers_narrow_the_offset_from_both_sides)
{
    struct lk_dbclock clock = {0};
    int64_t step_us;

    /* offsets from 0 to 1000, from -900 to 100, and from 50 to 1050 ms */
    assert_int_equal(lk_dbclock_observe(&clock, DB_US + 1000000, 0, 1000 * MS),
                     0);
    assert_int_equal(
        lk_dbclock_observe(&clock, DB_US + 2100000, 2000 * MS, 3000 * MS), 0);
    assert_true(clock.least_us == DB_US && clock.most_us == DB_US + 100000);
    assert_int_equal(
        lk_dbclock_observe(&clock, DB_US + 5050000, 4000 * MS, 5000 * MS), 0);
    assert_true(clock.least_us == DB_US + 50000 &&
                clock.most_us == DB_US + 100000);
    /* from 300 to 1300 ms: forward by 200 at least */
    step_us = lk_dbclock_observe(&clock, DB_US + 7300000, 6000 * MS, 7000 * MS);
    assert_true(step_us == 200000);
    /* from -900 to 100 ms: back by 200 at least */
    step_us = lk_dbclock_observe(&clock, DB_US + 8100000, 8000 * MS, 9000 * MS);
    assert_true(step_us == -200000);
}

/* The database's clock drifts by 200 ppm for an hour and is read every 2 s: the
 * known offset follows, and no reading shows a step of 2 ms or more. */
TEST(test_F16_a_clock_that_drifts_does_not_step)
{
    struct lk_dbclock clock = {0};
    int64_t worst = 0;
    int i;

    for (i = 0; i < 1800; i++) {
        int64_t at = (int64_t)i * 2000 * MS;
        int64_t now = DB_US + (int64_t)i * 2000400;
        int64_t step = lk_dbclock_observe(&clock, now, at, at + MS);

        if (llabs(step) > worst)
            worst = llabs(step);
    }
    assert_true(clock.least_us > DB_US + 1800 * 300);
    assert_true(worst < 2000);
}
