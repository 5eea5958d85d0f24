/*
 * sqlock/stats.h - counters and times of a registry, for metrics
 *
 * The counters start when a registry is opened, and are of this process alone.
 * `sqlock metrics` reads the lock table instead, and so counts for all
 * processes.
 *
 * Calling sequence
 *     sqlock_stats stats = SQLOCK_STATS_INIT;
 *
 *     rc = sqlock_registry_stats(registry, &stats, &err);
 *     if (rc == 0 && stats.wait.count > 0)
 *         printf("%llu us mean wait\n",
 *                (unsigned long long)(stats.wait.sum_us / stats.wait.count));
 *
 * Probes
 *     A library that was built with <sys/sdt.h> has the provider `sqlock` for
 *     bpftrace, perf and SystemTap:
 *
 *     acquired(key, code, wait_ns)   an acquisition has ended
 *     released(key, held_ns)         a holder begins to release a lock
 *     over(key, code)                a lease is found lost or expired
 *     statement(code, ns)            a statement was answered
 */
#ifndef SQLOCK_STATS_H
#define SQLOCK_STATS_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of buckets of sqlock_times. */
#define SQLOCK_STATS_BUCKETS 28

/* The longest time, in microseconds, that bucket i counts: 16 us, 32 us, 64 us
 * and so on, to 18 minutes in the last but one.  The last one counts all that
 * is longer. */
#define SQLOCK_STATS_BOUND_US(i) (INT64_C(16) << (i))

/** Histogram of times. */
typedef struct sqlock_times {
    uint64_t count;                         /* of all buckets */
    uint64_t sum_us;                        /* of all times */
    uint64_t buckets[SQLOCK_STATS_BUCKETS]; /* each counts the times above the
                                               bound of the one before it */
} sqlock_times;

/**
 * Counters and times of a registry.  Each lock of a call on many counts.  While
 * no call is under way, attempts = granted + nested + busy + timed_out +
 * cancelled + uncertain + failed.
 */
typedef struct sqlock_stats {
    size_t size;         /* sizeof(sqlock_stats): the struct may grow */
    uint64_t attempts;   /* acquisitions that have ended */
    uint64_t granted;    /* attempts that got a lease */
    uint64_t nested;     /* attempts of an owner that had the lock: counted, no
                            I/O */
    uint64_t busy;       /* attempts that ended with EBUSY */
    uint64_t timed_out;  /* attempts that ended with ETIMEDOUT */
    uint64_t cancelled;  /* attempts that ended with ECANCELED */
    uint64_t uncertain;  /* attempts that ended with EUNCERTAIN */
    uint64_t failed;     /* attempts that ended with any other code */
    uint64_t released;   /* leases whose release has begun, also of those that
                            were over by then */
    uint64_t handed_off; /* releases to the next waiter of this process */
    uint64_t renewed;    /* renewals that the database has confirmed */
    uint64_t lost;       /* leases found to be another owner's, or given up */
    uint64_t expired;    /* leases found to have expired before their release */
    uint64_t in_doubt;   /* claims and releases without an answer, resolved in
                            the background */
    uint64_t statement_errors;   /* statements that failed, each attempt */
    uint64_t connections_opened; /* since the registry was opened */
    uint64_t reconnects;         /* connections opened for one that broke */
    uint32_t connections;        /* open now */
    uint32_t connections_used;   /* in use now */
    sqlock_times wait;           /* from the call to the grant */
    sqlock_times hold;           /* from the grant to the release */
    /* Statements of locks, from sending to the answer; with SQLite also the
     * wait for the group that commits them. */
    sqlock_times statement;
    /* For a connection, with opening it; or, while more threads than there are
     * connections claim and release, to be sent together with others. */
    sqlock_times pool_wait;
} sqlock_stats;
#define SQLOCK_STATS_INIT SQLOCK_SIZED(sqlock_stats)

/**
 * Read the counters and times of a registry.  Each number is read by itself,
 * without a mutex, so while calls are under way they need not agree.  No I/O.
 *
 * @param[in,out] out begins with SQLOCK_STATS_INIT
 * @return 0           done
 *         any other   EINVAL (NULL, or another size), EFORK
 */
SQLOCK_MUSTUSE int sqlock_registry_stats(sqlock_registry *registry,
                                         sqlock_stats *out, sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_STATS_H */
