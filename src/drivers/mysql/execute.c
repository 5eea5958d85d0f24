/*
 * execute.c - run one statement and read its results
 *
 * Repeated statements are prepared once per connection.  All results are read
 * to their end, even after a failure, so that the connection is ready for the
 * next statement.
 */
#include "drivers/mysql/connection.h"

#include <string.h>

#include "base/error.h"

#define PARAMETERS_MAX 96
#define SYNTAX_ERROR 1064
#define STALE_STATEMENT 1615

/* The parameters of one execution.  The client library keeps pointers to them
 * until the statement is executed. */
struct arguments {
    MYSQL_BIND binds[PARAMETERS_MAX];
    int64_t integers[PARAMETERS_MAX];
};

static void bind_arguments(struct arguments *to, const sqlock_value *from,
                           size_t count)
{
    size_t i;

    memset(to->binds, 0, count * sizeof *to->binds);
    for (i = 0; i < count; i++) {
        MYSQL_BIND *bind = &to->binds[i];

        switch (from[i].type) {
        case SQLOCK_NULL:
            bind->buffer_type = MYSQL_TYPE_NULL;
            break;
        case SQLOCK_INT64:
            to->integers[i] = from[i].integer;
            bind->buffer_type = MYSQL_TYPE_LONGLONG;
            bind->buffer = &to->integers[i];
            break;
        case SQLOCK_TEXT:
            /* The library only reads it, though the type is not const. */
            bind->buffer_type = MYSQL_TYPE_STRING;
            bind->buffer = (void *)(uintptr_t)from[i].text;
            bind->buffer_length = from[i].length;
            break;
        }
    }
}

static int prepare(struct lk_mysql_connection *connection, const char *text,
                   size_t count, MYSQL_STMT **out, sqlock_error *err)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection->mysql);
    int rc = 0;

    *out = NULL;
    if (statement == NULL)
        return lk_error_nomem(err);
    if (mysql_stmt_prepare(statement, text, strlen(text)) != 0)
        rc = lk_mysql_fail_statement(connection, statement, LK_MYSQL_PREPARING,
                                     err);
    else if (mysql_stmt_param_count(statement) != count)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the statement has %lu parameters, but %zu were given",
                      mysql_stmt_param_count(statement), count);
    if (rc < 0) {
        (void)mysql_stmt_close(statement);
        return rc;
    }
    *out = statement;
    return 0;
}

/* Prepare the statement, unless the connection has it already.  Slot 0, for
 * statements without an id, is emptied after each call. */
static int prepare_once(struct lk_mysql_connection *connection,
                        const sqlock_statement *statement, size_t count,
                        sqlock_error *err)
{
    MYSQL_STMT **place = &connection->prepared[statement->id].statement;

    if (*place != NULL)
        return 0;
    return prepare(connection, statement->text, count, place, err);
}

void lk_mysql_unprepare(struct lk_mysql_connection *connection, uint32_t id)
{
    struct lk_mysql_prepared *prepared = &connection->prepared[id];

    if (prepared->statement != NULL)
        (void)mysql_stmt_close(prepared->statement);
    lk_mysql_reader_free(prepared->reader);
    memset(prepared, 0, sizeof *prepared);
}

/* Send a prepared statement.  If the server has forgotten the statement, or the
 * statement no longer fits its table, the server has not executed it: prepare
 * and send it again, once (F56). */
static int start(struct lk_mysql_connection *connection,
                 const sqlock_statement *statement, struct arguments *arguments,
                 size_t count, sqlock_error *err)
{
    bool again = false;

    for (;;) {
        MYSQL_STMT *prepared;
        unsigned int number;
        int rc;

        rc = prepare_once(connection, statement, count, err);
        if (rc < 0)
            return rc;
        prepared = connection->prepared[statement->id].statement;
        if (mysql_stmt_param_count(prepared) != count)
            return lk_error(
                err, SQLOCK_EINVAL,
                "the statement has %lu parameters, but %zu were given",
                mysql_stmt_param_count(prepared), count);
        if (count > 0 && mysql_stmt_bind_param(prepared, arguments->binds))
            return lk_mysql_fail_statement(connection, prepared,
                                           LK_MYSQL_PREPARING, err);
        if (mysql_stmt_execute(prepared) == 0)
            return 0;
        number = mysql_stmt_errno(prepared);
        if (again ||
            (number != LK_MYSQL_UNKNOWN_STATEMENT && number != STALE_STATEMENT))
            return lk_mysql_fail_statement(connection, prepared,
                                           LK_MYSQL_RUNNING, err);
        lk_mysql_unprepare(connection, statement->id);
        again = true;
    }
}

