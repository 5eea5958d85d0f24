/*
 * renewer.h - what the tests of this suite share
 *
 * A test runs once for each database and table layout that it names.
 */
#ifndef TESTS_RENEWER_H
#define TESTS_RENEWER_H

#include <stdatomic.h>

#include "support/suite_main.h"
#include "support/told.h"

/* TTL of leases that are to run out. */
#define TTL_MS (600 * SLOWNESS)

/* TTL of leases that are to last, however busy the machine is; and the period
 * of their renewals, so short that no test waits long. */
#define RENEWED_MS (4000 * SLOWNESS)
#define PERIOD_MS (150 * SLOWNESS)

/* How late a loss may be reported on a busy machine. */
#define LATE_MAX_NS INT64_C(2000000000)

/* ------------------------------------------------------------------ renewal */

/* Return the options of the fixture's registries, with PERIOD_MS; or open
 * another registry with these options, or one through the tap (tap.h).
 * registry_end() closes it. */
sqlock_options renewer_options(const struct fixture *fixture);
sqlock_registry *renewer_registry(struct fixture *fixture);
sqlock_registry *renewer_tapped(struct fixture *fixture);

/* Wait for a call of on_lost; fail the test if none comes, or if its code is
 * not that one. */
void await_told(struct told *told, int code);

/* Return options of an acquisition whose loss is noted in *told (NULL:
 * nowhere); renewed_options() also sets auto_renew. */
sqlock_acquire_options told_options(uint32_t ttl_ms, struct told *told);
sqlock_acquire_options renewed_options(uint32_t ttl_ms, struct told *told);

/* Acquire the lock with a lease that is to run out, again if the claim outlasts
 * the lease; another failure fails the test. */
#define take_briefly(lock, options)                                            \
    take_briefly_at((lock), (options), __FILE__, __LINE__)
void take_briefly_at(sqlock_lock *lock, const sqlock_acquire_options *options,
                     const char *file, int line);

/* Acquire the lock without a wait, with renewed_options(); a failure fails the
 * test. */
#define take_renewed(lock, ttl_ms, told)                                       \
    take_renewed_at((lock), (ttl_ms), (told), __FILE__, __LINE__)
void take_renewed_at(sqlock_lock *lock, uint32_t ttl_ms, struct told *told,
                     const char *file, int line);

/* Return the deadline of the lock's lease, CLOCK_BOOTTIME.  Any thread may
 * ask. */
int64_t lock_deadline(sqlock_lock *lock);

/* Wait until the lock's deadline has moved so many times; fail the test if it
 * does not, or if the lock is not held. */
void await_renewals(sqlock_lock *lock, unsigned count);

/* Obtain lock number i of a test from the registry; or write its name to `out`,
 * and return `out`. */
sqlock_lock *nth_lock(struct fixture *fixture, sqlock_registry *registry,
                      size_t i);
const char *nth_name(const struct fixture *fixture, char out[96], size_t i);

/* Return the text of that statement: the very string that the registry passes
 * to its driver, so that hooks may compare pointers. */
const char *statement_text(sqlock_registry *registry,
                           sqlock_statement_kind kind);

#endif
