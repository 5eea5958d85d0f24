/*
 * execute.c - run one statement: prepare it, bind its parameters, step to the
 * end, collect the rows
 *
 * Only SQLITE_DONE means success: a writing statement with RETURNING returns
 * its rows first and commits at its last step.
 */
#include <string.h>

#include "base/error.h"
#include "drivers/sqlite/connection.h"

/* Return whether more than blanks and semicolons follows a statement. */
static bool has_more(const char *tail)
{
    return tail != NULL && tail[strspn(tail, " \t\r\n;")] != '\0';
}

/* Prepare the statement, or find the one that was prepared under its id.
 * SQLite itself prepares a statement again when the table's shape has changed.
 * The caller finalizes *out if the statement has no id; *out is NULL for a text
 * of blanks and comments. */
static int prepare(struct lk_sqlite *c, const sqlock_statement *statement,
                   sqlite3_stmt **out, sqlock_error *err)
{
    bool is_kept = statement->id > 0 && statement->id < LK_SQLITE_STATEMENTS;
    const char *tail = NULL;
    int rc;

    *out = is_kept ? c->prepared[statement->id] : NULL;
    if (*out != NULL)
        return 0;
    rc =
        sqlite3_prepare_v3(c->db, statement->text, -1,
                           is_kept ? SQLITE_PREPARE_PERSISTENT : 0, out, &tail);
    if (rc != SQLITE_OK)
        return lk_sqlite_failure_to_read(c, err);
    if (has_more(tail)) {
        (void)sqlite3_finalize(*out);
        *out = NULL;
        return lk_error(err, SQLOCK_EINVAL,
                        "the text contains more than one SQL statement");
    }
    if (is_kept)
        c->prepared[statement->id] = *out;
    return 0;
}

static int bind(struct lk_sqlite *c, sqlite3_stmt *prepared,
                const sqlock_value *values, size_t count, sqlock_error *err)
{
    if (count != (size_t)sqlite3_bind_parameter_count(prepared))
        return lk_error(
            err, SQLOCK_EINVAL,
            "the SQL statement has %d parameters, but %zu were given",
            sqlite3_bind_parameter_count(prepared), count);
    for (size_t i = 0; i < count; i++) {
        const sqlock_value *value = &values[i];
        int at = (int)i + 1;
        int rc;

        switch (value->type) {
        case SQLOCK_INT64:
            rc = sqlite3_bind_int64(prepared, at, value->integer);
            break;
        case SQLOCK_TEXT:
            rc = sqlite3_bind_text64(prepared, at, value->text, value->length,
                                     SQLITE_STATIC, SQLITE_UTF8);
            break;
        default:
            rc = sqlite3_bind_null(prepared, at);
            break;
        }
        if (rc != SQLITE_OK)
            return lk_sqlite_failure(c, err);
    }
    return 0;
}

/* Append a cell.  Numbers with a fraction and blobs become text. */
static int push_cell(sqlock_result *result, sqlite3_stmt *prepared, int column,
                     sqlock_error *err)
{
    sqlock_value value = {.type = SQLOCK_NULL};
    int rc;

    switch (sqlite3_column_type(prepared, column)) {
    case SQLITE_NULL:
        break;
    case SQLITE_INTEGER:
        value.type = SQLOCK_INT64;
        value.integer = sqlite3_column_int64(prepared, column);
        break;
    default:
        value.type = SQLOCK_TEXT;
        value.text = (const char *)sqlite3_column_text(prepared, column);
        value.length = (size_t)sqlite3_column_bytes(prepared, column);
        if (value.text == NULL)
            return lk_error_nomem(err);
        if (memchr(value.text, '\0', value.length) != NULL)
            return lk_error(err, SQLOCK_EDATABASE,
                            "a text in the database contains a zero byte");
        break;
    }
    rc = sqlock_result_push(result, &value);
    return rc < 0 ? lk_error_nomem(err) : 0;
}

static int push_row(sqlock_result *result, sqlite3_stmt *prepared,
                    sqlock_error *err)
{
    int columns = sqlite3_column_count(prepared);
    int rc = 0;

    for (int i = 0; i < columns && rc == 0; i++)
        rc = push_cell(result, prepared, i, err);
    return rc;
}

/* End a statement whose row could not be returned.  A reset alone would commit
 * the rows that it wrote; an interrupt rolls back the statement and its
 * transaction.  Return the code of the failure, or SQLOCK_EUNCERTAIN if the
 * interrupt came too late. */
static int give_up(struct lk_sqlite *c, sqlite3_stmt *prepared, int code,
                   sqlock_error *err)
{
    if (sqlite3_stmt_readonly(prepared))
        return code;
    sqlite3_interrupt(c->db);
    if (sqlite3_step(prepared) == SQLITE_INTERRUPT)
        return code;
    c->is_broken = true;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the result of a written row could not be read");
}

