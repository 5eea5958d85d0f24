/*
 * run.c - send the statements of a transaction, the library's and the
 * application's, and notice when it is over: a statement sent after that would
 * run, and be committed, outside of the transaction
 */
#include "tx/tx.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

/* The types of so many parameters are told apart by a number of 64 bits. */
#define TYPE_BITS 2
#define TYPED_MAX (64 / TYPE_BITS)

const struct lk_retry_policy lk_tx_waiting = {
    .first_us = 500,
    .longest_us = 20000,
    .classes = LK_RETRY_BUSY | LK_RETRY_CONFLICT,
    .last = LK_RETRY_AT_DEADLINE,
};

const sqlock_statement_kind lk_tx_prepared[LK_TX_PREPARED] = {
    SQLOCK_SQL_TX_GUARD, SQLOCK_SQL_TX_ASSERT};

int64_t lk_tx_deadline(const sqlock_tx *tx)
{
    return tx->is_adopted ? LK_NEVER : lk_store_deadline(tx->store);
}

int lk_tx_end(sqlock_tx *tx, int rc, const sqlock_error *why)
{
    if (tx->over != 0 && !tx->is_aborted)
        return rc;
    tx->is_aborted = false;
    tx->over = rc;
    memset(&tx->why, 0, sizeof tx->why);
    if (why != NULL)
        tx->why = *why;
    else
        (void)lk_error(&tx->why, rc, "%s", sqlock_strerror(rc));
    return rc;
}

int lk_tx_spoil(sqlock_tx *tx, const char *why, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc = lk_error(&own, SQLOCK_EINVAL, "%s", why);

    return lk_tx_end(tx, lk_error_pass(err, &own, rc), &own);
}

/* End the transaction by rc, a failure of a statement, after which it is in
 * that state.  Return rc. */
static int end_in(sqlock_tx *tx, sqlock_tx_state state, int rc,
                  const sqlock_error *why)
{
    if (tx->over != 0)
        return rc;
    (void)lk_tx_end(tx, rc, why);
    tx->is_aborted = state == SQLOCK_TX_ABORTED;
    return rc;
}

bool lk_tx_may_go_back(const sqlock_tx *tx)
{
    return tx->over == 0 || tx->is_aborted;
}

/* Note that the transaction is open again: the database has returned to a
 * savepoint before the statement that failed. */
static void revive(sqlock_tx *tx)
{
    if (tx->is_aborted)
        tx->over = 0;
    tx->is_aborted = false;
}

/* Note that the transaction is no longer open, and return the code of its
 * end. */
static int notice_end(sqlock_tx *tx, sqlock_tx_state state, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc;

    if (state == SQLOCK_TX_NONE)
        rc = lk_error(&own, SQLOCK_EINVAL,
                      "the application has ended the transaction itself: by "
                      "COMMIT, ROLLBACK, or a statement that commits");
    else if (state == SQLOCK_TX_GONE)
        rc = lk_error(&own, SQLOCK_ELOST,
                      "the connection was lost, and with it the transaction "
                      "and its locks; nothing of it was committed");
    else
        rc = lk_error(&own, SQLOCK_EINVAL,
                      "the transaction is aborted: it can only be rolled back");
    return end_in(tx, state, lk_error_pass(err, &own, rc), &own);
}

int lk_tx_check(sqlock_tx *tx, sqlock_error *err)
{
    sqlock_tx_state state;
    int rc;

    if (tx == NULL)
        return lk_error_null(err, "tx");
    rc = lk_store_check(tx->store, err);
    if (rc < 0)
        return rc;
    if (lk_tx_may_go_back(tx)) {
        state = tx->part->state(tx->connection->state);
        if (state == SQLOCK_TX_OPEN)
            revive(tx);
        else if (tx->over == 0)
            return notice_end(tx, state, err);
    }
    return lk_error_pass(err, &tx->why, tx->over);
}

/* --- sending --- */

/* Return whether the limit that the library has set for the connection may have
 * ended a call with that deadline.  PostgreSQL does not tell a limit from a
 * cancel by somebody else, but no limit ends a statement before its time. */
static bool is_out_of_time(const sqlock_tx *tx, int64_t deadline_ns)
{
    int64_t most_ms = tx->store->options.statement_timeout_ms;
    int64_t early_ms = most_ms - lk_server_timeout_ms((uint32_t)most_ms);

    return lk_after_ms(sqlock_monotonic_ns(), early_ms) >= deadline_ns;
}

int lk_tx_note(sqlock_tx *tx, int rc, int64_t deadline_ns, sqlock_error *err)
{
    sqlock_error own;

    if (rc == SQLOCK_EREADONLY)
        tx->is_on_standby = true;
    if (rc != SQLOCK_ECANCELED || !is_out_of_time(tx, deadline_ns))
        return rc;
    own = *err;
    return sqlock_error_set(
        err, SQLOCK_ETIMEDOUT, own.native, own.sqlstate,
        "the statement timed out, and was not carried out: it takes long or "
        "the database is slow (raise statement_timeout_ms), or a transaction "
        "has locked the row or the table: %s",
        own.message);
}

