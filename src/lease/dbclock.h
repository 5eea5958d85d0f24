/*
 * dbclock.h - detects steps of the database's clock against this host's
 * boot-time clock (F15)
 */
#ifndef LK_DBCLOCK_H
#define LK_DBCLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct lk_dbclock {
    bool is_known;
    int64_t offset_us; /* database's clock minus CLOCK_BOOTTIME */
};

/* The database said now_us at some moment between the two.  How far its clock
 * has stepped against CLOCK_BOOTTIME since the last time, in us and signed,
 * beyond what the round trip leaves open; 0: not at all. */
int64_t lk_dbclock_observe(struct lk_dbclock *clock, int64_t now_us,
                           int64_t before_boot_ns, int64_t after_boot_ns);

#endif
