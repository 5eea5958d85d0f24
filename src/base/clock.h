/*
 * clock.h - read the clocks, and compute deadlines
 *
 * Deadlines of calls are points of CLOCK_MONOTONIC.  Leases are measured by
 * CLOCK_BOOTTIME, which goes on while the machine is suspended (F16).
 *
 * Times are in nanoseconds.  LK_NEVER is a deadline that does not come.
 */
#ifndef LK_CLOCK_H
#define LK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define LK_NEVER INT64_MAX
#define LK_NS_PER_MS INT64_C(1000000)
#define LK_NS_PER_US INT64_C(1000)

/* Read CLOCK_MONOTONIC. */
int64_t sqlock_monotonic_ns(void);

/* Read CLOCK_BOOTTIME. */
int64_t lk_boottime_ns(void);

/* Return from + ms, for a non-negative ms; LK_NEVER if that is out of range. */
int64_t lk_after_ms(int64_t from_ns, int64_t ms);

/* Return from + us; LK_NEVER if that is out of range. */
int64_t lk_after_us(int64_t from_ns, int64_t us);

/* Return from + by; LK_NEVER if that is out of range. */
int64_t lk_after_ns(int64_t from_ns, int64_t by_ns);

/* Return the earlier, or the later, of two points in time. */
int64_t lk_sooner(int64_t a_ns, int64_t b_ns);
int64_t lk_later(int64_t a_ns, int64_t b_ns);

/* Convert a CLOCK_MONOTONIC deadline for pthread_cond_timedwait(). */
struct timespec lk_timespec(int64_t ns);

/* Sleep until a point of CLOCK_MONOTONIC, even if signals arrive. */
void lk_sleep_until(int64_t monotonic_ns);

#endif
