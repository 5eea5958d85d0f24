/*
 * rows.c - convert result sets to sqlock_result
 *
 * Integers become integers, everything else text.  Sizes come from the server,
 * so nothing is read before its length is known to fit (F55).  All rows are
 * read from the connection before the first one is converted.
 */
#include "drivers/mysql/connection.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define TEXT_USUAL 256

struct column {
    int64_t integer;
    unsigned long length;
    lk_mysql_bool is_null;
    lk_mysql_bool is_cut;
    char usual[TEXT_USUAL];
    char *grown; /* for a text that is longer than usual */
};

struct lk_mysql_reader {
    size_t count;
    struct column *columns;
    MYSQL_BIND *binds;
};

static bool is_integer(enum enum_field_types type)
{
    switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return true;
    default:
        return false;
    }
}

static int refuse_value(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EDATABASE,
                    "the server returned an integer that is too large, or a "
                    "text that contains NUL");
}

static int push(sqlock_result *result, sqlock_value value, sqlock_error *err)
{
    return sqlock_result_push(result, &value) < 0 ? lk_error_nomem(err) : 0;
}

static int push_text(sqlock_result *result, const char *text, size_t length,
                     sqlock_error *err)
{
    if (memchr(text, '\0', length) != NULL)
        return refuse_value(err);
    return push(
        result,
        (sqlock_value){.type = SQLOCK_TEXT, .text = text, .length = length},
        err);
}

static int push_integer(sqlock_result *result, int64_t integer,
                        sqlock_error *err)
{
    return push(result,
                (sqlock_value){.type = SQLOCK_INT64, .integer = integer}, err);
}

/* Free the buffers for long texts, which are rare; called after each result. */
static void forget_long_texts(struct lk_mysql_reader *reader)
{
    size_t i;

    for (i = 0; i < reader->count; i++) {
        free(reader->columns[i].grown);
        reader->columns[i].grown = NULL;
    }
}

void lk_mysql_reader_free(struct lk_mysql_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->columns != NULL)
        forget_long_texts(reader);
    free(reader->columns);
    free(reader->binds);
    free(reader);
}

static struct lk_mysql_reader *reader_new(size_t count)
{
    struct lk_mysql_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->count = count;
    reader->columns = calloc(count, sizeof *reader->columns);
    reader->binds = calloc(count, sizeof *reader->binds);
    if (reader->columns == NULL || reader->binds == NULL) {
        lk_mysql_reader_free(reader);
        return NULL;
    }
    return reader;
}

static void point_at_columns(struct lk_mysql_reader *reader,
                             const MYSQL_FIELD *fields)
{
    size_t i;

    for (i = 0; i < reader->count; i++) {
        struct column *column = &reader->columns[i];
        MYSQL_BIND *bind = &reader->binds[i];

        memset(bind, 0, sizeof *bind);
        bind->length = &column->length;
        bind->is_null = &column->is_null;
        bind->error = &column->is_cut;
        if (is_integer(fields[i].type)) {
            bind->buffer_type = MYSQL_TYPE_LONGLONG;
            bind->buffer = &column->integer;
        } else {
            bind->buffer_type = MYSQL_TYPE_STRING;
            bind->buffer = column->usual;
            bind->buffer_length = sizeof column->usual;
        }
    }
}

/* Make the statement's reader, or a new one if the number of columns has
 * changed, and bind it to the statement.  libmysqlclient writes through the
 * pointers of the last bind once more at the next execution, so the old reader
 * is freed only after the new one is bound. */
static int bind_columns(struct lk_mysql_connection *connection,
                        struct lk_mysql_prepared *prepared, MYSQL_RES *metadata,
                        sqlock_error *err)
{
    size_t count = mysql_num_fields(metadata);
    struct lk_mysql_reader *reader = prepared->reader;

    if (mysql_stmt_field_count(prepared->statement) != count)
        return lk_error(err, SQLOCK_EDATABASE,
                        "the server changed the number of columns");
    if (reader == NULL || reader->count != count) {
        reader = reader_new(count);
        if (reader == NULL)
            return lk_error_nomem(err);
    }
    point_at_columns(reader, mysql_fetch_fields(metadata));
    if (mysql_stmt_bind_result(prepared->statement, reader->binds)) {
        if (reader != prepared->reader)
            lk_mysql_reader_free(reader);
        return lk_mysql_fail_statement(connection, prepared->statement,
                                       LK_MYSQL_RUNNING, err);
    }
    if (reader != prepared->reader) {
        lk_mysql_reader_free(prepared->reader);
        prepared->reader = reader;
    }
    return 0;
}

static int push_long_text(struct lk_mysql_connection *connection,
                          MYSQL_STMT *statement, struct lk_mysql_reader *reader,
                          size_t i, sqlock_result *result, sqlock_error *err)
{
    struct column *column = &reader->columns[i];
    MYSQL_BIND bind = reader->binds[i];
    unsigned long length = column->length;
    char *grown = realloc(column->grown, length);

    if (grown == NULL)
        return lk_error_nomem(err);
    column->grown = grown;
    bind.buffer = grown;
    bind.buffer_length = length;
    if (mysql_stmt_fetch_column(statement, &bind, (unsigned int)i, 0) != 0)
        return lk_mysql_fail_statement(connection, statement, LK_MYSQL_RUNNING,
                                       err);
    return push_text(result, grown, length, err);
}

