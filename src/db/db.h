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
#include "sqlock_driver.h"

struct lk_db {
    const sqlock_driver *driver;
    struct lk_watchdog dog;
    struct lk_epoch epoch;
    struct lk_pool pool;
    struct lk_pool reserved; /* one connection, for the keeper alone (F35); all
                                writes, where there is one writer */
    struct lk_pool
        waiting; /* half as many as in the pool, to wait at doorbells:
                               what blocks there has no other limit of time */
    struct lk_group group;
    struct lk_ids ids;
};

/* Finds the driver and checks the URL; connects to nothing yet. */
int lk_db_init(struct lk_db *db, const char *url,
               const struct lk_pool_options *options, sqlock_error *err);
void lk_db_clear(struct lk_db *db);

/* One run of a statement. */
struct lk_run {
    const struct lk_statement *statement;
    const struct lk_arguments *arguments;
    int64_t deadline_ns; /* CLOCK_MONOTONIC, of the whole */
    bool is_repeatable;  /* may be sent again after EUNCERTAIN: it reads, or
                             does the same twice */
    bool is_reserved;    /* on the keeper's connection */
    uint64_t session; /* in and out: the number of the pool's connection that is
                         preferred, or was used; 0 */
    bool is_session_wanted; /* ... and will be preferred soon, by another run */
    bool is_write;
    bool is_first;        /* a database that cannot be reached now probably
                             never can: EUNREACHABLE is not tried again */
    int64_t sent_boot_ns; /* out: CLOCK_BOOTTIME before it was last sent */
    bool was_uncertain;   /* out: a try got no answer: it may reach the
                             database later than those after it */
};

/*
 * ERETRY, EUNREACHABLE and ERESOURCE are tried again, with jitter, until the deadline; so
 * is EUNCERTAIN where that is allowed.  A statement that may have been sent is
 * never sent again otherwise.  A broken connection does not go back to the
 * pool.
 *
 * The driver's results, and ERESOURCE.  `result` is filled on success only, to
 * be cleared in any case.
 */
int lk_db_run(struct lk_db *db, struct lk_run *run, sqlock_result *result,
              sqlock_error *err);

/* Once, on a connection that the caller has and keeps, also when it is of no use
 * any more. */
int lk_db_run_on(struct lk_db *db, struct lk_connection *connection,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Run statements that end with ";\n", one by one, on one connection; lines that
 * begin with "--" are left out. */
int lk_db_run_script(struct lk_db *db, const char *script, int64_t deadline_ns,
                     sqlock_error *err);

#endif
