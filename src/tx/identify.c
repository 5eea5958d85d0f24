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

/* Return how often the epoch has changed. */
static uint32_t epoch_of(struct lk_store *store)
{
    char epoch[SQLOCK_EPOCH_SIZE];

    return lk_epoch_last(&store->db.epoch, epoch);
}

/* Ask a connection of the registry for the identity of its database, and keep
 * that in the store, with the epoch before the question. */
static int ask_store(sqlock_tx *tx, const struct lk_arguments *arguments,
                     sqlock_error *err)
{
    struct lk_store *store = tx->store;
    struct lk_run run = {
        .statement = &store->statements[SQLOCK_SQL_IDENTITY],
        .arguments = arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };
    uint32_t epoch = epoch_of(store);
    sqlock_result result = {0};
    char *identity;
    int rc;

    rc = lk_db_run(&store->db, &run, &result, err);
    identity = rc == 0 ? answer_of(&result) : NULL;
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    if (identity == NULL)
        return lk_error(err, SQLOCK_EDATABASE,
                        "the server did not return its identity");
    pthread_mutex_lock(&store->mutex);
    if (store->database_identity == NULL ||
        strcmp(store->database_identity, identity) != 0)
        store->identity_number++;
    free(store->database_identity);
    store->database_identity = identity;
    store->identity_epoch = epoch;
    pthread_mutex_unlock(&store->mutex);
    return 0;
}

/* Compare an identity (NULL: none) with the one that the registry has found in
 * the present epoch, if it has.  *number is the number of that. */
static bool is_same(struct lk_store *store, const char *identity,
                    uint32_t *number)
{
    uint32_t epoch = epoch_of(store);
    bool same;

    pthread_mutex_lock(&store->mutex);
    same = identity != NULL && store->database_identity != NULL &&
           store->identity_epoch == epoch &&
           strcmp(identity, store->database_identity) == 0;
    *number = store->identity_number;
    pthread_mutex_unlock(&store->mutex);
    return same;
}

bool lk_tx_is_identity(sqlock_tx *tx, uint32_t number)
{
    struct lk_store *store = tx->store;
    uint32_t epoch = epoch_of(store);
    bool same;

    pthread_mutex_lock(&store->mutex);
    same = store->database_identity != NULL && store->identity_epoch == epoch &&
           store->identity_number == number;
    pthread_mutex_unlock(&store->mutex);
    return same;
}

/* Check the identity that a connection of the application has returned.  A
 * restart or a failover changes the registry's: so before it refuses, the
 * registry asks again, and once more in case the question itself has opened a
 * connection to a new server. */
static int compare(sqlock_tx *tx, const struct lk_arguments *arguments,
                   const char *identity, sqlock_error *err)
{
    uint32_t *number = &tx->known.identity;

    for (int asked = 0; !is_same(tx->store, identity, number) && asked < 2;
         asked++) {
        int rc = ask_store(tx, arguments, err);

        if (rc < 0)
            return rc;
    }
    if (is_same(tx->store, identity, number))
        return 0;
    return lk_error(err, SQLOCK_EINVAL,
                    "the connection leads to another database than that of "
                    "the lock table %s, or finds another table with that name",
                    tx->store->table.plain);
}

int lk_tx_identify(sqlock_tx *tx, sqlock_error *err)
{
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    char *identity = NULL;
    int rc;

    if (tx->is_identified)
        return 0;
    lk_table_arguments(&tx->store->table, &arguments);
    rc = lk_tx_run(tx, SQLOCK_SQL_IDENTITY, &arguments, lk_tx_deadline(tx),
                   &result, err);
    if (rc == 0)
        identity = answer_of(&result);
    if (rc == 0)
        rc = compare(tx, &arguments, identity, err);
    if (rc == 0)
        tx->is_identified = true;
    free(identity);
    sqlock_result_clear(&result);
    return rc;
}
