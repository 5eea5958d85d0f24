/*
 * dbclock.c - detect steps of the database's clock
 *
 * The database reads its clock at some moment between request and answer; only
 * a difference beyond that range is a step.
 */
#include "lease/dbclock.h"

int64_t lk_dbclock_observe(struct lk_dbclock *clock, int64_t now_us,
                           int64_t before_boot_ns, int64_t after_boot_ns)
{
    /* The offset lies between these two. */
    int64_t least = now_us - after_boot_ns / 1000;
    int64_t most = now_us - before_boot_ns / 1000;
    int64_t step = 0;

    if (clock->is_known) {
        if (clock->offset_us < least)
            step = least - clock->offset_us;
        else if (clock->offset_us > most)
            step = most - clock->offset_us;
    }
    clock->is_known = true;
    /* Keep the known offset as long as it is possible: a fast answer gave a
     * better estimate than a slow one. */
    if (clock->offset_us < least || clock->offset_us > most)
        clock->offset_us = least + (most - least) / 2;
    return step;
}
