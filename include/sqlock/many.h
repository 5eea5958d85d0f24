/*
 * sqlock/many.h - many locks in one call
 */
#ifndef SQLOCK_MANY_H
#define SQLOCK_MANY_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most locks of one call. */
#define SQLOCK_MANY_MAX 10000

/**
 * Take all of @p locks, each given once and all of one registry, in one
 * statement (on MySQL one more, for the tokens), whatever their order: keys are
 * sorted, so that two callers never wait for each other crosswise.  PostgreSQL
 * needs an entry of its lock table for each key while the statement runs: with
 * its default settings 10,000 fit, for more at a time raise its
 * max_locks_per_transaction (else ERESOURCE, and none is taken).  All or
 * nothing, unless `partial` is set: then those that are free are taken, and
 * @p wait_ms must be 0.  A lock that is owned already counts one more.  While
 * it waits for one of them, first come, first served, the call keeps none of
 * the others from anybody; sqlock_cancel() of any of them ends the wait.
 *
 * @param[out] results of each lock, as sqlock_acquire() gives them; may be NULL
 * @return 0 when all were taken; EBUSY, ETIMEDOUT (with `partial`, EBUSY: at
 *         least one was not), or as sqlock_acquire(): then none was.
 *         EUNCERTAIN also when some were taken, others were not to be had, and
 *         the former could not be given back: their rows are freed in the
 *         background
 */
SQLOCK_MUSTUSE int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                                       int64_t wait_ms,
                                       const sqlock_acquire_options *options,
                                       int *results, sqlock_error *err);

/**
 * Undo one acquire of each, in one statement.
 *
 * @param[out] results of each lock, as sqlock_release() gives them; may be
 *             NULL.  Not written when the call was refused at once (EINVAL,
 *             EFORK, ENOMEM): then all are held as before
 * @return 0 or the first of the results that is not
 */
SQLOCK_MUSTUSE int sqlock_release_many(sqlock_lock *const *locks, size_t count,
                                       int *results, sqlock_error *err);

/**
 * Let the lease of each begin anew with its own TTL, in one statement.  A lease
 * whose row a transaction has locked is passed over: EBUSY, its deadline stays,
 * and the others are renewed.
 *
 * @param[out] results of each lock, as sqlock_renew() gives them; may be NULL
 * @return 0 or the first of the results that is not
 */
SQLOCK_MUSTUSE int sqlock_renew_many(sqlock_lock *const *locks, size_t count,
                                     int *results, sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_MANY_H */