/* Find out whether the transaction is still open after a statement, for which
 * the driver gave rc.  Return as lk_tx_note(), or the code that ended the
 * transaction. */
static int judge(sqlock_tx *tx, int rc, int64_t deadline_ns, sqlock_error *err)
{
    sqlock_tx_state state;

    rc = lk_tx_note(tx, rc, deadline_ns, err);
    if (lk_is_outage(rc)) {
        sqlock_error own = *err;

        rc = sqlock_error_set(
            err, SQLOCK_ELOST, own.native, own.sqlstate,
            "the connection was lost, and with it the transaction and its "
            "locks; nothing of it was committed: %s",
            own.message);
        return lk_tx_end(tx, rc, err);
    }
    if (rc == SQLOCK_ERETRY)
        return lk_tx_end(tx, rc, err);
    if (!tx->has_begun)
        return rc;
    state = tx->part->state(tx->connection->state);
    if (state != SQLOCK_TX_OPEN)
        return rc < 0 ? end_in(tx, state, rc, err) : notice_end(tx, state, err);
    revive(tx);
    return rc;
}

int lk_tx_send(sqlock_tx *tx, const sqlock_statement *statement,
               const sqlock_value *values, size_t count, int64_t deadline_ns,
               sqlock_result *result, sqlock_error *err)
{
    sqlock_result ignored = {0};
    sqlock_error own = {0};
    int rc;

    if (tx->is_adopted && tx->part->check_adopted != NULL) {
        rc = tx->part->check_adopted(tx->connection->state, err);
        if (rc < 0)
            return rc;
    }
    rc = tx->driver->execute(tx->connection->state, statement, values, count,
                             deadline_ns, result != NULL ? result : &ignored,
                             &own);
    sqlock_result_clear(&ignored);
    return lk_error_pass(err, &own, judge(tx, rc, deadline_ns, &own));
}

int lk_tx_send_commit(sqlock_tx *tx, sqlock_error *err)
{
    int64_t deadline_ns = lk_tx_deadline(tx);
    int rc = tx->driver->commit(tx->connection->state, deadline_ns, err);

    return lk_tx_note(tx, rc, deadline_ns, err);
}

/* Return the number under which a text is prepared, or 0.  A text that returns
 * rows is not prepared: after a change of its table the old plan would end the
 * transaction.  Nor is one that the session's earlier statements may have given
 * another meaning, or one on a connection of the application. */
static uint32_t id_of_text(sqlock_tx *tx, const char *text,
                           const sqlock_value *values, size_t count)
{
    uint64_t types = 0;

    if (tx->is_adopted || tx->is_altered || count == 0 || count > TYPED_MAX ||
        !lk_returns_nothing(text))
        return 0;
    for (size_t i = 0; i < count; i++)
        types = types << TYPE_BITS | (uint64_t)values[i].type;
    return lk_ids_of(&tx->store->db.texts, text, types);
}

int lk_tx_query_at(sqlock_tx *tx, sqlock_statement statement,
                   const sqlock_value *values, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err)
{
    char *numbered = NULL;
    size_t wanted = count;
    int rc;

    if (tx->driver->dialect->placeholder == SQLOCK_PLACEHOLDER_DOLLAR) {
        numbered = lk_placeholders_number(statement.text, &wanted);
        if (numbered == NULL)
            return lk_error_nomem(err);
        statement.text = numbered;
    }
    if (wanted != count) {
        free(numbered);
        return lk_error(err, SQLOCK_EINVAL,
                        "the statement has %zu parameters, but %zu were given",
                        wanted, count);
    }
    statement.id = id_of_text(tx, statement.text, values, count);
    rc = lk_tx_send(tx, &statement, values, count, deadline_ns, result, err);
    free(numbered);
    return rc;
}

int lk_tx_query(sqlock_tx *tx, const char *text, const sqlock_value *values,
                size_t count, sqlock_result *result, sqlock_error *err)
{
    return lk_tx_query_at(tx, (sqlock_statement){.text = text}, values, count,
                          lk_tx_deadline(tx), result, err);
}

bool lk_tx_has(const sqlock_tx *tx, sqlock_statement_kind kind)
{
    return tx->store->statements[kind].text != NULL;
}

bool lk_tx_is_prepared(const sqlock_tx *tx, sqlock_statement_kind kind)
{
    bool is_among = false;

    for (size_t i = 0; i < LK_TX_PREPARED; i++)
        is_among = is_among || lk_tx_prepared[i] == kind;
    return is_among && tx->has_prepared &&
           tx->part->is_prepared(tx->connection->state);
}

void lk_tx_statement(const sqlock_tx *tx, sqlock_statement_kind kind,
                     sqlock_statement *out)
{
    *out = tx->store->statements[kind].sent;
    if (tx->is_adopted && !tx->part->unprepares && !lk_tx_is_prepared(tx, kind))
        out->id = 0;
}

