/*
 * db.c - run statements: keep deadlines, retry, and keep or discard connections
 *
 * The caller decides what a lost answer means for a lock.
 */
#include "db/db.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"
#include "base/thread.h"
#include "db/drivers.h"

static const struct lk_retry_policy policy = {
    .first_us = 1000,
    .longest_us = LK_DB_PAUSE_NS / LK_NS_PER_US,
    .last = LK_RETRY_WITHIN,
};

static void init_pools(struct lk_db *db, const struct lk_pool_options *options)
{
    struct lk_pool_options reserved = *options;
    struct lk_pool_options waiting = *options;

    reserved.size = 1;
    if (options->renewal_connect_ms != 0)
        reserved.connect_timeout_ms = options->renewal_connect_ms;
    waiting.size = options->size > 1 ? options->size / 2 : 1;
    lk_pool_init(&db->pool, db, options);
    lk_pool_init(&db->reserved, db, &reserved);
    lk_pool_init(&db->waiting, db, &waiting);
}

int lk_db_init(struct lk_db *db, const char *url,
               const struct lk_pool_options *options, sqlock_error *err)
{
    int rc;

    memset(db, 0, sizeof *db);
    rc = lk_url_parse(&db->url, url, err);
    if (rc == 0)
        rc = lk_driver_of(&db->driver, &db->url, err);
    if (rc < 0) {
        lk_url_clear(&db->url);
        return rc;
    }
    lk_watchdog_init(&db->dog);
    lk_epoch_init(&db->epoch);
    lk_known_init(&db->known);
    lk_outage_init(&db->outage);
    lk_crew_init(&db->group, 1, 0);
    lk_ids_init(&db->ids, LK_IDS_FIRST, LK_IDS_LIBRARY);
    lk_ids_init(&db->texts, LK_IDS_FIRST + LK_IDS_LIBRARY, LK_IDS_APPLICATION);
    init_pools(db, options);
    rc = db->driver->check_url(&db->url, err);
    if (rc < 0)
        lk_db_clear(db);
    return rc;
}

int lk_db_init_for_schema(struct lk_db *db, const char *url,
                          uint32_t connect_timeout_ms, bool may_create,
                          sqlock_error *err)
{
    const struct lk_pool_options options = {
        .size = 1,
        .may_create = may_create,
        .connect_timeout_ms = connect_timeout_ms,
        .statement_timeout_ms = connect_timeout_ms,
        .lock_timeout_ms = connect_timeout_ms,
    };

    return lk_db_init(db, url, &options, err);
}

int64_t lk_db_schema_deadline(const struct lk_db *db)
{
    return lk_after_ms(sqlock_monotonic_ns(),
                       2 * (int64_t)db->pool.options.connect_timeout_ms);
}

void lk_db_clear(struct lk_db *db)
{
    if (db->driver == NULL)
        return;
    lk_pool_clear(&db->waiting);
    lk_pool_clear(&db->reserved);
    lk_pool_clear(&db->pool);
    lk_crew_clear(&db->group);
    lk_ids_clear(&db->texts);
    lk_ids_clear(&db->ids);
    lk_outage_clear(&db->outage);
    lk_epoch_clear(&db->epoch);
    lk_known_clear(&db->known);
    lk_watchdog_stop(&db->dog);
    lk_url_clear(&db->url);
    db->driver = NULL;
}

static bool has_one_writer(const struct lk_db *db)
{
    return db->driver->has_one_writer;
}

/* Return whether a result means that the session is on a standby. */
static bool is_wrong_node(const struct lk_db *db, int rc)
{
    return rc == SQLOCK_EREADONLY && !has_one_writer(db);
}

void lk_db_leave_node(struct lk_db *db)
{
    lk_pool_drain(&db->pool);
    lk_pool_drain(&db->reserved);
    lk_pool_drain(&db->waiting);
}

