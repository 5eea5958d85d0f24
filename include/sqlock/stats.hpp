/*
 * sqlock/stats.hpp - counters and times of a registry, for metrics; stats.h
 * documents each
 */
#ifndef SQLOCK_STATS_HPP
#define SQLOCK_STATS_HPP

#include <chrono>
#include <optional>

#include <sqlock.hpp>
#include <sqlock/stats.h>

namespace sqlock
{

/** Read the counters and times of a registry, from any thread; no I/O. */
inline result<sqlock_stats> stats(const std::nothrow_t &, const registry &of)
{
    sqlock_stats out = SQLOCK_STATS_INIT;

    return detail::made(
        detail::call(sqlock_registry_stats, of.native_handle(), &out), out);
}
inline sqlock_stats stats(const registry &of)
{
    return stats(std::nothrow, of).value();
}

/** The mean of the times, rounded down to microseconds; zero where there are
 *  no times. */
inline std::chrono::microseconds mean(const sqlock_times &times)
{
    if (times.count == 0)
        return std::chrono::microseconds{0};
    return std::chrono::microseconds{
        static_cast<std::int64_t>(times.sum_us / times.count)};
}

/** The upper bound of the bucket that contains a quantile, such as the median
 *  with a @p share of 0.5: 16 us, 32 us and so on.  nullopt where there are no
 *  times, where the quantile is in the last bucket, which has no bound, and for
 *  a share above 1. */
inline std::optional<std::chrono::microseconds>
quantile(const sqlock_times &times, double share)
{
    double below = 0;

    if (times.count == 0)
        return std::nullopt;
    for (int i = 0; i < SQLOCK_STATS_BUCKETS - 1; i++) {
        below += static_cast<double>(times.buckets[i]);
        /* A product would be rounded above the count: 100 * 0.07 > 7. */
        if (below / static_cast<double>(times.count) >= share)
            return std::chrono::microseconds{SQLOCK_STATS_BOUND_US(i)};
    }
    return std::nullopt;
}

} /* namespace sqlock */

#endif /* SQLOCK_STATS_HPP */
