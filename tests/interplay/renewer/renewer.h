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

/* Of leases that are to run out. */
#define TTL_MS (600 * SLOWNESS)

/* Of leases that are to stay, however busy the machine is; and how often they
 * are renewed, so that no test waits long for it. */
#define RENEWED_MS (4000 * SLOWNESS)
#define PERIOD_MS (150 * SLOWNESS)

/* How late a loss may be told on a machine that others use, too. */
#define LATE_MAX_NS INT64_C(2000000000)

extern const struct topic topic_renew;
extern const struct topic topic_told;
extern const struct topic topic_outage;
extern const struct topic topic_stranger;
extern const struct topic topic_ending;
extern const struct topic topic_flight;
extern const struct topic topic_steal;
extern const struct topic topic_clock;
extern const struct topic topic_many;
extern const struct topic topic_order;
extern const struct topic topic_crowd;
extern const struct topic topic_pause;
extern const struct topic topic_late;
extern const struct topic topic_group;
extern const struct topic topic_overlap;
extern const struct topic topic_margin;
extern const struct topic topic_doubt;
extern const struct topic topic_absent;
extern const struct topic topic_crosswise;
extern const struct topic topic_writer;
extern const struct topic topic_threads;
extern const struct topic topic_alike;
extern const struct topic topic_handed;
extern const struct topic topic_release;

/* ------------------------------------------------------------------ renewal */

/* The options of the fixture's registries, with that period; and another
 * registry with these options, also with a tap. */
sqlock_options renewer_options(const struct fixture *fixture);
sqlock_registry *renewer_registry(struct fixture *fixture);
sqlock_registry *renewer_tapped(struct fixture *fixture);

/* Another registry with a tap, whose statements have that time. */
sqlock_registry *registry_within(struct fixture *fixture,
                                 uint32_t statement_ms);

/* Wait until the row of that name is free. */
void expect_freed(struct fixture *fixture, const char *name);

/* Body of a worker: take the lock that is its context, and give it back. */
struct worker;
int take_and_give(struct worker *worker);

/* Wait for a call; it must be with that code. */
void await_told(struct told *told, int code);

/* Tell of its loss (told may be NULL), and renew it, too. */
sqlock_acquire_options told_options(uint32_t ttl_ms, struct told *told);
sqlock_acquire_options renewed_options(uint32_t ttl_ms, struct told *told);

/* Take it at once and renew it; a failure fails the test. */
#define take_renewed(lock, ttl_ms, told)                                       \
    take_renewed_at((lock), (ttl_ms), (told), __FILE__, __LINE__)
void take_renewed_at(sqlock_lock *lock, uint32_t ttl_ms, struct told *told,
                     const char *file, int line);

/* When its holder stops believing, whoever asks. */
int64_t lock_deadline(sqlock_lock *lock);

/* Ask until its deadline has moved so many times; it must stay held. */
void await_renewals(sqlock_lock *lock, unsigned count);

/* Make a renewal due now, as if the last one were a quarter of the TTL ago, and
 * wake the renewer: it believes less for a moment, never too much.  make_due()
 * returns the deadline until then, renew_now() waits until it has moved. */
int64_t make_due(sqlock_lock *lock);
void renew_now(sqlock_lock *lock);

/* Whether no renewal of it is under way. */
bool is_alone(sqlock_lock *lock);

/* Whether poll(2) finds it readable. */
bool is_readable(int fd);

/* Lock number i of a test, by the registry. */
sqlock_lock *nth_lock(struct fixture *fixture, sqlock_registry *registry,
                      size_t i);
const char *nth_name(const struct fixture *fixture, char out[96], size_t i);

/* --------------------------------------------------------------- the census */

/* Counts the renewals of many leases that a tapped registry sends; by the
 * tap's hooks. */
struct census {
    const char *renewal; /* the statement's text */
    const char *key;     /* NULL: of any lock */
    atomic_uint renewals;
    atomic_uint with_key;
    atomic_uint least; /* leases in one of them */
    atomic_uint most;
};
void census_begin(struct census *census, sqlock_registry *registry);

/* The statement's text as the registry sends it. */
const char *census_text(sqlock_registry *registry, sqlock_statement_kind kind);

/* Counts one statement that a tapped registry sends, by the tap's hooks. */
struct spy {
    const char *text;
    atomic_uint times;
};
void spy_begin(struct spy *spy, sqlock_registry *registry,
               sqlock_statement_kind kind);

/* Holds one statement of a tapped registry up, by the tap's hooks: the next one
 * of its kind, until it may go. */
struct barrier {
    const char *text;
    bool is_after; /* on its way back from the database, or on its way there */
    atomic_bool is_armed;
    atomic_bool is_up;
    atomic_bool may_go;
    atomic_bool has_passed; /* one was answered after that */
};
void barrier_begin(struct barrier *barrier, sqlock_registry *registry,
                   sqlock_statement_kind kind, bool is_after);

/* The leases in a statement's array, and the array itself (NULL: none). */
struct tap_event;
const char *census_array(const struct tap_event *event, unsigned *leases);

/* ------------------------------------------------- a process that is paused */

int pause_main(char **argv);

#endif