void lk_db_finish(struct lk_db *db, struct lk_connection *connection, int rc)
{
    struct lk_pool *pool = connection->pool;

    if (is_wrong_node(db, rc) || lk_is_outage(rc)) {
        lk_count(&db->stats, LK_COUNT_BROKEN);
        lk_pool_discard(pool, connection);
    } else if (rc < 0) {
        lk_pool_return(pool, connection);
    } else {
        lk_pool_give(pool, connection);
    }
    if (is_wrong_node(db, rc))
        lk_db_leave_node(db);
}

/* Close the idle connections that are dead, after an outage.  The connections
 * of a process to a SQLite file share its log, so that one that has the log of
 * a file which was replaced keeps the others from opening the new one. */
static void sweep(struct lk_db *db)
{
    lk_pool_sweep(&db->pool);
    lk_pool_sweep(&db->reserved);
    lk_pool_sweep(&db->waiting);
}

static bool goes_in_group(const struct lk_db *db, const struct lk_run *run)
{
    return run->is_write && has_one_writer(db);
}

static int run_in_group(struct lk_db *db, struct lk_run *run,
                        const sqlock_value *values, sqlock_result *result,
                        sqlock_error *err)
{
    struct lk_request request = {
        .statement = &run->statement->sent,
        .values = values,
        .count = run->statement->count,
        .deadline_ns = run->deadline_ns,
        .result = result,
        .err = err,
        .sent_boot_ns = run->sent_boot_ns, /* until a group has it */
    };
    int64_t began_ns = lk_boottime_ns();
    int rc = lk_group_run(&db->group, &db->reserved, &request);

    if (lk_is_outage(rc))
        sweep(db);
    run->sent_boot_ns = request.sent_boot_ns;
    lk_count_statement(&db->stats, rc, lk_boottime_ns() - began_ns);
    return rc;
}

/* Check that a statement may be sent that grants a lease: the server may have
 * forgotten some (lk_epoch.check). */
static int may_grant(struct lk_db *db, struct lk_connection *connection,
                     struct lk_run *run, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_epoch *epoch = &db->epoch;
    uint32_t changes = atomic_load(&epoch->changes);
    int64_t held_ns = lk_epoch_held_ns(epoch);
    int rc = 0;

    if (epoch->check == NULL || (connection->is_checked && held_ns == 0 &&
                                 connection->changes == changes))
        return 0;
    rc = epoch->check(epoch->context, connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    held_ns = lk_epoch_held_ns(epoch);
    run->is_held_back = held_ns > 0;
    return held_ns == 0 ? 0 : lk_epoch_error(epoch, SQLOCK_EBUSY, err);
}

static int send_on(struct lk_db *db, struct lk_connection *connection,
                   struct lk_run *run, const sqlock_value *values,
                   sqlock_result *result, sqlock_error *err)
{
    int64_t limit = lk_after_ms(sqlock_monotonic_ns(),
                                db->pool.options.statement_timeout_ms);
    int64_t deadline_ns = lk_sooner(limit, run->deadline_ns);
    int rc;

    run->sent_boot_ns = lk_boottime_ns();
    rc = run->grants ? may_grant(db, connection, run, deadline_ns, err) : 0;
    if (rc < 0)
        return rc;
    rc = db->driver->execute(connection->state, &run->statement->sent, values,
                             run->statement->count, deadline_ns, result, err);
    run->was_uncertain = run->was_uncertain || rc == SQLOCK_EUNCERTAIN;
    if (rc == 0 && run->is_write)
        atomic_store(&connection->has_written, true);
    lk_count_statement(&db->stats, rc, lk_boottime_ns() - run->sent_boot_ns);
    return rc;
}

/* The last result of a run that says why its time was used up: ERESOURCE,
 * ERETRY or EBUSY.  With little time left, the next attempt only ends with
 * EUNREACHABLE, which says less. */
struct refusal {
    int rc;       /* 0: there is none */
    bool is_wary; /* a new connection has failed: lk_wish.is_wary */
    sqlock_error err;
};

/* Return why nothing is sent on a connection that came after the deadline. */
static int too_late(const struct refusal *refusal,
                    const struct lk_connection *connection, sqlock_error *err)
{
    if (refusal->rc == 0 && connection->late_ns == 0)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "what was sent before the statement took the whole "
                        "time: the database is slow (raise "
                        "statement_timeout_ms), or does not answer");
    if (refusal->rc == 0)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "connecting to the database took the whole time of the "
                        "statement: raise connect_timeout_ms, or check the "
                        "network");
    *err = refusal->err;
    return refusal->rc;
}