#define TOLD_BIT (UINT64_C(1) << 62)

/* Put the insert id into `result` as a row, in the form that `kind` says.
 * Return 0, or EUNCERTAIN without memory: the statement has been executed. */
static int present_insert_id(uint64_t id, sqlock_insert_id kind,
                             sqlock_result *result, sqlock_error *err)
{
    bool is_upsert = kind == SQLOCK_INSERT_ID_UPSERT;
    bool is_complement = kind == SQLOCK_INSERT_ID_COMPLEMENT;
    const sqlock_value values[] = {
        {.type = is_complement && id == 0 ? SQLOCK_NULL : SQLOCK_INT64,
         .integer = (int64_t)(is_upsert       ? id & ~TOLD_BIT
                              : is_complement ? ~id
                                              : id)},
        {.type = SQLOCK_INT64, .integer = (id & TOLD_BIT) != 0},
        /* The server counts 2 for a row that existed. */
        {.type = SQLOCK_INT64, .integer = result->affected == 1},
    };
    size_t columns = is_upsert ? 3 : 1;
    int64_t affected = result->affected;
    int rc;

    rc = sqlock_result_start(result, columns);
    result->affected = affected;
    for (size_t i = 0; i < columns && rc == 0 && affected > 0; i++)
        rc = sqlock_result_push(result, &values[i]);
    if (rc < 0)
        return lk_error(err, SQLOCK_EUNCERTAIN,
                        "out of memory for the result of the statement");
    return 0;
}

/* Read and discard the results that are still to come.  Return 0, or the code
 * of an error among them. */
static int drain(struct lk_mysql_connection *connection, MYSQL_STMT *prepared,
                 sqlock_error *err)
{
    int next;

    do {
        (void)mysql_stmt_free_result(prepared);
        next = mysql_stmt_next_result(prepared);
    } while (next == 0);
    return next < 0 ? 0
                    : lk_mysql_fail_statement(connection, prepared,
                                              LK_MYSQL_RUNNING, err);
}

/* Read a statement's rows, or its row count and insert id.  After a failure the
 * statement is closed: if the server ends a result with an error, Connector/C
 * still expects rows, and would wait for them at the statement's next use. */
static int finish(struct lk_mysql_connection *connection,
                  const sqlock_statement *statement, sqlock_result *result,
                  sqlock_error *err)
{
    struct lk_mysql_prepared *place = &connection->prepared[statement->id];
    MYSQL_STMT *prepared = place->statement;
    int rc = 0;

    if (mysql_stmt_field_count(prepared) > 0) {
        rc = lk_mysql_unread(
            lk_mysql_read_prepared(connection, place, result, err), err);
    } else {
        result->affected = (int64_t)mysql_stmt_affected_rows(prepared);
        if (statement->insert_id != SQLOCK_INSERT_ID_UNUSED)
            rc = present_insert_id(mysql_stmt_insert_id(prepared),
                                   statement->insert_id, result, err);
    }
    if (rc == 0)
        rc = drain(connection, prepared, err);
    if (rc < 0)
        lk_mysql_unprepare(connection, statement->id);
    return rc;
}

static int run_prepared(struct lk_mysql_connection *connection,
                        const sqlock_statement *statement,
                        const sqlock_value *parameters, size_t count,
                        sqlock_result *result, sqlock_error *err)
{
    struct arguments arguments;
    int rc;

    bind_arguments(&arguments, parameters, count);
    rc = start(connection, statement, &arguments, count, err);
    if (rc == 0)
        rc = finish(connection, statement, result, err);
    if (statement->id == 0)
        lk_mysql_unprepare(connection, 0);
    return rc;
}

/* Send a statement without parameters as text.  A placeholder in it is a syntax
 * error then: prepare it to find out whether parameters are missing. */
