/*
 * stats.c - count events and times (see stats.h)
 *
 * The probes for tracers are here, too, since all counted events are worth
 * tracing.
 */
#include "base/stats.h"

#if defined __has_include
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#ifdef __clang__ /* -Wpedantic, of that header's macros */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#endif
#endif
#ifndef DTRACE_PROBE2
#define DTRACE_PROBE2(provider, name, a, b) ((void)(a), (void)(b))
#define DTRACE_PROBE3(provider, name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#define FIRST_BITS 4 /* 16 us, the first bound */

/* A negative time, measured while a clock was set back, counts as 0. */
void lk_count_time(struct lk_times *times, int64_t ns)
{
    uint64_t time_ns = ns > 0 ? (uint64_t)ns : 0;
    uint64_t above_us = time_ns > 0 ? (time_ns - 1) / 1000 : 0;
    unsigned bucket = 0;

    if (above_us >> FIRST_BITS != 0)
        bucket = 64 - FIRST_BITS - (unsigned)__builtin_clzll(above_us);
    if (bucket >= SQLOCK_STATS_BUCKETS)
        bucket = SQLOCK_STATS_BUCKETS - 1;
    (void)atomic_fetch_add_explicit(&times->sum_ns, time_ns,
                                    memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&times->buckets[bucket], 1,
                                    memory_order_relaxed);
}

void lk_count_acquired(struct lk_stats *stats, const char *key, int rc,
                       int64_t wait_ns)
{
    static const enum lk_counter counters[] = {
        [-SQLOCK_EBUSY] = LK_COUNT_BUSY,
        [-SQLOCK_ETIMEDOUT] = LK_COUNT_TIMED_OUT,
        [-SQLOCK_EUNCERTAIN] = LK_COUNT_UNCERTAIN,
        [-SQLOCK_ECANCELED] = LK_COUNT_CANCELLED,
    };
    enum lk_counter counter = LK_COUNT_FAILED;

    if (rc == 0) {
        counter = LK_COUNT_GRANTED;
        lk_count_time(&stats->wait, wait_ns);
    } else if (-rc < (int)(sizeof counters / sizeof *counters) &&
               counters[-rc] != LK_COUNT_GRANTED) {
        counter = counters[-rc];
    }
    lk_count(stats, counter);
    DTRACE_PROBE3(sqlock, acquired, key, rc, wait_ns);
}

void lk_count_released(struct lk_stats *stats, const char *key, int64_t held_ns)
{
    lk_count(stats, LK_COUNT_RELEASED);
    lk_count_time(&stats->hold, held_ns);
    DTRACE_PROBE2(sqlock, released, key, held_ns);
}

void lk_count_over(struct lk_stats *stats, const char *key, int code)
{
    if (code == SQLOCK_ELOST)
        lk_count(stats, LK_COUNT_LOST);
    else if (code == SQLOCK_EEXPIRED)
        lk_count(stats, LK_COUNT_EXPIRED);
    else
        return;
    DTRACE_PROBE2(sqlock, over, key, code);
}

void lk_count_statement(struct lk_stats *stats, int rc, int64_t ns)
{
    lk_count_time(&stats->statement, ns);
    if (rc < 0)
        lk_count(stats, LK_COUNT_STATEMENT_ERRORS);
    DTRACE_PROBE2(sqlock, statement, rc, ns);
}

void lk_count_opened(struct lk_stats *stats)
{
    _Atomic uint64_t *reconnects = &stats->counts[LK_COUNT_RECONNECTS];
    uint64_t before = atomic_load_explicit(reconnects, memory_order_relaxed);

    lk_count(stats, LK_COUNT_OPENED);
    while (before < lk_stats_count(stats, LK_COUNT_BROKEN) &&
           !atomic_compare_exchange_weak_explicit(
               reconnects, &before, before + 1, memory_order_relaxed,
               memory_order_relaxed))
        continue;
}

static void read_times(const struct lk_times *times, sqlock_times *out)
{
    out->count = 0;
    out->sum_us =
        atomic_load_explicit(&times->sum_ns, memory_order_relaxed) / 1000;
    for (unsigned i = 0; i < SQLOCK_STATS_BUCKETS; i++) {
        out->buckets[i] =
            atomic_load_explicit(&times->buckets[i], memory_order_relaxed);
        out->count += out->buckets[i];
    }
}

/* Return `more` minus `fewer`, a counter that follows it, but at least 0. */
static uint32_t difference(const struct lk_stats *stats, enum lk_counter more,
                           enum lk_counter fewer)
{
    uint64_t less = lk_stats_count(stats, fewer);
    uint64_t all = lk_stats_count(stats, more);

    return all > less ? (uint32_t)(all - less) : 0;
}

void lk_stats_read(const struct lk_stats *stats, sqlock_stats *out)
{
    out->granted = lk_stats_count(stats, LK_COUNT_GRANTED);
    out->nested = lk_stats_count(stats, LK_COUNT_NESTED);
    out->busy = lk_stats_count(stats, LK_COUNT_BUSY);
    out->timed_out = lk_stats_count(stats, LK_COUNT_TIMED_OUT);
    out->cancelled = lk_stats_count(stats, LK_COUNT_CANCELLED);
    out->uncertain = lk_stats_count(stats, LK_COUNT_UNCERTAIN);
    out->failed = lk_stats_count(stats, LK_COUNT_FAILED);
    out->attempts = out->granted + out->nested + out->busy + out->timed_out +
                    out->cancelled + out->uncertain + out->failed;
    out->released = lk_stats_count(stats, LK_COUNT_RELEASED);
    out->handed_off = lk_stats_count(stats, LK_COUNT_HANDED_OFF);
    out->renewed = lk_stats_count(stats, LK_COUNT_RENEWED);
    out->lost = lk_stats_count(stats, LK_COUNT_LOST);
    out->expired = lk_stats_count(stats, LK_COUNT_EXPIRED);
    out->in_doubt = lk_stats_count(stats, LK_COUNT_IN_DOUBT);
    out->statement_errors = lk_stats_count(stats, LK_COUNT_STATEMENT_ERRORS);
    out->connections_opened = lk_stats_count(stats, LK_COUNT_OPENED);
    out->reconnects = lk_stats_count(stats, LK_COUNT_RECONNECTS);
    out->connections = difference(stats, LK_COUNT_OPENED, LK_COUNT_CLOSED);
    out->connections_used = difference(stats, LK_COUNT_TAKEN, LK_COUNT_GIVEN);
    read_times(&stats->wait, &out->wait);
    read_times(&stats->hold, &out->hold);
    read_times(&stats->statement, &out->statement);
    read_times(&stats->pool_wait, &out->pool_wait);
}
