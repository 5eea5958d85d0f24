/*
 * again.c - a session that the application lends repeatedly: the server keeps
 * statements there by names, which nothing of the client library knows of
 *
 * Only MariaDB is asked for that: MySQL has no blocks outside of procedures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "drivers/mysql/connection.h"

#define SIGNALED 1644

/* This says whether the session has the number that the client library knows,
 * which a pooler makes up.  It is asked first, since some poolers keep a
 * session for a client that has prepared a statement there. */
#define IS_OURS_ALONE "SELECT CONNECTION_ID() = %lu"

/* The block begins; or it fails, if the session has changed since the
 * application lent it first: a transaction is open, texts are not UTF-8, or it
 * has another database (`?`: within EXECUTE, DATABASE() is that of PREPARE). */
#define PREPARE_BEGIN                                                          \
    "PREPARE `sqlock_%s_begin` FROM CONCAT("                                   \
    "'BEGIN NOT ATOMIC IF @@in_transaction = 0 "                               \
    "AND @@character_set_client = ''utf8mb4'' "                                \
    "AND @@character_set_connection = ''utf8mb4'' "                            \
    "AND COALESCE(@@character_set_results, ''utf8mb4'') = ''utf8mb4'' "        \
    "AND ? <=> ', COALESCE(CONCAT('X''', HEX(DATABASE()), ''''), 'NULL'), "    \
    "' THEN START TRANSACTION; ELSE SIGNAL SQLSTATE ''45000''; END IF; "       \
    "END')"
#define BEGIN "EXECUTE `sqlock_%s_begin` USING DATABASE()"

/* The block runs GUARD, and sets a savepoint, which is removed by all that
 * releases the locked row: the end of the transaction, or a ROLLBACK TO an
 * earlier SAVEPOINT.  The block returns no row, which would cost more than the
 * savepoint: it fails where that is not a 1, and the statement is then sent in
 * the usual way. */
#define PREPARE_CALL "PREPARE `sqlock_%s_%u` FROM "
#define CALL                                                                   \
    "BEGIN NOT ATOMIC DECLARE is_valid INT; %s INTO is_valid; "                \
    "IF is_valid THEN SAVEPOINT `sqlock_%s`; "                                 \
    "ELSE SIGNAL SQLSTATE '45000'; END IF; END"

/* The block commits, unless the savepoint does not exist. */
#define PREPARE_COMMIT                                                         \
    "PREPARE `sqlock_%s_commit` FROM "                                         \
    "'BEGIN NOT ATOMIC RELEASE SAVEPOINT `sqlock_%s`; COMMIT; END'"
#define COMMIT "EXECUTE `sqlock_%s_commit`"

#define TEXT_SIZE 1024

static int send(struct lk_mysql_connection *connection, const char *text,
                sqlock_error *err)
{
    return mysql_query(connection->mysql, text) != 0
               ? lk_mysql_fail(connection, LK_MYSQL_PREPARING, err)
               : 0;
}

/* Write bytes as a literal that no setting of the session changes. */
static void write_literal(FILE *out, const char *bytes, size_t length)
{
    (void)fputs("_utf8mb4 X'", out);
    for (size_t i = 0; i < length; i++)
        (void)fprintf(out, "%02x", (unsigned char)bytes[i]);
    (void)fputc('\'', out);
}

static void write_value(FILE *out, const sqlock_value *value)
{
    switch (value->type) {
    case SQLOCK_NULL:
        (void)fputs("NULL", out);
        break;
    case SQLOCK_INT64:
        (void)fprintf(out, "%lld", (long long)value->integer);
        break;
    case SQLOCK_TEXT:
        write_literal(out, value->text, value->length);
        break;
    }
}

/* Close the stream of a text.  Return 0 or ENOMEM. */
static int finish(FILE *out, sqlock_error *err)
{
    bool is_whole = ferror(out) == 0;

    return fclose(out) == 0 && is_whole ? 0 : lk_error_nomem(err);
}

/* --- to prepare --- */

static int prepare_call(struct lk_mysql_connection *connection,
                        const sqlock_call *call, sqlock_error *err)
{
    const sqlock_statement *statement = call->statement;
    const char *owner = connection->owner;
    char *block = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out;
    int rc;

    if (asprintf(&block, CALL, statement->text, owner) < 0)
        return lk_error_nomem(err);
    out = open_memstream(&text, &size);
    if (out == NULL) {
        free(block);
        return lk_error_nomem(err);
    }
    (void)fprintf(out, PREPARE_CALL, owner, statement->id);
    write_literal(out, block, strlen(block));
    free(block);
    rc = finish(out, err);
    if (rc == 0)
        rc = send(connection, text, err);
    free(text);
    return rc;
}

static int check_number(struct lk_mysql_connection *connection,
                        sqlock_error *err)
{
    sqlock_result result = {0};
    char text[TEXT_SIZE];
    bool is_ours;
    int rc;

    (void)snprintf(text, sizeof text, IS_OURS_ALONE, connection->thread_id);
    rc = lk_mysql_run_text(connection, text, &result, err);
    is_ours = result.rows > 0 && result.cells[0].integer == 1;
    sqlock_result_clear(&result);
    return rc < 0 || is_ours
               ? rc
               : lk_error(err, SQLOCK_ENOTSUP, "a pooler lends the session");
}