/* Return until when the run waits for a connection in use. */
static int64_t waits_until(const struct lk_run *run)
{
    return run->patient_until_ns > run->deadline_ns ? run->patient_until_ns
                                                    : run->deadline_ns;
}

/* Extend the run's deadline by how late the connection came.  Return whether
 * there is time left. */
static bool is_in_time(struct lk_run *run,
                       const struct lk_connection *connection,
                       int64_t latest_ns)
{
    run->deadline_ns = lk_sooner(
        lk_after_ns(run->deadline_ns, connection->late_ns), latest_ns);
    return sqlock_monotonic_ns() < run->deadline_ns;
}

static int run_once(struct lk_db *db, struct lk_run *run, int64_t latest_ns,
                    struct refusal *refusal, sqlock_result *result,
                    sqlock_error *err)
{
    sqlock_value values[LK_PLACES_MAX];
    struct lk_pool *pool = run->is_reserved ? &db->reserved : &db->pool;
    struct lk_connection *connection = NULL;
    struct lk_wish wish = {0};
    int rc;

    lk_statement_order(run->statement, run->arguments, values);
    if (goes_in_group(db, run))
        return run_in_group(db, run, values, result, err);
    wish.wait_until_ns = waits_until(run);
    wish.latest_ns = latest_ns;
    wish.is_urgent = run->patient_until_ns != 0;
    wish.is_wary = refusal->is_wary;
    wish.is_brief = !run->is_write;
    rc = lk_db_take(db, pool, &wish, &connection, err);
    if (lk_is_outage(rc) && has_one_writer(db))
        sweep(db);
    if (rc < 0)
        return rc;
    if (!is_in_time(run, connection, latest_ns)) {
        rc = too_late(refusal, connection, err);
        lk_pool_give(connection->pool, connection);
        return rc;
    }
    rc = send_on(db, connection, run, values, result, err);
    refusal->is_wary = rc < 0 && !atomic_load(&connection->has_written);
    if (lk_db_replace(db, &wish, rc, &connection)) {
        if (!is_in_time(run, connection, latest_ns)) {
            lk_pool_give(connection->pool, connection);
            return rc; /* of the connection that has been replaced */
        }
        rc = send_on(db, connection, run, values, result, err);
    }
    lk_db_finish(db, connection, rc);
    return rc;
}

int lk_db_query_catalogue(struct lk_db *db, sqlock_statement_kind kind,
                          const struct lk_table *table, int64_t deadline_ns,
                          sqlock_result *rows, sqlock_error *err)
{
    static const struct lk_name none[] = {{NULL, NULL}};
    struct lk_arguments arguments = {0};
    struct lk_statement statement;
    struct lk_run run = {
        .statement = &statement,
        .arguments = &arguments,
        .deadline_ns = deadline_ns,
        .is_repeatable = true,
        .is_first = true,
    };
    int rc = lk_statement_of_kind(&statement, db->driver->dialect,
                                  SQLOCK_LAYOUT_SQLOCK, kind, none, 0);

    if (rc < 0)
        return lk_error(err, rc, "%s", sqlock_strerror(rc));
    if (table != NULL)
        lk_table_arguments(table, &arguments);
    rc = lk_db_run(db, &run, rows, err);
    lk_statement_clear(&statement);
    return rc;
}

/* Tell of a statement that was ended.  Where the database has ended it, its own
 * words say why, which need not be a time limit. */
