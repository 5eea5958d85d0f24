/*
 * once.c - keep records of what has been done once and for all, in a table
 * beside the lock table that is never reaped
 *
 * A record is written in a transaction that guards the lease, so only the
 * lease's holder can write it: a process that has lost the lock records
 * nothing.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "db/columns.h"
#include "lease/schema.h"
#include "sqlock/once.h"
#include "sqlock/lease.h"
#include "tx/tx.h"

#define SUFFIX "DONE"
#define NAME_BYTES 255 /* LOCK_NAME VARCHAR(255) */
#define COMMAND "`sqlock init --once`"

/* --- the table --- */

static int find_table(struct lk_table *table, const sqlock_options *options,
                      const sqlock_driver *driver, sqlock_error *err)
{
    return lk_table_named(table, options->table_prefix, SUFFIX, driver->dialect,
                          err);
}

int sqlock_once_schema_text(char **text, const char *url,
                            const sqlock_options *options, sqlock_error *err)
{
    return lk_schema_text(text, url, options, SQLOCK_SCHEMA_DONE, err);
}

int sqlock_once_schema_create(const char *url, const sqlock_options *options,
                              sqlock_error *err)
{
    static const char *const telling[] = {"DONE_DATE"};
    struct lk_table table;
    struct lk_site site;
    int rc;

    rc = lk_site_open(&site, url, options, true, err);
    if (rc < 0)
        return rc;
    rc = find_table(&table, &site.options, site.db.driver, err);
    if (rc == 0)
        rc = lk_schema_create(&site, SQLOCK_SCHEMA_DONE, &table, telling, 1,
                              COMMAND, err);
    lk_db_clear(&site.db);
    return rc;
}

/* --- reading --- */

/* Say which table is missing. */
static int tell_missing(struct lk_store *store, sqlock_error *err)
{
    struct lk_table table;
    int rc = find_table(&table, &store->options, store->db.driver, err);

    return rc < 0 ? rc
                  : lk_columns_missing(&store->db, &table,
                                       lk_store_deadline(store), COMMAND, err);
}

/* Run a statement on the table of records; clear the result afterwards. */
static int run_once(struct lk_store *store, sqlock_statement_kind kind,
                    const struct lk_arguments *arguments, bool is_write,
                    sqlock_result *result, sqlock_error *err)
{
    struct lk_run run = {.statement = &store->statements[kind],
                         .arguments = arguments,
                         .deadline_ns = lk_store_deadline(store),
                         .is_repeatable = !is_write,
                         .is_write = is_write};
    int rc;

    if (run.statement->text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s does not support run-once records",
                        store->db.driver->name);
    rc = lk_db_run(&store->db, &run, result, err);
    return rc == SQLOCK_ESCHEMA ? tell_missing(store, err) : rc;
}

/* Read a key's record: client_id becomes that of the lease under which it was
 * written.  ENOTFOUND: there is none. */
static int read_record(struct lk_store *store, const char *key,
                       char client_id[SQLOCK_KEY_SIZE], sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = run_once(store, SQLOCK_SQL_ONCE_READ, &arguments, false, &result, err);
    if (rc == 0 && result.rows == 0)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "there is no such record");
    if (rc == 0)
        lk_cell_id(client_id, &result.cells[0]);
    sqlock_result_clear(&result);
    return rc;
}