/* Take the first step, which takes SQLite's locks.  For a few statements, such
 * as the change to WAL, SQLite does not call the busy handler: they wait here,
 * but not within a transaction, where that might be a deadlock. */
static int first_step(struct lk_sqlite *c, sqlite3_stmt *prepared)
{
    int step = sqlite3_step(prepared);
    int refusals = 0;

    while (step == SQLITE_BUSY && sqlite3_get_autocommit(c->db) != 0 &&
           lk_sqlite_call_nap(c, refusals++)) {
        (void)sqlite3_reset(prepared);
        step = sqlite3_step(prepared);
    }
    return step;
}

/* Return whether a statement only reads.  For sqlite3_stmt_readonly() that
 * includes COMMIT, which has no columns. */
static bool only_reads(sqlite3_stmt *prepared)
{
    return sqlite3_stmt_readonly(prepared) != 0 &&
           sqlite3_column_count(prepared) > 0;
}

/* Return whether a statement takes SQLite's write lock, and is to queue for it
 * in turn.c.  An adopted handle waits only as the application has set it up. */
static bool takes_lock(const struct lk_sqlite *c, sqlite3_stmt *prepared)
{
    return !c->is_adopted && sqlite3_get_autocommit(c->db) != 0 &&
           !sqlite3_stmt_readonly(prepared);
}

static int collect(struct lk_sqlite *c, sqlite3_stmt *prepared,
                   sqlock_result *result, sqlock_error *err)
{
    int step = first_step(c, prepared);
    int rc;

    /* Only now is the number of columns certain: SQLite notices in the first
     * step that a table has changed. */
    rc = sqlock_result_start(result, (size_t)sqlite3_column_count(prepared));
    if (rc < 0 && step == SQLITE_ROW)
        return give_up(c, prepared, lk_error_nomem(err), err);
    while (step == SQLITE_ROW) {
        rc = push_row(result, prepared, err);
        if (rc < 0)
            return give_up(c, prepared, rc, err);
        step = sqlite3_step(prepared);
    }
    if (step == SQLITE_DONE)
        return 0;
    return only_reads(prepared) ? lk_sqlite_failure_to_read(c, err)
                                : lk_sqlite_failure(c, err);
}

static int collect_in_turn(struct lk_sqlite *c, sqlite3_stmt *prepared,
                           sqlock_result *result, sqlock_error *err)
{
    bool is_in_turn = takes_lock(c, prepared);
    int rc;

    if (is_in_turn)
        lk_sqlite_turn_take(c);
    rc = collect(c, prepared, result, err);
    if (is_in_turn)
        lk_sqlite_turn_give(c);
    return rc;
}

static int push_insert_id(struct lk_sqlite *c, sqlock_result *result)
{
    sqlock_value value = {.type = SQLOCK_INT64};
    int rc;

    value.integer = sqlite3_last_insert_rowid(c->db);
    rc = sqlock_result_start(result, 1);
    if (rc < 0)
        return rc;
    return sqlock_result_push(result, &value);
}

/* Return the number of rows changed.  A statement that is no INSERT, UPDATE or
 * DELETE leaves sqlite3_changes() as it was, so that number counts only if the
 * total has changed, too. */
static int64_t count_of_changes(struct lk_sqlite *c, int total_before)
{
    if (sqlite3_total_changes(c->db) == total_before)
        return 0;
    return sqlite3_changes(c->db);
}

int lk_sqlite_run(struct lk_sqlite *c, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  sqlock_result *result, sqlock_error *err)
{
    int total_before = sqlite3_total_changes(c->db);
    sqlock_result rows = {.rows = 0};
    sqlite3_stmt *prepared = NULL;
    int64_t affected;
    int rc;

    rc = prepare(c, statement, &prepared, err);
    if (rc < 0)
        return rc;
    rc = bind(c, prepared, parameters, count, err);
    if (rc < 0)
        goto out;
    c->running = prepared;
    if (prepared != NULL)
        rc = collect_in_turn(c, prepared, &rows, err);
    c->running = NULL;
    if (rc < 0)
        goto out;
    affected = count_of_changes(c, total_before);
    if (statement->insert_id != SQLOCK_INSERT_ID_UNUSED && affected > 0 &&
        push_insert_id(c, &rows) < 0) {
        /* The row is written, and committed unless a transaction is open. */
        rc = lk_error(err, SQLOCK_EUNCERTAIN, "out of memory");
        goto out;
    }
    rows.affected = affected;
    if (result != NULL) {
        sqlock_result_clear(result);
        *result = rows;
        memset(&rows, 0, sizeof rows);
    }
out:
    /* Unbind the texts, which are not copies. */
    if (prepared != NULL) {
        (void)sqlite3_reset(prepared);
        (void)sqlite3_clear_bindings(prepared);
    }
    if (statement->id == 0 || statement->id >= LK_SQLITE_STATEMENTS)
        (void)sqlite3_finalize(prepared);
    sqlock_result_clear(&rows);
    return rc;
}