static int has_ended(sqlock_error *err)
{
    sqlock_error why;

    if (err == NULL || (err->native == 0 && err->sqlstate[0] == '\0'))
        return lk_error(err, SQLOCK_EBUSY,
                        "the statement timed out, and was not carried out: the "
                        "database is slow (raise statement_timeout_ms), or a "
                        "transaction has locked the row or the table");
    why = *err;
    return sqlock_error_set(
        err, SQLOCK_EBUSY, why.native, why.sqlstate,
        "the database ended the statement, which was not carried out: %s (if "
        "it timed out: the database is slow, so raise statement_timeout_ms, or "
        "a transaction has locked the row or the table)",
        why.message);
}

int lk_db_not_applied(int rc, sqlock_error *err)
{
    if (rc == SQLOCK_ECANCELED)
        return has_ended(err);
    if (rc != SQLOCK_ERETRY)
        return rc;
    if (err != NULL)
        err->code = SQLOCK_EBUSY;
    return SQLOCK_EBUSY;
}

int lk_db_of_reading(int rc, sqlock_error *err)
{
    if (rc == SQLOCK_EUNCERTAIN)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the database did not answer in time");
    return lk_db_not_applied(rc, err);
}

int lk_db_run_on(struct lk_db *db, struct lk_connection *connection,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err)
{
    sqlock_value values[LK_PLACES_MAX];
    int rc;

    lk_statement_order(run->statement, run->arguments, values);
    rc = send_on(db, connection, run, values, result, err);
    run->has_timed_out = rc == SQLOCK_ECANCELED;
    return lk_db_not_applied(rc, err);
}

int lk_db_ask(struct lk_db *db, struct lk_connection *connection,
              const char *text, int64_t deadline_ns, sqlock_result *result,
              sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};

    return lk_db_of_reading(db->driver->execute(connection->state, &statement,
                                                NULL, 0, deadline_ns, result,
                                                err),
                            err);
}

/* Return whether there is time to wait for a row lock.  If a server is still
 * waiting at the statement's deadline, the outcome is unknown; SQLite, which
 * waits for the file, ends the wait in time. */
static bool has_time_to_wait(const struct lk_db *db, const struct lk_run *run)
{
    return has_one_writer(db) ||
           lk_after_ms(sqlock_monotonic_ns(),
                       db->pool.options.lock_timeout_ms) < run->deadline_ns;
}

/* Return the classes of results after which this run is sent again. */
static unsigned classes_of(const struct lk_db *db, const struct lk_run *run)
{
    unsigned classes = LK_RETRY_CONFLICT | LK_RETRY_FULL;
    bool is_read = run->is_repeatable && !run->is_write;

    if (!run->is_first)
        classes |= LK_RETRY_UNREACHABLE;
    if (run->is_repeatable)
        classes |= LK_RETRY_UNCERTAIN;
    if (!run->is_held_back &&
        (is_read || (run->waits_for_row && has_time_to_wait(db, run))))
        classes |= LK_RETRY_BUSY;
    return classes;
}

/* Return the result of a run whose last attempt ended with rc.  A statement
 * that writes has succeeded if the last attempt has; if the last attempt has
 * failed, the statement is in doubt if any got no answer (was_uncertain). */
static int outcome(struct lk_run *run, int rc, bool was_uncertain,
                   sqlock_error *err)
{
    run->has_timed_out = rc == SQLOCK_ECANCELED;
    if (!run->is_write)
        return lk_db_of_reading(rc, err);
    if (rc == 0 || rc == SQLOCK_EUNCERTAIN || !was_uncertain)
        return lk_db_not_applied(rc, err);
    return lk_error(
        err, SQLOCK_EUNCERTAIN,
        "the connection was lost while the statement was running, and the "
        "database did not confirm in time whether it was carried out");
}

/* Note such a result, and return an ERESOURCE instead of an EUNREACHABLE that
 * follows. */
