/*
 * histogram.c - a log-linear histogram of durations
 *
 * Every client fills a histogram of its own.  They are merged when the clients
 * have ended.
 */
#include "histogram.h"

#include <stddef.h>

#define STEPS (1 << BENCH_STEP_BITS)

/* Return the bucket of a value.  Values below STEPS have a bucket each.  For
   larger ones the leading bit chooses a group, and the BENCH_STEP_BITS bits
   after it the bucket in that group. */
static size_t bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < STEPS)
        return (size_t)value;
    if (value >> BENCH_VALUE_BITS != 0)
        return BENCH_BUCKETS - 1;
    shift = 63U - (unsigned)__builtin_clzll(value) - BENCH_STEP_BITS;
    return ((size_t)shift << BENCH_STEP_BITS) + (size_t)(value >> shift);
}

/* Return the middle of a bucket. */
static double value_of(size_t bucket)
{
    size_t shift;
    double low;

    if (bucket < STEPS)
        return (double)bucket;
    shift = (bucket >> BENCH_STEP_BITS) - 1;
    low = (double)((uint64_t)(bucket - (shift << BENCH_STEP_BITS)) << shift);
    return low + (double)((UINT64_C(1) << shift) - 1) / 2.0;
}

void bench_histogram_add(struct bench_histogram *histogram, int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;

    histogram->count++;
    histogram->buckets[bucket_of(value)]++;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

void bench_histogram_merge(struct bench_histogram *into,
                           const struct bench_histogram *from)
{
    size_t i;

    into->count += from->count;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (i = 0; i < BENCH_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

double bench_histogram_quantile(const struct bench_histogram *histogram,
                                double quantile)
{
    double wanted = quantile * (double)histogram->count;
    uint64_t seen = 0;
    size_t i;

    for (i = 0; i < BENCH_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            return value_of(i);
    }
    return 0.0;
}
