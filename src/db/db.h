/*
 * db.h - the way to the database for all code above: one call runs one
 * statement, and retries are made only here
 */
#ifndef LK_DB_H
#define LK_DB_H

#include "db/group.h"
#include "db/ids.h"
#include "db/pool.h"
#include "db/statement.h"
#include "db/table.h"
#include "db/watchdog.h"
#include "sqlock/driver.h"

struct lk_db {
    const sqlock_driver *driver;
    struct lk_watchdog dog;
    struct lk_epoch epoch;
    struct lk_outage outage; /* shared by all pools */
    struct lk_stats stats;
    struct lk_pool pool;
    /* one connection, for the renewer alone (F35), or for all writes of a
     * database with one writer */
    struct lk_pool reserved;
    /* half the size of `pool`, for waiting in queues: there statements have no
     * other time limit */
    struct lk_pool waiting;
    struct lk_group group;
    struct lk_ids ids;
};

/* Find the driver and check the URL.  Connects to nothing yet. */
int lk_db_init(struct lk_db *db, const char *url,
               const struct lk_pool_options *options, sqlock_error *err);
/* Init for statements that create tables.  They may wait for other sessions as
 * long as for a connection. */
int lk_db_init_for_schema(struct lk_db *db, const char *url,
                          uint32_t connect_timeout_ms, bool may_create,
                          sqlock_error *err);
/* Return the deadline of such statements that are sent now. */
int64_t lk_db_schema_deadline(const struct lk_db *db);
/* Also after a failed lk_db_init(), and again. */
void lk_db_clear(struct lk_db *db);

/* The longest pause before a retry: with less time left, there is none. */
#define LK_DB_PAUSE_NS INT64_C(50000000)

/* One run of a statement. */
struct lk_run {
    const struct lk_statement *statement;
    const struct lk_arguments *arguments;
    /* CLOCK_MONOTONIC, of the whole run, except that opening a connection
     * extends it */
    int64_t deadline_ns;
    /* may be sent again after EUNCERTAIN: it only reads, or may be carried out
     * twice */
    bool is_repeatable;
    bool is_reserved; /* use the renewer's connection */
    /* in and out: number of the pool's connection that is preferred, or was
     * used; 0: any */
    uint64_t session;
    /* ... and will be preferred by another run soon */
    bool is_session_wanted;
    bool is_write; /* in doubt if it gets no answer */
    /* retry after EBUSY, while there is time for another wait for the row's
     * lock */
    bool waits_for_row;
    /* when the caller began to wait, for statements of a registry; 0: now */
    int64_t asked_ns;
    /* do not retry EUNREACHABLE: a database that cannot be reached at first
     * probably never can */
    bool is_first;
    /* out: CLOCK_BOOTTIME before it was sent last */
    int64_t sent_boot_ns;
    /* out: an attempt got no answer; it may reach the database after later
     * ones */
    bool was_uncertain;
};

/*
 * Run a statement.  Opening a connection has connect_timeout_ms of its own,
 * once, so the run may end that much after its deadline.
 *
 * ERETRY, EUNREACHABLE and ERESOURCE are retried with jitter until the
 * deadline; so is EBUSY with waits_for_row or for a statement that only reads,
 * and EUNCERTAIN with is_repeatable.  Otherwise a statement that may have been
 * sent is never sent again.  A broken connection does not go back to the pool.
 *
 * Results as the driver's, and ERESOURCE, except ECANCELED and ERETRY: see
 * lk_db_not_applied().  A statement that only reads returns EUNREACHABLE
 * instead of EUNCERTAIN.  `result` is filled on success only; clear it in any
 * case.
 */
int lk_db_run(struct lk_db *db, struct lk_run *run, sqlock_result *result,
              sqlock_error *err);

/* Render a template about a table and run it, for statements that are sent
 * seldom.  `run` has no statement yet.  Results also as lk_statement_render().
 */
int lk_db_run_template(struct lk_db *db, const sqlock_template *template,
                       const struct lk_table *table, struct lk_run *run,
                       sqlock_result *result, sqlock_error *err);

/* Run a query of the catalogue about a table, by lk_db_run_template(). */
int lk_db_query_catalogue(struct lk_db *db, const sqlock_template *template,
                          const struct lk_table *table, int64_t deadline_ns,
                          sqlock_result *rows, sqlock_error *err);

/* Translate the result of a statement that was not applied and is not retried.
 * ECANCELED (a time limit, the server's or ours) and ERETRY (a conflict in
 * every attempt) become EBUSY: a registry's calls return ECANCELED only if the
 * caller has cancelled. */
int lk_db_not_applied(int rc, sqlock_error *err);

/* Translate the result of a statement that only reads: as above, and EUNCERTAIN
 * becomes EUNREACHABLE, since nothing can be in doubt. */
int lk_db_of_reading(int rc, sqlock_error *err);

/* Run a statement once, on a connection that the caller keeps even if it is
 * broken. */
int lk_db_run_on(struct lk_db *db, struct lk_connection *connection,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Run a text without parameters that only reads, on the caller's connection. */
int lk_db_ask(struct lk_db *db, struct lk_connection *connection,
              const char *text, int64_t deadline_ns, sqlock_result *result,
              sqlock_error *err);

/* Run statements that end with ";\n" in turn on one connection; lines that
 * begin with "--" are skipped.  Results as lk_db_run_on(). */
int lk_db_run_script(struct lk_db *db, const char *script, int64_t deadline_ns,
                     sqlock_error *err);

#endif
