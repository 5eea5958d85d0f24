/*
 * stats.h - count events and times of a registry (sqlock/stats.h)
 *
 * Each number is a relaxed atomic of its own: it is exact, but of two numbers
 * read together one may lack an event that the other has.  There is no mutex,
 * so that code may count while it holds any mutex.
 */
#ifndef LK_STATS_H
#define LK_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "sqlock/stats.h"

enum lk_counter {
    LK_COUNT_GRANTED,
    LK_COUNT_NESTED,
    LK_COUNT_BUSY,
    LK_COUNT_TIMED_OUT,
    LK_COUNT_CANCELLED,
    LK_COUNT_UNCERTAIN,
    LK_COUNT_FAILED,
    LK_COUNT_RELEASED,
    LK_COUNT_HANDED_OFF,
    LK_COUNT_RENEWED,
    LK_COUNT_LOST,
    LK_COUNT_EXPIRED,
    LK_COUNT_IN_DOUBT,
    LK_COUNT_STATEMENT_ERRORS,
    LK_COUNT_OPENED,
    LK_COUNT_CLOSED,
    LK_COUNT_BROKEN,
    LK_COUNT_RECONNECTS,
    LK_COUNT_TAKEN,
    LK_COUNT_GIVEN,
    LK_COUNTERS
};

struct lk_times {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t buckets[SQLOCK_STATS_BUCKETS];
};

/* All zero before the first use. */
struct lk_stats {
    _Atomic uint64_t counts[LK_COUNTERS];
    struct lk_times wait;
    struct lk_times hold;
    struct lk_times statement;
    struct lk_times pool_wait;
};

static inline void lk_count(struct lk_stats *stats, enum lk_counter counter)
{
    (void)atomic_fetch_add_explicit(&stats->counts[counter], 1,
                                    memory_order_relaxed);
}

static inline uint64_t lk_stats_count(const struct lk_stats *stats,
                                      enum lk_counter counter)
{
    return atomic_load_explicit(&stats->counts[counter], memory_order_relaxed);
}

void lk_count_time(struct lk_times *times, int64_t ns);

/* Count an acquisition that has ended with rc after wait_ns. */
void lk_count_acquired(struct lk_stats *stats, const char *key, int rc,
                       int64_t wait_ns);

/* Count a release, when the holder begins it, of a lease held for held_ns. */
void lk_count_released(struct lk_stats *stats, const char *key,
                       int64_t held_ns);

/* Count a lease that was over before its release, if `code` is SQLOCK_ELOST or
 * SQLOCK_EEXPIRED. */
void lk_count_over(struct lk_stats *stats, const char *key, int code);

/* Count a statement that ended with rc after ns. */
void lk_count_statement(struct lk_stats *stats, int rc, int64_t ns);

/* Count a connection that was opened, also as a reconnect if it replaces a
 * broken one. */
void lk_count_opened(struct lk_stats *stats);

/* Fill in the members of *out after `size`. */
void lk_stats_read(const struct lk_stats *stats, sqlock_stats *out);

#endif
