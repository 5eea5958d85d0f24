/*
 * histogram.h - a histogram of durations, in little memory
 *
 * Buckets are linear within each power of two, so a value of any size is known
 * to about 3 %.  A histogram is plain data without pointers, so a process can
 * send it to another.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_STEP_BITS 5 /* 32 steps in each power of two */
#define BENCH_VALUE_BITS                                                       \
    40 /* values above 2^40 ns, 18 minutes, count as that */
#define BENCH_BUCKETS                                                          \
    ((BENCH_VALUE_BITS - BENCH_STEP_BITS + 1) << BENCH_STEP_BITS)

struct bench_histogram {
    uint64_t count;
    int64_t max_ns;
    uint64_t buckets[BENCH_BUCKETS];
};

/** Count one duration; negative ones count as 0. */
void bench_histogram_add(struct bench_histogram *histogram, int64_t ns);

/** Add all of @p from to @p into. */
void bench_histogram_merge(struct bench_histogram *into,
                           const struct bench_histogram *from);

/** Return the duration, in ns, that the fraction @p quantile (0 to 1) of all
 *  durations does not exceed; 0 if there are none. */
double bench_histogram_quantile(const struct bench_histogram *histogram,
                                double quantile);

#endif /* BENCH_HISTOGRAM_H */
