/*
 * clock.c - read the clocks, and compute deadlines
 *
 * An application may ask for a wait of INT64_MAX milliseconds, so a sum that is
 * out of range becomes LK_NEVER.
 */
#include "base/clock.h"

#include <errno.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    /* Cannot fail for a clock the kernel has, and Linux has both. */
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t sqlock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t lk_boottime_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t lk_after_ms(int64_t from_ns, int64_t ms)
{
    if (ms >= (LK_NEVER - from_ns) / LK_NS_PER_MS)
        return LK_NEVER;
    return from_ns + ms * LK_NS_PER_MS;
}

int64_t lk_after_us(int64_t from_ns, int64_t us)
{
    if (us >= (LK_NEVER - from_ns) / LK_NS_PER_US)
        return LK_NEVER;
    return from_ns + us * LK_NS_PER_US;
}

int64_t lk_after_ns(int64_t from_ns, int64_t by_ns)
{
    return by_ns >= LK_NEVER - from_ns ? LK_NEVER : from_ns + by_ns;
}

int64_t lk_sooner(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

int64_t lk_later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

struct timespec lk_timespec(int64_t ns)
{
    struct timespec at;

    at.tv_sec = (time_t)(ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}

void lk_sleep_until(int64_t monotonic_ns)
{
    struct timespec at = lk_timespec(monotonic_ns);
    int rc;

    do {
        rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    } while (rc == EINTR);
}