static int prepare_all(struct lk_mysql_connection *connection,
                       const sqlock_call *calls, size_t count,
                       sqlock_error *err)
{
    const char *owner = connection->owner;
    char text[TEXT_SIZE];
    int rc = check_number(connection, err);

    if (rc < 0)
        return rc;
    (void)snprintf(text, sizeof text, PREPARE_BEGIN, owner);
    rc = send(connection, text, err);
    if (rc < 0)
        return rc;
    (void)snprintf(text, sizeof text, PREPARE_COMMIT, owner, owner);
    rc = send(connection, text, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = prepare_call(connection, &calls[i], err);
    return rc;
}

static void give_names(struct lk_mysql_connection *connection,
                       const sqlock_call *calls, size_t count)
{
    connection->has_names = true;
    for (size_t i = 0; i < count; i++)
        connection->prepared[calls[i].statement->id].is_named = true;
}

static void set_owner(struct lk_mysql_connection *connection, const char *owner)
{
    (void)snprintf(connection->owner, sizeof connection->owner, "%s", owner);
}

int lk_mysql_prepare_named(void *handle, const char *owner,
                           const sqlock_call *calls, size_t count,
                           int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc;

    if (!lk_mysql_is_mariadb(connection->mysql))
        return lk_error(err, SQLOCK_ENOTSUP,
                        "MySQL prepares no block of statements");
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    set_owner(connection, owner);
    rc = prepare_all(connection, calls, count, err);
    lk_mysql_call_end(connection);
    if (rc == 0)
        give_names(connection, calls, count);
    return rc;
}

/* --- to use --- */

/* Begin in the session.  An error other than that of an unknown name, and the
 * block's own, may have come after the transaction had begun. */
static int begin(struct lk_mysql_connection *connection, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    char text[TEXT_SIZE];
    bool has_failed;
    unsigned number;

    (void)snprintf(text, sizeof text, BEGIN, connection->owner);
    has_failed = mysql_query(mysql, text) != 0;
    number = has_failed ? mysql_errno(mysql) : 0;
    if (number == LK_MYSQL_UNKNOWN_STATEMENT)
        return lk_error(err, SQLOCK_ENOTFOUND,
                        "the session has none of our statements");
    if (has_failed && number != SIGNALED) {
        int rc = lk_mysql_fail(connection, LK_MYSQL_PREPARING, err);

        if (connection->is_broken)
            return rc;
        rc = send(connection, "ROLLBACK", err);
        if (rc < 0)
            return rc;
    }
    if (has_failed || (mysql->server_status & SERVER_STATUS_IN_TRANS) == 0)
        return lk_error(err, SQLOCK_ECONFLICT, "the session has changed");
    connection->in_transaction = true;
    return 0;
}

/* Return whether the application has read the results of its statements. */
static bool is_ready(const MYSQL *mysql)
{
    return mysql->status == MYSQL_STATUS_READY &&
           (mysql->server_status & SERVER_MORE_RESULTS_EXIST) == 0;
}

int lk_mysql_resume(void *handle, const char *owner, const sqlock_call *calls,
                    size_t count, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc;

    if (!is_ready(connection->mysql))
        return lk_error(err, SQLOCK_ECONFLICT, "a result is in progress");
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    set_owner(connection, owner);
    rc = begin(connection, err);
    lk_mysql_call_end(connection);
    if (rc == 0)
        give_names(connection, calls, count);
    return rc;
}

/* Make *result the row that GUARD has found. */
static int present(sqlock_result *result, sqlock_error *err)
{
    const sqlock_value valid = {.type = SQLOCK_INT64, .integer = 1};

    return sqlock_result_start(result, 1) < 0 ||
                   sqlock_result_push(result, &valid) < 0
               ? lk_mysql_unread(SQLOCK_ENOMEM, err)
               : 0;
}

int lk_mysql_run_named(struct lk_mysql_connection *connection,
                       const sqlock_statement *statement,
                       const sqlock_value *values, size_t count,
                       sqlock_result *result, sqlock_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int rc;

    if (out == NULL)
        return lk_error_nomem(err);
    (void)fprintf(out, "EXECUTE `sqlock_%s_%u`", connection->owner,
                  statement->id);
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i == 0 ? " USING " : ", ", out);
        write_value(out, &values[i]);
    }
    rc = finish(out, err);
    if (rc == 0)
        rc = lk_mysql_run_text(connection, text, result, err);
    free(text);
    if (rc == 0) {
        connection->has_savepoint = true;
        return present(result, err);
    }
    if (err->native == LK_MYSQL_UNKNOWN_STATEMENT) {
        connection->has_names = false;
        connection->has_savepoint = false;
        connection->prepared[statement->id].is_named = false;
    }
    return err->native == LK_MYSQL_UNKNOWN_STATEMENT || err->native == SIGNALED
               ? SQLOCK_ENOTFOUND
               : rc;
}

bool lk_mysql_has_names(void *handle)
{
    const struct lk_mysql_connection *connection = handle;

    return connection->has_names;
}

int lk_mysql_commit_same(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    char text[TEXT_SIZE];

    if (!connection->has_savepoint)
        return lk_error(err, SQLOCK_ENOTFOUND, "no savepoint was set");
    (void)snprintf(text, sizeof text, COMMIT, connection->owner);
    return lk_mysql_commit_by(connection, text, deadline_ns, err);
}
