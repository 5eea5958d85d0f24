/*
 * adopt.c - join or begin a transaction on a connection of the application
 *
 * The first adoption of a connection asks for the identity of its database, and
 * begins.  The second finds that the application keeps the connection: so the
 * guard's statements are prepared on it.  From the third on, one round trip
 * begins the transaction, and finds these statements by their names, which this
 * registry alone has given: so the session is the one that was identified, and
 * it is still in the same database.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "tx/tx.h"

/* Calls of the statements that a connection keeps (run.c), which tell the types
 * of their parameters. */
struct calls {
    sqlock_statement statements[LK_TX_PREPARED];
    sqlock_value values[LK_TX_PREPARED][LK_PLACES_MAX];
    sqlock_call list[LK_TX_PREPARED];
    size_t count;
};

static void fill(struct calls *calls, const struct lk_store *store)
{
    struct lk_arguments arguments;

    lk_store_arguments(store, "", &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, "");
    lk_argument_integer(&arguments, SQLOCK_P_TOKEN, 0);
    calls->count = 0;
    for (size_t kind = 0; kind < LK_TX_PREPARED; kind++) {
        const struct lk_statement *statement =
            &store->statements[lk_tx_prepared[kind]];
        size_t i = calls->count;

        if (statement->text == NULL)
            continue;
        calls->count++;
        calls->statements[i] = statement->sent;
        lk_statement_order(statement, &arguments, calls->values[i]);
        calls->list[i] = (sqlock_call){.statement = &calls->statements[i],
                                       .values = calls->values[i],
                                       .count = statement->count};
    }
}

/* --- the connection --- */

void lk_tx_let_go(sqlock_tx *tx, bool may_use)
{
    tx->part->unadopt(tx->connection->state, may_use);
    free(tx->connection->state);
    free(tx->connection);
    tx->connection = NULL;
}

static int take_over(sqlock_tx *tx, void *native, sqlock_error *err)
{
    int rc;

    tx->connection = calloc(1, sizeof *tx->connection);
    if (tx->connection == NULL)
        return lk_error_nomem(err);
    tx->connection->state = calloc(1, tx->driver->connection_bytes);
    if (tx->connection->state == NULL) {
        free(tx->connection);
        return lk_error_nomem(err);
    }
    rc = tx->part->adopt(tx->connection->state, native, err);
    if (rc < 0) {
        free(tx->connection->state);
        free(tx->connection);
    }
    return rc;
}

/* --- what was learnt of it before --- */

/* Begin on a session that has the statements.  Return 0; ENOTFOUND if it is to
 * be asked whose it is: it may be another one, or has them no longer; or as
 * lk_tx_start(). */
static int resume(sqlock_tx *tx, sqlock_error *err)
{
    struct calls calls;
    int rc;

    fill(&calls, tx->store);
    rc = tx->part->resume(tx->connection->state, tx->store->number, calls.list,
                          calls.count, lk_tx_deadline(tx), err);
    if (rc == 0) {
        tx->has_begun = true;
        tx->is_identified = true;
        tx->has_prepared = true;
        lk_known_note(&tx->store->db.known, &tx->known);
        return 0;
    }
    if (rc == SQLOCK_ECONFLICT)
        return SQLOCK_ENOTFOUND;
    /* The application has deallocated them, and would again. */
    if (rc == SQLOCK_ENOTFOUND) {
        tx->known.is_prepared = false;
        tx->known.is_bare = true;
    }
    if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "the connection was lost before the transaction began");
    return lk_db_not_applied(rc, err);
}

/* Prepare the statements on a connection that was adopted before.  That is for
 * speed alone: if the server refuses, nothing is lost. */
static int prepare(sqlock_tx *tx, sqlock_error *err)
{
    struct calls calls;
    int rc;

    fill(&calls, tx->store);
    rc = tx->part->prepare(tx->connection->state, tx->store->number, calls.list,
                           calls.count, lk_tx_deadline(tx), err);
    if (rc == SQLOCK_EUNCERTAIN)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection was lost before the transaction began");
    tx->has_prepared = rc == 0;
    tx->known.is_prepared = rc == 0;
    tx->known.is_bare = rc < 0;
    lk_known_note(&tx->store->db.known, &tx->known);
    return rc == SQLOCK_EUNREACHABLE ? rc : 0;
}

