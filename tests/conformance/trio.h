/*
 * trio.h - a quorum's three servers: three files of SQLite; or servers of
 * PostgreSQL and MariaDB, behind proxies, and a file
 */
#ifndef TESTS_TRIO_H
#define TESTS_TRIO_H

#include <stdatomic.h>

#include "conformance.h"
#include "sqlock/quorum.h"
#include "support/proxy.h"

#define SERVERS 3

#define TEST_OF_TRIO(function)                                                 \
    TEST_ON(function, ON_POSTGRES | ON_SQLITE, IN_SQLOCK)

/* TTL of leases that a test may wait for, and that no stall of a busy machine
 * ends; and the period of their renewals. */
#define SHORT_TTL_MS 6000
#define PERIOD_MS 500

/* Three servers, each with a table of its own. */
struct trio {
    struct fixture *f;
    const struct database *databases[SERVERS];
    char urls[SERVERS][1024];
    struct proxy *proxies[SERVERS]; /* NULL: none */
    char prefix[32];
    uint32_t limit_ms;           /* of connections and statements */
    sqlock_registry *a[SERVERS]; /* of one contender */
    sqlock_registry *b[SERVERS]; /* of another */
};

/* Options of the registries. */
sqlock_options trio_options(const struct trio *t);

/* Limits of calls, where all servers answer, and where some do not. */
#define PATIENT_MS 20000
#define HASTY_MS 1500

/* trio_create(): make the tables, without leaving anything open.
 * trio_connect(): open registries.  trio_open() does both, for two contenders,
 * in memory of its own; trio_close() undoes it.  trio_remove() undoes
 * trio_create(). */
void trio_create(struct trio *t, struct fixture *f, uint32_t limit_ms);
void trio_connect(struct trio *t, sqlock_registry *registries[SERVERS]);
struct trio *trio_open(struct fixture *f, uint32_t limit_ms);
void trio_remove(struct trio *t);
void trio_close(struct trio *t);

sqlock_quorum *quorum_obtain(struct trio *t, sqlock_registry *const *registries,
                             bool all);

/* Return the result; the leases are longer than any test. */
int quorum_acquire(struct trio *t, sqlock_quorum *quorum, int64_t wait_ms,
                   int *results);

/* Acquire until each registry has the lock: one that is slow does not count. */
void quorum_acquire_each(struct trio *t, sqlock_quorum *quorum,
                         const sqlock_acquire_options *options);

/* Release and drop. */
void quorum_end(struct trio *t, sqlock_quorum *quorum);

/* Take the lock of one registry only, as another contender may. */
sqlock_lock *trio_rival(struct trio *t, unsigned i);

/* Open the first registry of a contender again, so that what it acquires is
 * counted: a quorum may give it back before the test has looked. */
void trio_count_grants(struct trio *t, atomic_int *grants);

/* Assert that nobody has the lock of one registry, or only until a release has
 * been answered there, for which that of the quorum does not wait. */
void trio_assert_free(struct trio *t, unsigned i);

/* End the lease in one registry, as an operator does. */
void trio_break(struct trio *t, unsigned i);

/* The losses that on_lost was told, and what a release in it has returned. */
struct told {
    sqlock_quorum *quorum;
    atomic_int times;
    atomic_int code;
    atomic_int refused;
};

/* Options with an on_lost that notes what it is told. */
sqlock_acquire_options watched(struct told *told);

#endif