static int push_row(struct lk_mysql_connection *connection,
                    MYSQL_STMT *statement, struct lk_mysql_reader *reader,
                    sqlock_result *result, sqlock_error *err)
{
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < reader->count; i++) {
        const struct column *column = &reader->columns[i];

        if (column->is_null)
            rc = push(result, (sqlock_value){.type = SQLOCK_NULL}, err);
        else if (reader->binds[i].buffer_type != MYSQL_TYPE_LONGLONG &&
                 column->length > sizeof column->usual)
            rc = push_long_text(connection, statement, reader, i, result, err);
        else if (column->is_cut)
            rc = refuse_value(err);
        else if (reader->binds[i].buffer_type == MYSQL_TYPE_LONGLONG)
            rc = push_integer(result, column->integer, err);
        else
            rc = push_text(result, column->usual, column->length, err);
    }
    return rc;
}

int lk_mysql_read_prepared(struct lk_mysql_connection *connection,
                           struct lk_mysql_prepared *prepared,
                           sqlock_result *result, sqlock_error *err)
{
    MYSQL_STMT *statement = prepared->statement;
    MYSQL_RES *metadata = mysql_stmt_result_metadata(statement);
    int fetched;
    int rc;

    if (mysql_stmt_store_result(statement) != 0 || metadata == NULL) {
        rc = lk_mysql_fail_statement(connection, statement, LK_MYSQL_RUNNING,
                                     err);
        goto out;
    }
    rc = bind_columns(connection, prepared, metadata, err);
    if (rc < 0)
        goto out;
    if (sqlock_result_start(result, prepared->reader->count) < 0) {
        rc = lk_error_nomem(err);
        goto out;
    }
    while (rc == 0) {
        fetched = mysql_stmt_fetch(statement);
        if (fetched == MYSQL_NO_DATA)
            break;
        if (fetched != 0 && fetched != MYSQL_DATA_TRUNCATED)
            rc = lk_mysql_fail_statement(connection, statement,
                                         LK_MYSQL_RUNNING, err);
        else
            rc = push_row(connection, statement, prepared->reader, result, err);
    }
    forget_long_texts(prepared->reader);
out:
    if (metadata != NULL)
        mysql_free_result(metadata);
    return rc;
}

static int push_text_row(MYSQL_RES *rows, MYSQL_ROW row, sqlock_result *result,
                         sqlock_error *err)
{
    const MYSQL_FIELD *fields = mysql_fetch_fields(rows);
    const unsigned long *lengths = mysql_fetch_lengths(rows);
    size_t i;
    int rc = 0;

    for (i = 0; rc == 0 && i < result->columns; i++) {
        int64_t integer;

        if (row[i] == NULL)
            rc = push(result, (sqlock_value){.type = SQLOCK_NULL}, err);
        else if (!is_integer(fields[i].type))
            rc = push_text(result, row[i], lengths[i], err);
        else if (strlen(row[i]) == lengths[i] &&
                 lk_text_integer(row[i], &integer))
            rc = push_integer(result, integer, err);
        else
            rc = refuse_value(err);
    }
    return rc;
}

int lk_mysql_read_text(struct lk_mysql_connection *connection,
                       sqlock_result *result, sqlock_error *err)
{
    MYSQL_RES *rows = mysql_store_result(connection->mysql);
    MYSQL_ROW row;
    int rc = 0;

    if (rows == NULL) {
        if (mysql_field_count(connection->mysql) > 0)
            return lk_mysql_fail(connection, LK_MYSQL_RUNNING, err);
        result->affected = (int64_t)mysql_affected_rows(connection->mysql);
        return 0;
    }
    if (sqlock_result_start(result, mysql_num_fields(rows)) < 0)
        rc = lk_error_nomem(err);
    while (rc == 0) {
        row = mysql_fetch_row(rows);
        if (row == NULL)
            break;
        rc = push_text_row(rows, row, result, err);
    }
    mysql_free_result(rows);
    return rc;
}

/* Replace the ENOMEM of reading a result by EUNCERTAIN: the statement was
 * executed, and its outcome is unknown. */
int lk_mysql_unread(int rc, sqlock_error *err)
{
    return rc != SQLOCK_ENOMEM ? rc
                               : lk_error(err, SQLOCK_EUNCERTAIN,
                                          "out of memory for the answer");
}

int lk_mysql_run_text(struct lk_mysql_connection *connection, const char *text,
                      sqlock_result *result, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    bool is_first = true;
    int next = 0;
    int rc = 0;

    /* Connector/C returns -1 if it could not send.  From mysql_next_result(),
       -1 means only that there are no more results. */
    if (mysql_real_query(mysql, text, strlen(text)) != 0)
        return lk_mysql_fail(connection, LK_MYSQL_RUNNING, err);
    for (; next == 0; next = mysql_next_result(mysql)) {
        sqlock_result ignored = {0};
        int one;

        one = lk_mysql_unread(
            lk_mysql_read_text(connection, is_first ? result : &ignored, err),
            err);
        sqlock_result_clear(&ignored);
        is_first = false;
        if (rc == 0)
            rc = one;
        if (connection->is_broken)
            return rc;
    }
    if (next > 0 && rc == 0)
        rc = lk_mysql_fail(connection, LK_MYSQL_RUNNING, err);
    return rc;
}
