/*
 * sqlock/stats.hpp - counters and times of a registry, for metrics
 *
 *     const auto now = sqlock::stats(registry);
 *
 *     std::cout << now.granted << " of " << now.attempts << ", waited "
 *               << sqlock::mean(now.wait).count() << " us\n";
 *
 * The members are those of sqlock_stats.
 */
#ifndef SQLOCK_STATS_HPP
#define SQLOCK_STATS_HPP

#include <chrono>
#include <optional>

#include <sqlock.hpp>
#include <sqlock/stats.h>

namespace sqlock
{

/** Read the counters and times; no I/O. */
inline result<sqlock_stats> stats(const std::nothrow_t &, const registry &of)
{
    sqlock_stats out = SQLOCK_STATS_INIT;
    sqlock_error why = {};

    if (of.native_handle() == nullptr)
        return detail::empty();
    const int code = sqlock_registry_stats(of.native_handle(), &out, &why);
    if (code != 0)
        return detail::result_of(code, why).error();
    return out;
}
inline sqlock_stats stats(const registry &of)
{
    return stats(std::nothrow, of).value();
}

/** Mean of the times; zero where there are none. */
inline std::chrono::microseconds mean(const sqlock_times &times)
{
    if (times.count == 0)
        return std::chrono::microseconds{0};
    return std::chrono::microseconds{
        static_cast<std::int64_t>(times.sum_us / times.count)};
}

/** Bound that @p share of the times, 0 to 1, do not exceed: 16 us, 32 us and so
 *  on; nothing where there are no times, or it is in the last bucket. */
inline std::optional<std::chrono::microseconds>
quantile(const sqlock_times &times, double share)
{
    double below = 0;

    if (times.count == 0)
        return std::nullopt;
    for (int i = 0; i < SQLOCK_STATS_BUCKETS - 1; i++) {
        below += static_cast<double>(times.buckets[i]);
        if (below >= share * static_cast<double>(times.count))
            return std::chrono::microseconds{SQLOCK_STATS_BOUND_US(i)};
    }
    return std::nullopt;
}

} /* namespace sqlock */

#endif /* SQLOCK_STATS_HPP */
