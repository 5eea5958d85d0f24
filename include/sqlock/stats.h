/*
 * sqlock/stats.h - counters and times of a registry, for metrics
 *
 * They count from the opening of the registry on, in this process alone.
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
 * Where <sys/sdt.h> was there when the library was built, the same moments are
 * probes of the provider `sqlock` for bpftrace, perf and SystemTap:
 *     acquired(key, code, wait_ns)   an acquisition is over
 *     released(key, held_ns)         its holder begins to give a lock back
 *     over(key, code)                a lease is found lost or expired
 *     statement(code, ns)            a statement is answered
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
    uint64_t attempts;   /* acquisitions that are over */
    uint64_t granted;    /* of them: with a lease of their own */
    uint64_t nested;     /* by an owner that had the lock: counted, no I/O */
    uint64_t busy;       /* EBUSY */
    uint64_t timed_out;  /* ETIMEDOUT */
    uint64_t cancelled;  /* ECANCELED */
    uint64_t uncertain;  /* EUNCERTAIN */
    uint64_t failed;     /* any other code */
    uint64_t released;   /* leases that their holders have given back, or began
                            to: also those that were over by then */
    uint64_t handed_off; /* of them: to the next waiter of this process */
    uint64_t renewed;    /* renewals that the database has confirmed */
    uint64_t lost;       /* leases found to be another owner's, or given up */
    uint64_t expired;    /* leases found to have run out before their release */
    uint64_t in_doubt;   /* claims and releases that are, or were, resolved in
                            the background: nobody knew what became of them */
    uint64_t statement_errors; /* statements that were not answered by success,
                                  each try for itself */
    uint64_t connections_opened; /* since the registry was opened */
    uint64_t reconnects;         /* of them: in the place of one that broke */
    uint32_t connections;        /* that are open now */
    uint32_t connections_used;   /* of them: in use now */
    sqlock_times wait;      /* from the call to the grant, of granted ones */
    sqlock_times hold;      /* from the grant until its release began */
    sqlock_times statement; /* from sending to the answer: of statements of
                               locks; with SQLite also the wait for the group
                               that commits them */
    sqlock_times pool_wait; /* for a connection, opening it included */
} sqlock_stats;
#define SQLOCK_STATS_INIT SQLOCK_SIZED(sqlock_stats)

/**
 * Read the counters and times of a registry.  It takes no lock: each number is
 * read by itself, while others change.  No I/O.
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
