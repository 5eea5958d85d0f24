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

extern const struct topic topic_renew;
extern const struct topic topic_told;
extern const struct topic topic_outage;
extern const struct topic topic_stranger;
extern const struct topic topic_ending;
extern const struct topic topic_flight;
extern const struct topic topic_clock;
extern const struct topic topic_many;
extern const struct topic topic_crowd;
extern const struct topic topic_late;
extern const struct topic topic_group;
extern const struct topic topic_overlap;
extern const struct topic topic_margin;
extern const struct topic topic_doubt;
extern const struct topic topic_crosswise;
extern const struct topic topic_writer;
extern const struct topic topic_threads;
extern const struct topic topic_handed;
extern const struct topic topic_release;
extern const struct topic topic_full;
extern const struct topic topic_counted;
extern const struct topic topic_callback;

/* ------------------------------------------------------------------ renewal */

/* Return the options of the fixture's registries, with PERIOD_MS; or open
 * another registry with these options, or one through the tap (tap.h).
 * registry_end() closes it. */
sqlock_options renewer_options(const struct fixture *fixture);
sqlock_registry *renewer_registry(struct fixture *fixture);
sqlock_registry *renewer_tapped(struct fixture *fixture);

/* Open another registry through the tap, with that statement timeout. */
sqlock_registry *registry_within(struct fixture *fixture,
                                 uint32_t statement_ms);

/* Wait until the row of that name is free; otherwise fail the test. */
void expect_freed(struct fixture *fixture, const char *name);

/* Body of a worker: wait for the lock that is its context, and release it. */
struct worker;
int take_and_give(struct worker *worker);

/* Wait for a call of on_lost; fail the test if none comes, or if its code is
 * not that one. */
void await_told(struct told *told, int code);

/* Return options of an acquisition whose loss is noted in *told (NULL:
 * nowhere); renewed_options() also sets auto_renew. */
sqlock_acquire_options told_options(uint32_t ttl_ms, struct told *told);
sqlock_acquire_options renewed_options(uint32_t ttl_ms, struct told *told);

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

/* Make a renewal of the lock due: move its deadline back by a quarter of the
 * TTL, as if the last renewal were that much older, and wake the renewer.
 * Until the renewal, the deadline is too early, never too late.  make_due()
 * returns that deadline; renew_now() waits until the deadline has moved. */
int64_t make_due(sqlock_lock *lock);
void renew_now(sqlock_lock *lock);

/* Return whether no renewal of the lock is under way. */
bool is_alone(sqlock_lock *lock);

/* Return whether poll(2) finds the descriptor readable. */
bool is_readable(int fd);

/* Obtain lock number i of a test from the registry; or write its name to `out`,
 * and return `out`. */
sqlock_lock *nth_lock(struct fixture *fixture, sqlock_registry *registry,
                      size_t i);
const char *nth_name(const struct fixture *fixture, char out[96], size_t i);

/* --------------------------------------------------------------- the census */

/* Counts of the statements by which a tapped registry renews many leases.
 * census_begin() sets them to zero, resets the tap and sets its hooks. */
struct census {
    const char *renewal; /* text of the statement */
    const char *key;     /* set by the test; NULL: with_key stays 0 */
    atomic_uint renewals;
    atomic_uint with_key; /* renewals that include the lock of that key */
    atomic_uint least;    /* smallest number of leases in a renewal */
    atomic_uint most;     /* largest number of leases in a renewal */
};
void census_begin(struct census *census, sqlock_registry *registry);

/* Return the text of that statement: the very string that the registry passes
 * to its driver, so that hooks may compare pointers. */
const char *census_text(sqlock_registry *registry, sqlock_statement_kind kind);

/* Count of one kind of statement that a tapped registry sends.  spy_begin()
 * sets it to zero, and sets the tap's hooks. */
struct spy {
    const char *text;
    atomic_uint times;
};
void spy_begin(struct spy *spy, sqlock_registry *registry,
               sqlock_statement_kind kind);

/* Holds up the next statement of one kind that a tapped registry sends, until
 * the test sets may_go.  barrier_begin() sets the tap's hooks. */
struct barrier {
    const char *text;
    bool is_after; /* holds up the answer, not the statement */
    atomic_bool is_armed;
    atomic_bool is_up; /* a statement is, or was, held up */
    atomic_bool may_go;
    atomic_bool has_passed; /* such a statement was answered after may_go */
};
void barrier_begin(struct barrier *barrier, sqlock_registry *registry,
                   sqlock_statement_kind kind, bool is_after);

/* Return the array of leases among the statement's parameters (NULL: none), and
 * in *leases their number. */
struct tap_event;
const char *census_array(const struct tap_event *event, unsigned *leases);

#endif
