/*
 * identify.c - check that a connection of the application leads to the database
 * that has the lock table: a statement of the driver, which identifies server,
 * database and table, must return the same there as on a connection of the
 * registry
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tx/tx.h"

static int render(const sqlock_tx *tx, struct lk_statement *out,
                  sqlock_error *err)
{
    const sqlock_template template = {.text = tx->part->identity};
    int rc = lk_statement_render(out, tx->driver->dialect, &template,
                                 tx->store->table.quoted, 0);

    return rc < 0 ? lk_error(err, rc, "the driver's identity: %s",
                             sqlock_strerror(rc))
                  : 0;
}

/* Copy the last cell of the first row; the caller frees the copy.  NULL: no
 * such text, or out of memory. */
static char *answer_of(const sqlock_result *result)
{
    const sqlock_value *cell;

    if (result->rows == 0)
        return NULL;
    cell = &result->cells[result->columns - 1];
    return cell->type == SQLOCK_TEXT ? strdup(cell->text) : NULL;
}

/* Find out the identity of the registry's database, unless it is known, and
 * keep it in the store. */
static int ask_store(sqlock_tx *tx, const struct lk_statement *statement,
                     const struct lk_arguments *arguments, sqlock_error *err)
{
    struct lk_store *store = tx->store;
    struct lk_run run = {
        .statement = statement,
        .arguments = arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };
    sqlock_result result = {0};
    bool is_known;
    char *identity;
    int rc;

    pthread_mutex_lock(&store->mutex);
    is_known = store->database_identity != NULL;
    pthread_mutex_unlock(&store->mutex);
    if (is_known)
        return 0;
    rc = lk_db_run(&store->db, &run, &result, err);
    identity = rc == 0 ? answer_of(&result) : NULL;
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc == SQLOCK_EUNCERTAIN
                   ? lk_error(err, SQLOCK_EUNREACHABLE,
                              "the database did not answer in time")
                   : rc;
    if (identity == NULL)
        return lk_error(err, SQLOCK_EDATABASE,
                        "the server did not return its identity");
    pthread_mutex_lock(&store->mutex);
    if (store->database_identity == NULL) {
        store->database_identity = identity;
        identity = NULL;
    }
    pthread_mutex_unlock(&store->mutex);
    free(identity);
    return 0;
}

/* Compare an identity (NULL: none) with the registry's, which is set once and
 * stays. */
static bool is_same(struct lk_store *store, const char *identity)
{
    bool same;

    pthread_mutex_lock(&store->mutex);
    same = identity != NULL && strcmp(identity, store->database_identity) == 0;
    pthread_mutex_unlock(&store->mutex);
    return same;
}

int lk_tx_identify(sqlock_tx *tx, sqlock_error *err)
{
    const struct lk_table *table = &tx->store->table;
    struct lk_arguments arguments = {0};
    struct lk_statement statement;
    sqlock_value values[LK_PLACES_MAX];
    sqlock_result result = {0};
    char *identity = NULL;
    int rc;

    if (tx->is_identified)
        return 0;
    rc = render(tx, &statement, err);
    lk_argument_text(&arguments, SQLOCK_P_KEY,
                     table->schema[0] != '\0' ? table->schema : NULL);
    lk_statement_order(&statement, &arguments, values);
    if (rc == 0)
        rc = ask_store(tx, &statement, &arguments, err);
    if (rc == 0)
        rc = lk_tx_send(tx, &statement.sent, values, statement.count,
                        lk_tx_deadline(tx), &result, err);
    if (rc == 0)
        identity = answer_of(&result);
    if (rc == 0 && !is_same(tx->store, identity))
        rc =
            lk_error(err, SQLOCK_EINVAL,
                     "the connection leads to another database than that of "
                     "the lock table %s, or finds another table with that name",
                     table->plain);
    if (rc == 0)
        tx->is_identified = true;
    free(identity);
    sqlock_result_clear(&result);
    lk_statement_clear(&statement);
    return rc;
}
