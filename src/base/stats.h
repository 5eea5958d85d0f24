/*
 * stats.h - counters and times of a registry (sqlock/stats.h)
 *
 * Each is a separate relaxed atomic: every number is exact, but two of them
 * read together may be one event apart.  There is no mutex, so that all code
 * may count, whatever it has locked.
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

/* Initially all zero. */
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

void lk_count_time(struct lk_times *times, int64_t ns);

/* Count a finished acquisition: its result and its duration. */
void lk_count_acquired(struct lk_stats *stats, const char *key, int rc,
                       int64_t wait_ns);

/* Count a release, when its holder begins it. */
void lk_count_released(struct lk_stats *stats, const char *key,
                       int64_t held_ns);

/* Count a lease that was over before its release: ELOST or EEXPIRED; other
 * codes do not count. */
void lk_count_over(struct lk_stats *stats, const char *key, int code);

/* Count a statement by its result. */
void lk_count_statement(struct lk_stats *stats, int rc, int64_t ns);

/* Count a connection that was opened.  One that replaces a broken connection
 * counts as reconnected, too. */
void lk_count_opened(struct lk_stats *stats);

/* Fill in the members after `size`. */
void lk_stats_read(const struct lk_stats *stats, sqlock_stats *out);

#endif