static int recall(struct refusal *refusal, int rc, sqlock_error *err)
{
    if (rc == SQLOCK_ERESOURCE || rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY) {
        refusal->rc = rc;
        refusal->err = *err;
    } else if (rc != SQLOCK_EUNREACHABLE) {
        refusal->rc = 0;
    } else if (refusal->rc == SQLOCK_ERESOURCE) {
        *err = refusal->err;
        rc = SQLOCK_ERESOURCE;
    }
    return rc;
}

/* Return whether to send the statement again after the result rc. */
static bool goes_on(const struct lk_db *db, const struct lk_run *run,
                    struct lk_retry *retry, int rc)
{
    if (rc == 0)
        return false;
    retry->policy.classes = classes_of(db, run);
    retry->deadline_ns = run->deadline_ns; /* connecting extended it */
    return lk_retry_goes_on(retry, rc);
}

static int run_until_deadline(struct lk_db *db, struct lk_run *run,
                              sqlock_result *result, sqlock_error *err)
{
    const struct lk_pool *pool = run->is_reserved ? &db->reserved : &db->pool;
    int64_t latest_ns =
        lk_after_ms(waits_until(run), pool->options.connect_timeout_ms);
    struct lk_retry retry;
    struct refusal refusal;
    bool was_uncertain = false;
    sqlock_error own = {0};
    int rc;

    refusal.rc = 0; /* its text is not read before it is written */
    refusal.is_wary = false;
    lk_retry_begin(&retry, &policy, run->deadline_ns);
    do {
        rc = run_once(db, run, latest_ns, &refusal, result, &own);
        rc = recall(&refusal, rc, &own);
        was_uncertain = was_uncertain || rc == SQLOCK_EUNCERTAIN;
        run->was_uncertain = run->was_uncertain || was_uncertain;
    } while (goes_on(db, run, &retry, rc));
    rc = outcome(run, rc, was_uncertain, &own);
    return lk_error_pass(err, &own, rc);
}

int lk_db_run(struct lk_db *db, struct lk_run *run, sqlock_result *result,
              sqlock_error *err)
{
    int before = lk_cancel_defer();
    int rc = run_until_deadline(db, run, result, err);

    lk_cancel_allow(before);
    return rc;
}

static int run_script_on(struct lk_db *db, struct lk_connection *connection,
                         char *script, int64_t deadline_ns, sqlock_error *err)
{
    int rc = 0;

    while (rc == 0 && *script != '\0') {
        sqlock_statement statement = {.text = script};
        sqlock_result result = {0};
        char *end = strstr(script, ";\n");

        if (end == NULL)
            break;
        *end = '\0';
        rc = db->driver->execute(connection->state, &statement, NULL, 0,
                                 deadline_ns, &result, err);
        sqlock_result_clear(&result);
        script = end + 2;
    }
    return rc;
}

/* Return a copy of a script, to be freed by the caller, without the comment
 * lines, which may have a ';' anywhere.  NULL when out of memory. */
static char *without_comments(const char *script)
{
    char *copy = malloc(strlen(script) + 1);
    char *end = copy;

    while (copy != NULL && *script != '\0') {
        size_t length = strcspn(script, "\n");

        length += script[length] == '\n';
        if (strncmp(script, "--", 2) != 0) {
            memcpy(end, script, length);
            end += length;
        }
        script += length;
    }
    if (copy != NULL)
        *end = '\0';
    return copy;
}

int lk_db_run_script(struct lk_db *db, const char *script, int64_t deadline_ns,
                     sqlock_error *err)
{
    struct lk_connection *connection = NULL;
    char *copy = without_comments(script);
    int rc;

    if (copy == NULL)
        return lk_error_nomem(err);
    rc = lk_pool_take(&db->pool, deadline_ns, &connection, err);
    if (rc == 0) {
        rc = run_script_on(db, connection, copy, deadline_ns, err);
        lk_db_finish(db, connection, rc);
    }
    free(copy);
    return lk_db_not_applied(rc, err);
}
