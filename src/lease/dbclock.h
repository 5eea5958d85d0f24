/*
 * dbclock.h - detects steps of the database's clock against this host's
 * boot-time clock (F15)
 */
#ifndef LK_DBCLOCK_H
#define LK_DBCLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The range of the database's clock minus CLOCK_BOOTTIME that all answers since
 * the last step allow. */
struct lk_dbclock {
    bool is_known;
    int64_t least_us;
    int64_t most_us;
};

/* Compare the database's clock with CLOCK_BOOTTIME.  The database read now_us
 * at some moment between before_boot_ns and after_boot_ns.  Return by how many
 * us, beyond that uncertainty, the database's clock has stepped since the last
 * call: forward if positive, 0 if it has not stepped. */
int64_t lk_dbclock_observe(struct lk_dbclock *clock, int64_t now_us,
                           int64_t before_boot_ns, int64_t after_boot_ns);

#endif
