/*
 * db.h - how everything above reaches a database: one call that runs one
 * statement, and the only place where one is tried again
 */
#ifndef LK_DB_H
#define LK_DB_H

#include "db/group.h"
#include "db/ids.h"
#include "db/pool.h"
#include "db/statement.h"
#include "db/watchdog.h"
#include "sqlock/driver.h"

struct lk_db {
    const sqlock_driver *driver;
    struct lk_watchdog dog;
    struct lk_epoch epoch;
    struct lk_outage outage; /* of all pools */
    struct lk_stats stats;
    struct lk_pool pool;
    struct lk_pool reserved; /* one connection, for the renewer alone (F35); all
                                writes, where there is one writer */
    struct lk_pool waiting;  /* half as many as in the pool, to wait in queues:
                               what blocks there has no other limit of time */
    struct lk_group group;
    struct lk_ids ids;
};

/* Find the driver and check the URL.  Connects to nothing yet. */
int lk_db_init(struct lk_db *db, const char *url,
               const struct lk_pool_options *options, sqlock_error *err);
void lk_db_clear(struct lk_db *db);

/* The longest pause before a statement is tried again: with less time left it
 * is not. */
#define LK_DB_PAUSE_NS INT64_C(50000000)

/* One run of a statement. */
struct lk_run {
    const struct lk_statement *statement;
    const struct lk_arguments *arguments;
    int64_t deadline_ns; /* CLOCK_MONOTONIC, of the whole but for opening a
                            connection, by which it is put off */
    bool is_repeatable;  /* may be sent again after EUNCERTAIN: it reads, or
                             does the same twice */
    bool is_reserved;    /* on the renewer's connection */
    uint64_t session; /* in and out: the number of the pool's connection that is
                         preferred, or was used; 0 */
    bool is_session_wanted; /* ... and will be preferred soon, by another run */
    bool is_write;          /* it is in doubt when it gets no answer */
    bool waits_for_row;     /* EBUSY is tried again, while there is time for
                               another wait for the row's lock */
    int64_t asked_ns;       /* of the registry's statements: since when its
                               outcome is waited for; 0: from now on */
    bool is_first;          /* a database that cannot be reached now probably
                             never can: EUNREACHABLE is not tried again */
    int64_t sent_boot_ns;   /* out: CLOCK_BOOTTIME before it was last sent */
    bool was_uncertain;     /* out: a try got no answer: it may reach the
                             database later than those after it */
};

/*
 * Opening a connection, where that is needed, has connect_timeout_ms of its
 * own, once: a run ends that much behind its deadline at the latest.
 *
 * A read that is EBUSY has met a file, or a table, that is locked for a moment:
 * it is tried again likewise.
 *
 * ERETRY, EUNREACHABLE and ERESOURCE (and EBUSY, see above) are tried again,
 * with jitter, until the deadline; so is EUNCERTAIN where that is allowed.  A
 * statement that may have been sent is never sent again otherwise.  A broken
 * connection does not go back to the pool.
 *
 * The driver's results, and ERESOURCE, but for ECANCELED and ERETRY: see
 * lk_db_not_applied().  A statement that only reads is EUNREACHABLE in place of
 * EUNCERTAIN.  `result` is filled on success only, to be cleared in any case.
 */
int lk_db_run(struct lk_db *db, struct lk_run *run, sqlock_result *result,
              sqlock_error *err);

/* The code for a statement that was not applied and is not tried again.
 * ECANCELED is a limit of time, of the server or of ours, that ended it, and
 * ERETRY a conflict that came again each time: both are EBUSY here.  The calls
 * of the registry tell ECANCELED only where the caller has cancelled. */
int lk_db_not_applied(int rc, sqlock_error *err);

/* The code for what only reads and is not tried again: as above, and, since
 * nothing of it can be in doubt, EUNREACHABLE in place of EUNCERTAIN. */
int lk_db_of_reading(int rc, sqlock_error *err);

/* Run once, on a connection that the caller has and keeps, also when it is
 * of no use any more. */
int lk_db_run_on(struct lk_db *db, struct lk_connection *connection,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Run a text without parameters that only reads, on a connection as above. */
int lk_db_ask(struct lk_db *db, struct lk_connection *connection,
              const char *text, int64_t deadline_ns, sqlock_result *result,
              sqlock_error *err);

/* Run statements that end with ";\n", one by one, on one connection; lines that
 * begin with "--" are left out. */
int lk_db_run_script(struct lk_db *db, const char *script, int64_t deadline_ns,
                     sqlock_error *err);

#endif
