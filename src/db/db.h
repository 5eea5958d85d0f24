/*
 * db.h - run statements on the database, one per call
 *
 * The rooms above db/ run their statements by these functions.  A single
 * statement is tried again only here.
 */
#ifndef LK_DB_H
#define LK_DB_H

#include "base/stats.h"
#include "base/watchdog.h"
#include "db/epoch.h"
#include "db/group.h"
#include "db/ids.h"
#include "db/known.h"
#include "db/outage.h"
#include "db/pool.h"
#include "db/statement.h"
#include "db/table.h"
#include "db/driver.h"

struct lk_db {
    const sqlock_driver *driver;
    struct lk_url url;
    struct lk_watchdog dog;
    struct lk_epoch epoch;
    struct lk_outage outage; /* shared by all pools */
    struct lk_stats stats;
    struct lk_pool pool;
    /* one connection, for the renewer alone (F35), or for all writes of a
     * database with one writer */
    struct lk_pool reserved;
    /* half the size of `pool`, for sessions that hear bells: the server lets
     * their statements wait for an hour */
    struct lk_pool waiting;
    struct lk_crew group; /* group.h */
    struct lk_ids ids;    /* of the library's statements about other tables */
    struct lk_ids texts;  /* of the application's statements */
    struct lk_known_list known; /* of adopted connections */
};

/* Find the driver, check the URL, and initialize the struct, without connecting
 * yet.  `url` and `options` are copied.  Return 0, SQLOCK_ENOMEM,
 * SQLOCK_ERESOURCE, or a failure of lk_driver_find() or of the driver's
 * functions for URLs. */
int lk_db_init(struct lk_db *db, const char *url,
               const struct lk_pool_options *options, sqlock_error *err);
/* As lk_db_init(), for statements that create tables.  Connecting may take
 * connect_timeout_ms, and a statement may wait as long for other sessions.
 * may_create as in sqlock_connect. */
int lk_db_init_for_schema(struct lk_db *db, const char *url,
                          uint32_t connect_timeout_ms, bool may_create,
                          sqlock_error *err);
/* Return the deadline of a statement that creates tables and is sent now. */
int64_t lk_db_schema_deadline(const struct lk_db *db);
/* Close the connections and free the struct's memory.  May be called after a
 * failed lk_db_init(), and more than once. */
void lk_db_clear(struct lk_db *db);

/* The longest pause before a retry.  With less time left than this, there may
 * be no retry. */
#define LK_DB_PAUSE_NS INT64_C(50000000)

/* Give a connection back to its pool, or discard it, after a statement or a
 * transaction that ended with rc.  On a standby, discard the idle connections,
 * too: a session stays on its server, even if the address leads to another one
 * by now. */
void lk_db_finish(struct lk_db *db, struct lk_connection *connection, int rc);

/* Discard the idle connections, whose server may be a standby now. */
void lk_db_leave_node(struct lk_db *db);

/* One run of a statement. */
struct lk_run {
    const struct lk_statement *statement;
    const struct lk_arguments *arguments;
    /* CLOCK_MONOTONIC, for all attempts; lk_db_run() extends it by the time
     * that opening a connection takes */
    int64_t deadline_ns;
    /* may be sent again after EUNCERTAIN: the statement only reads, or may be
     * carried out twice */
    bool is_repeatable;
    bool is_reserved; /* use the renewer's connection */
    /* Of a release: get a connection before all calls that have none, and wait
     * for one in use until then, CLOCK_MONOTONIC, if that is later than the
     * deadline, which is extended by the wait.  0: neither. */
    int64_t patient_until_ns;
    bool is_write; /* the statement writes: without an answer, it is in doubt */
    bool grants;   /* the statement may grant a lease */
    /* out: it was not sent, because the server grants nothing now; the result
     * is EBUSY */
    bool is_held_back;
    /* retry after EBUSY, while there is time for another wait for the row
     * lock */
    bool waits_for_row;
    /* for lk_store_run(): CLOCK_MONOTONIC, when the statement was requested;
     * 0: now */
    int64_t asked_ns;
    /* do not retry EUNREACHABLE: a database that cannot be reached at first
     * probably never can */
    bool is_first;
    /* out: CLOCK_BOOTTIME before the last attempt was sent */
    int64_t sent_boot_ns;
    /* out: an attempt got no answer, and may still reach the database, even
     * after later attempts */
    bool was_uncertain;
    /* out: the last attempt timed out, and was not carried out; the result is
     * EBUSY, as for a lock that somebody has */
    bool has_timed_out;
};