static int check_nodes_once(struct lk_store *store, sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc;

    rc = lk_tx_begin(&tx, store, err);
    if (rc == 0)
        rc = lk_tx_check_nodes(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

/* Check, before the work, that leases can be guarded here; otherwise nothing
 * could be recorded after the work.  The check writes nothing, so a transaction
 * that was ended for any reason is begun again. */
static int check_guards(struct lk_store *store, sqlock_error *err)
{
    static const struct lk_retry_policy policy = {
        .first_us = 1000,
        .longest_us = 50000,
        .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_FULL |
                   LK_RETRY_UNREACHABLE | LK_RETRY_UNSENT,
        .last = LK_RETRY_WITHIN,
    };
    struct lk_retry retry;
    sqlock_error own = {0};
    int rc;

    if (store->db.driver->transactions == NULL ||
        store->statements[SQLOCK_SQL_ONE_NODE].text == NULL)
        return 0;
    lk_retry_begin(&retry, &policy, lk_store_deadline(store));
    do
        rc = check_nodes_once(store, &own);
    while (lk_retry_goes_on(&retry, rc));
    if (rc == SQLOCK_ELOST)
        rc = lk_error(&own, SQLOCK_EUNREACHABLE,
                      "the connection was lost before the database said "
                      "whether a lease can be guarded there");
    if (rc == SQLOCK_ETIMEDOUT) /* nobody has waited for a lock */
        rc = sqlock_error_set(&own, SQLOCK_EBUSY, own.native, own.sqlstate,
                              "%s", own.message);
    return lk_error_pass(err, &own, lk_db_not_applied(rc, &own));
}

int sqlock_once_check(sqlock_registry *registry, const char *name,
                      sqlock_error *err)
{
    struct lk_store *store;
    char key[SQLOCK_KEY_SIZE] = "";
    char client_id[SQLOCK_KEY_SIZE];
    int rc;

    rc = lk_store_key(registry, name, &store, key, err);
    if (rc == 0)
        rc = check_guards(store, err);
    return rc < 0 ? rc : read_record(store, key, client_id, err);
}

/* --- writing --- */

struct record {
    sqlock_lock *lock;
    char client_id[SQLOCK_KEY_SIZE];
    bool is_guarded; /* whoever has it later has not recorded anything */
};

static int insert(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct record *record = context;
    struct lk_store *store = tx->store;
    struct lk_arguments arguments;
    char name[NAME_BYTES + 1] = "";
    int rc;

    rc = sqlock_tx_guard(tx, record->lock, err);
    record->is_guarded = rc == 0;
    if (rc < 0)
        return rc;
    lk_store_arguments(store, sqlock_key(record->lock), &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, record->client_id);
    lk_argument_integer(&arguments, SQLOCK_P_TOKEN, sqlock_token(record->lock));
    lk_store_shown(store, name, sizeof name, sqlock_name(record->lock));
    lk_argument_text(&arguments, SQLOCK_P_NAME, name);
    return lk_tx_run(tx, SQLOCK_SQL_ONCE_RECORD, &arguments, lk_tx_deadline(tx),
                     NULL, err);
}

/* Return whether the work is recorded although an attempt to do so has failed:
 * the commit of one until now got no answer, or there was a record before,
 * which this one has met while it had guarded the lease.  Another record is
 * that of a later holder, who has done the work again. */
static bool is_recorded(struct lk_store *store, const struct record *record,
                        int rc, bool was_uncertain)
{
    bool was_there = rc == SQLOCK_EBUSY && record->is_guarded;
    char found[SQLOCK_KEY_SIZE];

    return (was_uncertain || was_there) &&
           read_record(store, sqlock_key(record->lock), found, NULL) == 0 &&
           (was_there || strcmp(found, record->client_id) == 0);
}

int sqlock_once_record(sqlock_lock *lock, sqlock_error *err)
{
    sqlock_retry_options limits = SQLOCK_RETRY_INIT;
    /* A record may be written again even after EUNCERTAIN: each attempt is
     * guarded, and a name has only one record. */
    static const struct lk_retry_policy recording = {
        .first_us = 1000,
        .longest_us = 50000,
        .classes = LK_RETRY_CONFLICT | LK_RETRY_BUSY | LK_RETRY_FULL |
                   LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN | LK_RETRY_UNSENT,
        .last = LK_RETRY_WITHIN,
    };
    struct record record = {.lock = lock};
    struct lk_store *store;
    struct lk_retry retry;
    sqlock_error own = {0};
    bool was_uncertain = false;
    int rc;

    rc = lk_guarded_store(lock, &store, err);
    if (rc < 0)
        return rc;
    sqlock_client_id(lock, record.client_id);
    if (sqlock_remaining_ms(lock) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "only the holder of the lock can record its work");
    limits.attempts = 1;
    lk_retry_begin(
        &retry, &recording,
        lk_after_ms(sqlock_monotonic_ns(), sqlock_remaining_ms(lock)));
    do {
        record.is_guarded = false; /* not by this attempt yet */
        rc = lk_tx_retry(store, insert, &record, &limits, &own);
        was_uncertain = was_uncertain || rc == SQLOCK_EUNCERTAIN;
        if (rc < 0 && is_recorded(store, &record, rc, was_uncertain))
            rc = 0;
        /* Go on after ELOST, too: the lease may be left, and only the
         * connection lost. */
    } while (sqlock_remaining_ms(lock) > 0 && lk_retry_goes_on(&retry, rc));
    if (rc < 0 && was_uncertain) {
        const sqlock_error last = own;

        rc = sqlock_error_set(
            &own, SQLOCK_EUNCERTAIN, last.native, last.sqlstate,
            "a commit of the record got no answer, and it was not seen to be "
            "carried out: %s",
            last.message);
    }
    return lk_error_pass(err, &own, rc);
}

/* --- looking and forgetting --- */

static void copy_row(sqlock_once_info *row, const sqlock_value *cells)
{
    lk_cell_id(row->key, &cells[0]);
    lk_cell_id(row->client_id, &cells[1]);
    row->token = lk_cell_integer(&cells[2]);
    row->done_at_us = lk_cell_integer(&cells[3]);
}

/* Copy the rows, followed by their names, into one block of memory. */
static int copy_rows(const sqlock_result *result, sqlock_once_info **out,
                     sqlock_error *err)
{
    size_t size = (result->rows + 1) * sizeof **out;
    sqlock_once_info *rows;
    char *at;

    for (size_t i = 0; i < result->rows; i++)
        size += result->cells[i * result->columns + 4].length + 1;
    rows = calloc(1, size);
    if (rows == NULL)
        return lk_error_nomem(err);
    *out = rows;
    at = (char *)&rows[result->rows];
    for (size_t i = 0; i < result->rows; i++) {
        const sqlock_value *cells = &result->cells[i * result->columns];

        copy_row(&rows[i], cells);
        if (cells[4].type != SQLOCK_TEXT)
            continue;
        rows[i].name = memcpy(at, cells[4].text, cells[4].length + 1);
        at += cells[4].length + 1;
    }
    return 0;
}

int sqlock_once_list_sized(sqlock_registry *registry, const char *name,
                           sqlock_once_info **rows, size_t *count, size_t size,
                           sqlock_error *err)
{
    static const struct lk_row_size row = {"sqlock_once_info",
                                           offsetof(sqlock_once_info, token),
                                           sizeof(sqlock_once_info)};
    struct lk_arguments arguments;
    char key[SQLOCK_KEY_SIZE] = "";
    sqlock_result result = {0};
    struct lk_store *store;
    int rc;

    if (rows == NULL || count == NULL)
        return lk_error_null(err, "rows and count");
    *rows = NULL;
    *count = 0;
    rc = lk_row_check(&row, size, err);
    if (rc == 0)
        rc = lk_store_of(registry, &store, err);
    if (rc == 0 && name != NULL)
        rc = sqlock_key_of(key, name, store->options.key_rule, err);
    if (rc != 0)
        return rc;
    lk_store_arguments(store, key, &arguments);
    if (name == NULL)
        lk_argument_text(&arguments, SQLOCK_P_KEY, NULL);
    rc = run_once(store, SQLOCK_SQL_ONCE_LIST, &arguments, false, &result, err);
    if (rc == 0)
        rc = copy_rows(&result, rows, err);
    if (rc == 0)
        *count = result.rows;
    sqlock_result_clear(&result);
    lk_rows_pack(*rows, *count, sizeof **rows, size);
    return rc;
}

void sqlock_once_free(sqlock_once_info *rows, size_t count)
{
    (void)count;
    free(rows);
}

int sqlock_once_forget(sqlock_registry *registry, const char *name,
                       sqlock_error *err)
{
    struct lk_arguments arguments;
    char key[SQLOCK_KEY_SIZE] = "";
    sqlock_result result = {0};
    struct lk_store *store;
    int rc;

    rc = lk_store_key(registry, name, &store, key, err);
    if (rc < 0)
        return rc;
    lk_store_arguments(store, key, &arguments);
    rc =
        run_once(store, SQLOCK_SQL_ONCE_FORGET, &arguments, true, &result, err);
    if (rc == 0 && result.affected == 0)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "there is no such record");
    sqlock_result_clear(&result);
    return rc;
}