static int run_once(struct lk_mysql_connection *connection, const char *text,
                    sqlock_result *result, sqlock_error *err)
{
    int rc = lk_mysql_run_text(connection, text, result, err);
    MYSQL_STMT *prepared = NULL;
    sqlock_error own = {0};

    if (rc >= 0 || err->native != SYNTAX_ERROR || strchr(text, '?') == NULL)
        return rc;
    if (prepare(connection, text, 0, &prepared, &own) == SQLOCK_EINVAL)
        return lk_error_pass(err, &own, SQLOCK_EINVAL);
    if (prepared != NULL)
        (void)mysql_stmt_close(prepared);
    return rc;
}

/* Roll the whole transaction back after an error that may have undone only the
 * statement (a lock wait that timed out, or ER_CHECKREAD, 1020), so that half
 * of the transaction is never committed (F21).  Statements are refused until
 * commit or rollback is called.  Not done for a lock wait between `limit` and
 * `unlimit`: there the library returns to its savepoint instead. */
static void end_transaction(struct lk_mysql_connection *connection)
{
    connection->is_rolled_back = true;
    if (connection->is_broken)
        return;
    if (mysql_query(connection->mysql, "ROLLBACK") != 0)
        connection->is_broken = true;
}

/* Check, after the refusal of a lock with NOWAIT, that the transaction still
 * exists: with innodb_rollback_on_timeout MariaDB has rolled it back, and the
 * error does not say so.  Return `rc`, the refusal, or another error. */
static int check_transaction(struct lk_mysql_connection *connection, int rc,
                             sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;

    if (mysql_query(mysql, "DO 0") != 0)
        return lk_mysql_fail(connection, LK_MYSQL_RUNNING, err);
    if ((mysql->server_status & SERVER_STATUS_IN_TRANS) != 0)
        return rc;
    connection->is_rolled_back = true;
    return lk_error(err, SQLOCK_ERETRY,
                    "a row is locked by another transaction, and the server "
                    "rolls transactions back for it "
                    "(innodb_rollback_on_timeout)");
}

/* Find out what an error did to the transaction, and roll the transaction back
 * if it cannot continue.  Return the code to report, mostly `rc`. */
static int settle(struct lk_mysql_connection *connection,
                  const sqlock_statement *statement, int rc, sqlock_error *err)
{
    bool is_wait;

    if (rc >= 0 || !connection->in_transaction)
        return rc;
    is_wait = err->native == LK_MYSQL_LOCK_WAIT_TIMEOUT;
    if (rc != SQLOCK_ERETRY && is_wait && statement->is_nowait)
        return check_transaction(connection, rc, err);
    /* InnoDB rolls back the whole transaction when it has no room for locks. */
    if (rc == SQLOCK_ERETRY || err->native == LK_MYSQL_LOCK_TABLE_FULL ||
        (is_wait && !connection->is_limited))
        end_transaction(connection);
    return rc;
}

static int run(struct lk_mysql_connection *connection,
               const sqlock_statement *statement,
               const sqlock_value *parameters, size_t count,
               sqlock_result *result, sqlock_error *err)
{
    int rc = lk_mysql_stay_in_group(connection, err);

    if (rc == 0 && !connection->in_transaction)
        rc = lk_mysql_unset_idle(connection, err);
    if (rc < 0)
        return rc;
    rc = SQLOCK_ENOTFOUND;
    if (connection->prepared[statement->id].is_named)
        rc = lk_mysql_run_named(connection, statement, parameters, count,
                                result, err);
    if (rc == SQLOCK_ENOTFOUND && statement->id == 0 && count == 0)
        rc = run_once(connection, statement->text, result, err);
    else if (rc == SQLOCK_ENOTFOUND)
        rc =
            run_prepared(connection, statement, parameters, count, result, err);
    return settle(connection, statement, rc, err);
}

int lk_mysql_execute(void *handle, const sqlock_statement *statement,
                     const sqlock_value *parameters, size_t count,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    sqlock_result given = {0};
    sqlock_error own;
    int rc;

    if (err == NULL)
        err = &own;
    if (statement->id > SQLOCK_STATEMENT_IDS || count > PARAMETERS_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the statement's id, or its number of parameters, is too large");
    if (connection->is_rolled_back)
        return lk_error(err, SQLOCK_ERETRY,
                        "an error has rolled the transaction back");
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = run(connection, statement, parameters, count, &given, err);
    lk_mysql_call_end(connection);
    if (rc == 0 && result != NULL) {
        sqlock_result_clear(result);
        *result = given;
    } else {
        sqlock_result_clear(&given);
    }
    return rc;
}