int lk_tx_run(sqlock_tx *tx, sqlock_statement_kind kind,
              const struct lk_arguments *arguments, int64_t deadline_ns,
              sqlock_result *result, sqlock_error *err)
{
    const struct lk_statement *statement = &tx->store->statements[kind];
    sqlock_value values[LK_PLACES_MAX];
    sqlock_statement sent;

    lk_tx_statement(tx, kind, &sent);
    lk_statement_order(statement, arguments, values);
    return lk_tx_send(tx, &sent, values, statement->count, deadline_ns, result,
                      err);
}

int lk_tx_run_apart(sqlock_tx *tx, sqlock_statement_kind kind,
                    const struct lk_arguments *arguments, sqlock_result *result,
                    sqlock_error *err)
{
    struct lk_run run = {
        .statement = &tx->store->statements[kind],
        .arguments = arguments,
        .deadline_ns = lk_store_deadline(tx->store),
        .is_repeatable = true,
        .is_write = true,
    };

    return lk_db_of_reading(lk_db_run(&tx->store->db, &run, result, err), err);
}

/* --- limits --- */

static bool needs_limit(const sqlock_tx *tx, int64_t wait_ms)
{
    /* Where statements do not wait for locks (wait_unit_ms is 0), only a handle
     * of the application may be set to wait. */
    return tx->part->limit != NULL &&
           (wait_ms > 0 || (tx->part->wait_unit_ms == 0 && tx->is_adopted));
}

int lk_tx_limit(sqlock_tx *tx, int64_t wait_ms, sqlock_error *err)
{
    int64_t deadline_ns = lk_tx_deadline(tx);
    sqlock_error own = {0};
    int rc;

    if (!needs_limit(tx, wait_ms))
        return 0;
    rc = tx->part->limit(tx->connection->state, wait_ms, deadline_ns, &own);
    tx->is_limited = rc == 0;
    if (rc < 0)
        rc = judge(tx, rc, deadline_ns, &own);
    return lk_error_pass(err, &own, rc);
}

int lk_tx_unlimit(sqlock_tx *tx, sqlock_error *err)
{
    int64_t deadline_ns = lk_tx_deadline(tx);
    sqlock_error own = {0};
    int rc;

    if (!tx->is_limited)
        return 0;
    tx->is_limited = false;
    rc = tx->part->unlimit(tx->connection->state, deadline_ns, &own);
    if (rc < 0)
        rc = judge(tx, rc, deadline_ns, &own);
    return lk_error_pass(err, &own, rc);
}

int lk_tx_outlast(sqlock_tx *tx, uint32_t idle_ms, sqlock_error *err)
{
    int64_t deadline_ns = lk_tx_deadline(tx);
    sqlock_error own = {0};
    int rc;

    rc = tx->part->outlast(tx->connection->state, idle_ms, deadline_ns, &own);
    if (rc < 0)
        rc = judge(tx, rc, deadline_ns, &own);
    return lk_error_pass(err, &own, rc);
}

/* --- the public statement --- */

/* End a transaction whose connection was lost during a statement that may
 * commit: COMMIT AND CHAIN, or DDL on MySQL. */
static int end_uncertain(sqlock_tx *tx, sqlock_error *err)
{
    const sqlock_error own = tx->why;

    tx->over = sqlock_error_set(
        &tx->why, SQLOCK_EUNCERTAIN, own.native, own.sqlstate,
        "the connection was lost during a statement that may commit: the "
        "transaction may be committed or not, and its locks are lost");
    return lk_error_pass(err, &tx->why, tx->over);
}

/* Roll back to a savepoint.  If that fails, end the transaction: what was to be
 * undone must not be committed. */
static int go_back(sqlock_tx *tx, const char *sql, sqlock_error *err)
{
    sqlock_error own = {0};
    int rc = lk_tx_query(tx, sql, NULL, 0, NULL, &own);

    if (rc == 0)
        return 0;
    return lk_tx_end(tx, lk_error_pass(err, &own, rc), &own);
}

int sqlock_tx_execute(sqlock_tx *tx, const char *sql,
                      const sqlock_value *parameters, size_t count,
                      sqlock_result *result, sqlock_error *err)
{
    bool goes_back = sql != NULL && count == 0 && lk_rolls_back(sql);
    sqlock_error own = {0};
    int rc;

    rc = lk_tx_check(tx, &own);
    if (rc < 0 && !(goes_back && tx != NULL && tx->is_aborted &&
                    rc == tx->over)) /* and not EFORK */
        return lk_error_pass(err, &own, rc);
    if (sql == NULL)
        return lk_error_null(err, "sql");
    if (parameters == NULL && count > 0)
        return lk_error_null(err, "parameters");
    for (size_t i = 0; i < count; i++) {
        rc = lk_value_check("a parameter", &parameters[i], err);
        if (rc < 0)
            return rc;
    }
    if (lk_keeps_locks(sql))
        return lk_tx_query(tx, sql, parameters, count, result, err);
    tx->hold = LK_TX_LOOSE;
    if (goes_back)
        return go_back(tx, sql, err);
    tx->is_altered = true;
    rc = lk_tx_query(tx, sql, parameters, count, result, err);
    return rc == SQLOCK_ELOST ? end_uncertain(tx, err) : rc;
}