/*
 * Run a statement.  Opening a connection extends the deadline of the run, by
 * connect_timeout_ms at most.
 *
 * Until the deadline these are retried, after pauses with jitter: ERETRY,
 * EUNREACHABLE and ERESOURCE; EBUSY, if waits_for_row is set or the statement
 * only reads; EUNCERTAIN, if is_repeatable is set.  Otherwise a statement that
 * may have been sent is never sent again.  A broken connection is discarded.
 *
 * Return 0 or a result of the driver, of which lk_db_not_applied() replaces
 * ECANCELED and ERETRY; ERESOURCE also if no connection was free; EUNREACHABLE
 * instead of EUNCERTAIN for a statement that only reads.  `err` may be NULL.
 * `result` is filled on success only; the caller clears it in any case.
 */
int lk_db_run(struct lk_db *db, struct lk_run *run, sqlock_result *result,
              sqlock_error *err);

/* Run DESCRIBE, HAS_AGE_INDEX or SERVER, which each layout has alike, for that
 * table (NULL: none).  Return as lk_db_run(); ENOTSUP if the database has no
 * such statement. */
int lk_db_query_catalogue(struct lk_db *db, sqlock_statement_kind kind,
                          const struct lk_table *table, int64_t deadline_ns,
                          sqlock_result *rows, sqlock_error *err);

/* Translate the result of a statement that is not retried.  ECANCELED (a time
 * limit, the server's or ours) and ERETRY (a conflict in every attempt) become
 * EBUSY, because a registry's calls return ECANCELED only if the application
 * has cancelled them; other results are returned as they are. */
int lk_db_not_applied(int rc, sqlock_error *err);

/* Translate the result of a statement that only reads: as lk_db_not_applied(),
 * and EUNCERTAIN becomes EUNREACHABLE, since nothing can be in doubt. */
int lk_db_of_reading(int rc, sqlock_error *err);

/* Run a statement once on the caller's connection, which stays the caller's,
 * even if it is broken.  Return as lk_db_not_applied(). */
int lk_db_run_on(struct lk_db *db, struct lk_connection *connection,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Run `text`, a statement without parameters that only reads, once on the
 * caller's connection.  Return as lk_db_of_reading(). */
int lk_db_ask(struct lk_db *db, struct lk_connection *connection,
              const char *text, int64_t deadline_ns, sqlock_result *result,
              sqlock_error *err);

/* Take a connection of `pool`, which is db->pool or db->reserved, as
 * lk_pool_take_as() with a wish to wait and to open one.  Where the pool has
 * none idle and cannot open one, take one that the other of the two has open,
 * or that is given back in time.
 * If the database is out of reach, only renewals are sent on another
 * connection, which then may be dead, too.  Give it back to its own pool
 * (lk_connection.pool). */
int lk_db_take(struct lk_db *db, struct lk_pool *pool,
               const struct lk_wish *wish, struct lk_connection **out,
               sqlock_error *err);

/* Return whether the connection has refused a statement by rc, which is no
 * conflict, and has carried out no write before: another one may do it. */
bool lk_db_is_unproven(const struct lk_connection *connection, int rc);

/* Where a connection that was taken by the wish is unproven by rc, discard it
 * and take one of either pool that has carried out a write, if there is one in
 * time.  Return whether there was. */
bool lk_db_replace(struct lk_db *db, const struct lk_wish *wish, int rc,
                   struct lk_connection **connection);

/* Run the statements of a script, each of which ends with ";\n", one after
 * another on one connection until one fails.  Lines that begin with "--" are
 * skipped.  Return as lk_db_run_on() or lk_pool_take(), or SQLOCK_ENOMEM. */
int lk_db_run_script(struct lk_db *db, const char *script, int64_t deadline_ns,
                     sqlock_error *err);

#endif
