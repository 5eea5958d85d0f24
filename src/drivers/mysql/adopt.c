/*
 * adopt.c - the application's own transactions on its MYSQL handle, and the
 * statements that lock and guard rows in them
 *
 * MariaDB and MySQL need different statements in places; each version stands in
 * a comment that the other server skips.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "drivers/mysql/connection.h"
#include "drivers/mysql/dialect.h"

#define OUT_OF_SYNC 2014

/* The character sets in which the server receives, compares and sends texts. */
#define CHARACTER_SETS                                                         \
    "SELECT @@character_set_client, @@character_set_connection, "              \
    "COALESCE(@@character_set_results, @@character_set_client)"
#define UTF8 "utf8mb4"

static bool is_in_transaction(MYSQL *mysql)
{
    return (mysql->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

/* Refuse a connection that the client library reopens by itself: a reconnect
 * would lose the transaction, and later statements would commit one by
 * one (F41). */
static int refuse_reconnect(MYSQL *mysql, sqlock_error *err)
{
    if (lk_mysql_client_reconnects(mysql))
        return lk_error(err, SQLOCK_EINVAL,
                        "the connection reconnects by itself, which loses "
                        "transactions: set MYSQL_OPT_RECONNECT to 0");
    return 0;
}

/* Refuse CLIENT_FOUND_ROWS: with that flag, inserting an order id that exists
 * already would count as one inserted row (F20). */
static int refuse_found_rows(const MYSQL *mysql, sqlock_error *err)
{
    if ((mysql->client_flag & CLIENT_FOUND_ROWS) != 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "the connection counts found rows instead of changed "
                        "rows: open it without CLIENT_FOUND_ROWS");
    return 0;
}

static int refuse_charset(const char *charset, sqlock_error *err)
{
    return lk_error(err, SQLOCK_EINVAL,
                    "the character set of the connection is %s, and texts are "
                    "sent in UTF-8: call mysql_set_character_set(mysql, "
                    "\"" UTF8 "\") first",
                    charset);
}

/* Refuse a character set other than utf8mb4: with a different one, one order id
 * could be stored as two texts; with three-byte UTF-8, two ids as one text. */
static int check_charsets(MYSQL_RES *result, sqlock_error *err)
{
    MYSQL_ROW row = mysql_fetch_row(result);

    if (row == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL connection does not work");
    for (unsigned i = 0; i < mysql_num_fields(result); i++)
        if (row[i] == NULL || strcmp(row[i], UTF8) != 0)
            return refuse_charset(row[i] == NULL ? "not known" : row[i], err);
    return 0;
}

/* Read the character sets from the server and check them.  The answer also
 * updates server_status with the state of the transaction, which an error that
 * the application got before has not done. */
static int probe(MYSQL *mysql, sqlock_error *err)
{
    MYSQL_RES *result = NULL;
    int rc;

    if (mysql_query(mysql, CHARACTER_SETS) == 0)
        result = mysql_store_result(mysql);
    if (result == NULL && mysql_errno(mysql) == OUT_OF_SYNC)
        return lk_error(err, SQLOCK_EINVAL,
                        "a result is in progress on this connection: read it "
                        "to its end first");
    if (result == NULL)
        return sqlock_error_set(
            err, SQLOCK_EINVAL, (int)mysql_errno(mysql), mysql_sqlstate(mysql),
            "the MySQL connection does not work: %s", mysql_error(mysql));
    rc = check_charsets(result, err);
    mysql_free_result(result);
    return rc;
}

/* With SHOW, since the variable does not exist without the plugin (Group
 * Replication), and SHOW then returns no row instead of an error.  The
 * application's transaction takes no snapshot: neither this statement nor that
 * of group.c reads an InnoDB table. */
#define GROUP_NAME                                                             \
    "SHOW VARIABLES WHERE Variable_name = 'group_replication_group_name' "     \
    "AND Value <> ''"

/* Refuse a server that is configured for Group Replication but is not an active
 * member: its group does not get its transactions. */
static int check_group(struct lk_mysql_connection *connection,
                       sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    MYSQL_RES *result = NULL;

    if (lk_mysql_is_mariadb(mysql))
        return 0;
    if (mysql_query(mysql, GROUP_NAME) == 0)
        result = mysql_store_result(mysql);
    if (result == NULL)
        return lk_mysql_fail(connection, LK_MYSQL_CONNECTING, err);
    connection->has_group = mysql_num_rows(result) > 0;
    mysql_free_result(result);
    return connection->has_group ? lk_mysql_ask_group(connection, err) : 0;
}

/* Check the character set once more, without a round trip.  The client library
 * knows of a mysql_set_character_set(), and MariaDB's also of a SET NAMES,
 * which the server reports.  Neither library knows of a SET NAMES before the
 * adoption, for which probe() has asked the server. */
static int check_adopted(void *handle, sqlock_error *err)
{
    const struct lk_mysql_connection *connection = handle;
    const char *charset = mysql_character_set_name(connection->mysql);

    if (strcmp(charset, connection->charset) == 0 || strcmp(charset, UTF8) == 0)
        return 0;
    return refuse_charset(charset, err);
}

static int adopt(void *handle, void *native, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    MYSQL *mysql = native;
    int rc;

    rc = lk_library_adopt(&lk_my_library, err);
    if (rc == 0)
        rc = lk_mysql_client_enter(err);
    if (rc < 0)
        return rc;
    if (mysql_thread_id(mysql) == 0 || lk_mysql_client_socket(mysql) < 0)
        return lk_error(err, SQLOCK_EINVAL, "the MySQL connection is not open");
    rc = refuse_reconnect(mysql, err);
    if (rc == 0)
        rc = refuse_found_rows(mysql, err);
    if (rc < 0)
        return rc;
    connection->mysql = mysql;
    connection->charset = mysql_character_set_name(mysql);
    connection->thread_id = mysql_thread_id(mysql);
    connection->in_transaction = is_in_transaction(mysql);
    rc = lk_mysql_set_alarm(connection, err);
    if (rc < 0)
        lk_mysql_clear_alarm(connection);
    return rc;
}

static int ask(void *handle, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc;

    lk_mysql_sigpipe_hold(connection);
    rc = probe(connection->mysql, err);
    if (rc == 0)
        rc = check_group(connection, err);
    lk_mysql_sigpipe_release(connection);
    connection->in_transaction = is_in_transaction(connection->mysql);
    return rc;
}

static int64_t session_number(void *handle)
{
    const struct lk_mysql_connection *connection = handle;

    return (int64_t)connection->thread_id;
}

static void unprepare_all(struct lk_mysql_connection *connection)
{
    lk_mysql_sigpipe_hold(connection);
    for (uint32_t id = 0; id <= SQLOCK_STATEMENT_IDS; id++)
        lk_mysql_unprepare(connection, id);
    lk_mysql_sigpipe_release(connection);
}

/* Each prepared statement that is freed sends a command.  Without leave to use
 * the handle they stay until it is closed, and then a few hundred bytes. */
static void unadopt(void *handle, bool may_use)
{
    struct lk_mysql_connection *connection = handle;

    if (connection->mysql == NULL)
        return;
    if (may_use)
        unprepare_all(connection);
    lk_mysql_clear_alarm(connection);
}

static sqlock_tx_state state(void *handle)
{
    struct lk_mysql_connection *connection = handle;

    if (connection->mysql == NULL || connection->is_broken ||
        atomic_load(&connection->was_aborted) ||
        mysql_thread_id(connection->mysql) != connection->thread_id)
        return SQLOCK_TX_GONE;
    if (connection->is_rolled_back)
        return SQLOCK_TX_ABORTED;
    if (!is_in_transaction(connection->mysql))
        return SQLOCK_TX_NONE;
    /* The application may have begun it. */
    connection->in_transaction = true;
    return SQLOCK_TX_OPEN;
}

/* --- limits of time --- */

static int run_text(struct lk_mysql_connection *connection, const char *text,
                    int64_t deadline_ns, sqlock_result *result,
                    sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};

    return lk_mysql_execute(connection, &statement, NULL, 0, deadline_ns,
                            result, err);
}

/* Return whether a text is a number: the text comes from the server and goes
 * into a statement without quotes. */
static bool is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789.")] == '\0';
}

/* Set the time limits of a wait for a row lock, in seconds, and of a statement,
 * in seconds on MariaDB and in ms on MySQL, whose limit is for each SELECT,
 * also one that locks. */
static int set_limits(struct lk_mysql_connection *connection, const char *wait,
                      const char *statement, int64_t deadline_ns,
                      sqlock_error *err)
{
    sqlock_result result = {0};
    char text[200];
    int rc;

    (void)snprintf(text, sizeof text,
                   "SET innodb_lock_wait_timeout = %s "
                   "/*M! , max_statement_time = %s */ "
                   "/*!80000 , max_execution_time = %s */",
                   wait, statement, statement);
    rc = run_text(connection, text, deadline_ns, &result, err);
    sqlock_result_clear(&result);
    return rc;
}

static int limit(void *handle, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    sqlock_result result = {0};
    char seconds[24];
    int rc;

    rc = run_text(connection,
                  "SELECT CAST(@@innodb_lock_wait_timeout AS CHAR) "
                  "/*M! , CAST(@@max_statement_time AS CHAR) */ "
                  "/*!80000 , CAST(@@max_execution_time AS CHAR) */",
                  deadline_ns, &result, err);
    (void)snprintf(connection->limits[1], sizeof connection->limits[1], "0");
    for (size_t i = 0; rc == 0 && i < result.columns && i < 2; i++) {
        (void)snprintf(connection->limits[i], sizeof connection->limits[i],
                       "%s", result.cells[i].text);
        if (!is_number(connection->limits[i]))
            rc = lk_error(
                err, SQLOCK_EDATABASE,
                "the server returned a time limit that is not a number");
    }
    sqlock_result_clear(&result);
    if (rc < 0)
        return rc;
    (void)snprintf(seconds, sizeof seconds, "%lld", (long long)wait_ms / 1000);
    rc = set_limits(connection, seconds, "0", deadline_ns, err);
    connection->is_limited = rc == 0;
    return rc;
}

static int unlimit(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    bool was_rolled_back = connection->is_rolled_back;
    int rc;

    if (!connection->is_limited)
        return 0;
    connection->is_limited = false;
    /* Restore the settings after a deadlock, too: they belong to the session,
       so the rollback has not restored them. */
    connection->is_rolled_back = false;
    rc = set_limits(connection, connection->limits[0], connection->limits[1],
                    deadline_ns, err);
    connection->is_rolled_back = was_rolled_back;
    return rc;
}

static int outlast(void *handle, uint32_t idle_ms, int64_t deadline_ns,
                   sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc = lk_mysql_call_begin(connection, deadline_ns, err);

    if (rc < 0)
        return rc;
    rc = lk_mysql_set_idle(connection, idle_ms, err);
    lk_mysql_call_end(connection);
    return rc;
}

/* --- statements --- */

/* clang-format off */
#define NOW "UTC_TIMESTAMP(6)"
#define EPOCH "TIMESTAMP'1970-01-01 00:00:00'"
#define SHARE " /*M! LOCK IN SHARE MODE *//*!80001 FOR SHARE */"
/* clang-format on */

const sqlock_transactions lk_mysql_transactions = {
    .update_free = " FOR UPDATE NOWAIT",
    .update_wait = " FOR UPDATE",
    /* SKIP LOCKED is not used: under REPEATABLE READ a search that skips its
     * row locks the gap behind the row, and then nobody can insert a row
     * there. */
    .share_free = " /*M! LOCK IN SHARE MODE NOWAIT *//*!80001 FOR SHARE "
                  "NOWAIT */",
    .share_wait = SHARE,
    .wait_unit_ms = 1000,
    .reads_in_time = true,
    .timestamp_us = "TIMESTAMPDIFF(MICROSECOND, " EPOCH ", {column})",
    .next_timestamp = "GREATEST({column} + INTERVAL 1 MICROSECOND, " NOW ")",
    .same_text = "CAST(CONVERT({column} USING utf8mb4) AS BINARY) = "
                 "CAST({value} AS BINARY)",
    .keys_are_text = true,
    .adopt = adopt,
    .unadopt = unadopt,
    .state = state,
    .limit = limit,
    .unlimit = unlimit,
    .outlast = outlast,
    .unprepares = true,
    .check_adopted = check_adopted,
    .ask = ask,
    .session = session_number,
    .prepare = lk_mysql_prepare_named,
    .resume = lk_mysql_resume,
    .is_prepared = lk_mysql_has_names,
    .commit_same = lk_mysql_commit_same,
};
