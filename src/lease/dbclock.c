/*
 * dbclock.c - detect steps of the database's clock
 *
 * The database reads its clock at some moment between request and answer; only
 * a difference beyond that range is a step.
 */
#include "lease/dbclock.h"

#include "base/clock.h"

int64_t lk_dbclock_observe(struct lk_dbclock *clock, int64_t now_us,
                           int64_t before_boot_ns, int64_t after_boot_ns)
{
    int64_t least = now_us - after_boot_ns / LK_NS_PER_US;
    int64_t most = now_us - before_boot_ns / LK_NS_PER_US;
    int64_t step = 0;

    if (clock->is_known && clock->most_us < least)
        step = least - clock->most_us;
    else if (clock->is_known && clock->least_us > most)
        step = most - clock->least_us;
    /* A slow answer leaves a wide range, which the next one narrows. */
    if (clock->is_known && step == 0) {
        least = least > clock->least_us ? least : clock->least_us;
        most = most < clock->most_us ? most : clock->most_us;
    }
    *clock = (struct lk_dbclock){true, least, most};
    return step;
}