void lk_tx_remember(sqlock_tx *tx)
{
    struct lk_known *known = &tx->known;

    if (tx->part->session == NULL)
        return;
    /* The application has deallocated them in the transaction. */
    if (tx->has_prepared && !tx->part->is_prepared(tx->connection->state)) {
        known->is_prepared = false;
        known->is_bare = true;
    }
    lk_known_note(&tx->store->db.known, known);
}

/* --- the transaction --- */

int lk_tx_see(sqlock_tx *tx, sqlock_error *err)
{
    const struct lk_arguments none = {0};
    sqlock_result result = {0};
    int rc;

    if (tx->view != LK_TX_NOT_ASKED)
        return 0;
    rc = lk_tx_run(tx, SQLOCK_SQL_ISOLATION, &none, lk_tx_deadline(tx), &result,
                   err);
    if (rc == 0)
        tx->view =
            result.rows > 0 && result.cells[0].type == SQLOCK_TEXT &&
                    strcasecmp(result.cells[0].text, "read committed") == 0
                ? LK_TX_FRESH
                : LK_TX_SNAPSHOT;
    sqlock_result_clear(&result);
    return rc;
}

/* Join the open transaction.  If it has a snapshot, its first statement should
 * be the guard, not a query of the library. */
static int join(sqlock_tx *tx, sqlock_error *err)
{
    int rc;

    tx->has_begun = true;
    rc = lk_tx_see(tx, err);
    return rc == 0 && tx->view != LK_TX_SNAPSHOT ? lk_tx_identify(tx, err) : rc;
}

/* Begin on a session that was asked. */
static int begin(sqlock_tx *tx, bool is_known, sqlock_error *err)
{
    int rc = lk_tx_identify(tx, err);

    if (rc == 0 && is_known && !tx->known.is_bare)
        rc = prepare(tx, err);
    if (rc == 0)
        rc = lk_tx_start(tx, err);
    if (rc < 0)
        (void)tx->driver->rollback(tx->connection->state, LK_NEVER, NULL);
    return rc;
}

static bool is_open(const sqlock_tx *tx)
{
    return tx->part->state(tx->connection->state) != SQLOCK_TX_NONE;
}

/* Ask the session what it is, and join its transaction, or begin one. */
static int ask(sqlock_tx *tx, bool is_known, sqlock_error *err)
{
    int rc =
        tx->part->ask == NULL ? 0 : tx->part->ask(tx->connection->state, err);

    if (rc < 0)
        return rc;
    return is_open(tx) ? join(tx, err) : begin(tx, is_known, err);
}

static int settle_in(sqlock_tx *tx, void *native, sqlock_error *err)
{
    bool is_known = false;
    sqlock_error own = {0};
    int rc = SQLOCK_ENOTFOUND;

    tx->view =
        lk_tx_has(tx, SQLOCK_SQL_ISOLATION) ? LK_TX_NOT_ASKED : LK_TX_EITHER;
    if (tx->part->session != NULL)
        is_known =
            lk_known_find(&tx->store->db.known, native,
                          tx->part->session(tx->connection->state), &tx->known);
    if (tx->known.is_prepared && !is_open(tx) &&
        lk_tx_is_identity(tx, tx->known.identity))
        rc = resume(tx, &own);
    if (rc == SQLOCK_ENOTFOUND)
        rc = ask(tx, is_known, &own);
    return lk_error_pass(err, &own, rc);
}

int sqlock_tx_adopt(sqlock_tx **out, sqlock_registry *registry,
                    void *connection, sqlock_error *err)
{
    struct lk_store *store;
    sqlock_tx *tx;
    int rc;

    if (out != NULL)
        *out = NULL;
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    rc = lk_tx_new(&tx, store, true, err);
    if (rc < 0)
        return rc;
    if (out == NULL || connection == NULL)
        rc = lk_error_null(err, "tx and connection");
    else
        rc = take_over(tx, connection, err);
    if (rc < 0) {
        lk_tx_free(tx);
        return rc;
    }
    rc = settle_in(tx, connection, err);
    if (rc < 0) {
        lk_tx_let_go(tx, true);
        lk_tx_free(tx);
        return rc;
    }
    *out = tx;
    return 0;
}
