/*
 * floor_mysql.c - the floor driver of MySQL and MariaDB, with server-side
 * prepared statements and blocking calls
 *
 * It works with Oracle's libmysqlclient and MariaDB Connector/C.  It refuses
 * tls= in a URL: the cost of TLS would be the same on both sides of the ratio.
 */
#include "floor.h"

#ifdef SQLOCK_WITH_MYSQL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mysql.h>

#include "base/url.h"

#define VALUE_SIZE 64

/* A prepared statement, and where its parameters are bound. */
struct statement {
    MYSQL_STMT *stmt;
    char values[FLOOR_VALUES_MAX][VALUE_SIZE];
    unsigned long lengths[FLOOR_VALUES_MAX];
};

struct client {
    MYSQL *mysql;
    struct statement statements[FLOOR_STATEMENTS];
};

static int fail(struct bench_failure *failure, const char *what, MYSQL *mysql)
{
    return bench_fail(failure, "MySQL client, %s: %s", what,
                      mysql_error(mysql));
}

static const char *password_of(const struct lk_url *url)
{
    const char *variable = lk_url_parameter(url, "password_env");

    if (url->password == NULL && variable != NULL)
        return getenv(variable);
    return url->password;
}

static int open_mysql(void **out, const char *text,
                      struct bench_failure *failure)
{
    struct client *me = calloc(1, sizeof *me);
    struct lk_url url = {0};
    sqlock_error err;
    unsigned port = 0;
    int rc = 0;

    *out = me;
    if (me == NULL || (me->mysql = mysql_init(NULL)) == NULL)
        return bench_fail(failure, "out of memory");
    if (lk_url_parse(&url, text, &err) != 0) {
        rc = bench_fail(failure, "%s", err.message);
        goto out;
    }
    if (lk_url_parameter(&url, "tls") != NULL) {
        rc = bench_fail(failure, "the bench's own connection knows no tls=");
        goto out;
    }
    if (url.port != NULL)
        port = (unsigned)strtoul(url.port, NULL, 10);
    if (mysql_real_connect(me->mysql, url.host, url.user, password_of(&url),
                           url.path[0] == '/' ? url.path + 1 : NULL, port,
                           lk_url_parameter(&url, "socket"), 0) == NULL)
        rc = fail(failure, "connect", me->mysql);
out:
    lk_url_clear(&url);
    return rc;
}

static void close_mysql(void *client)
{
    struct client *me = client;

    for (size_t i = 0; i < FLOOR_STATEMENTS; i++) {
        if (me->statements[i].stmt != NULL)
            (void)mysql_stmt_close(me->statements[i].stmt);
    }
    if (me->mysql != NULL)
        mysql_close(me->mysql);
    free(me);
}

static void *native_mysql(void *client)
{
    const struct client *me = client;

    return me->mysql;
}

static int prepare_mysql(void *client, enum floor_statement which,
                         const char *text, struct bench_failure *failure)
{
    struct client *me = client;
    struct statement *to = &me->statements[which];
    MYSQL_BIND bind[FLOOR_VALUES_MAX];

    memset(bind, 0, sizeof bind);
    for (size_t i = 0; i < FLOOR_VALUES_MAX; i++) {
        bind[i].buffer_type = MYSQL_TYPE_STRING;
        bind[i].buffer = to->values[i];
        bind[i].buffer_length = VALUE_SIZE;
        bind[i].length = &to->lengths[i];
    }
    to->stmt = mysql_stmt_init(me->mysql);
    if (to->stmt == NULL)
        return fail(failure, text, me->mysql);
    if (mysql_stmt_prepare(to->stmt, text, (unsigned long)strlen(text)) != 0 ||
        (mysql_stmt_param_count(to->stmt) > 0 &&
         mysql_stmt_bind_param(to->stmt, bind) != 0))
        return bench_fail(failure, "MySQL client, %s: %s", text,
                          mysql_stmt_error(to->stmt));
    return 0;
}

static int execute_mysql(void *client, enum floor_statement which,
                         const char *const *values, unsigned count,
                         struct bench_failure *failure)
{
    struct client *me = client;
    struct statement *statement = &me->statements[which];
    MYSQL_STMT *stmt = statement->stmt;
    bool has_row = which == FLOOR_SELECT;

    for (unsigned i = 0; i < count; i++)
        statement->lengths[i] = (unsigned long)snprintf(
            statement->values[i], VALUE_SIZE, "%s", values[i]);
    if (mysql_stmt_execute(stmt) != 0 ||
        (has_row && (mysql_stmt_store_result(stmt) != 0 ||
                     mysql_stmt_num_rows(stmt) != 1 ||
                     mysql_stmt_free_result(stmt) != 0)) ||
        (!has_row && mysql_stmt_affected_rows(stmt) != 1))
        return bench_fail(failure, "MySQL client, execute: %s",
                          mysql_stmt_error(stmt));
    return 0;
}

static int run_mysql(void *client, const char *text,
                     struct bench_failure *failure)
{
    const struct client *me = client;

    if (mysql_query(me->mysql, text) != 0)
        return fail(failure, text, me->mysql);
    return 0;
}

static int row_mysql(void *client, const char *text,
                     char cells[FLOOR_CELLS][FLOOR_CELL_SIZE],
                     struct bench_failure *failure)
{
    const struct client *me = client;
    MYSQL_RES *result;
    MYSQL_ROW row;
    int count;

    if (run_mysql(client, text, failure) != 0)
        return -1;
    result = mysql_store_result(me->mysql);
    if (result == NULL)
        return fail(failure, text, me->mysql);
    row = mysql_fetch_row(result);
    count = (int)mysql_num_fields(result);
    for (int i = 0; i < count; i++)
        (void)snprintf(cells[i], FLOOR_CELL_SIZE, "%s",
                       row != NULL && row[i] != NULL ? row[i] : "");
    mysql_free_result(result);
    return count;
}

const struct floor_driver floor_mysql = {
    FLOOR_MEMBERS(mysql),
    .begin = "BEGIN",
    .locking = " FOR UPDATE",
    .insert = "INSERT IGNORE",
    .times = "'2000-01-01', '2000-01-02'",
    .unless = "",
    .places = {"?", "?"},
    .describe =
        "SELECT concat(VERSION(), ' (', @@version_comment, ')'), "
        "concat('innodb_flush_log_at_trx_commit=', "
        "@@innodb_flush_log_at_trx_commit, ' log_bin=', @@log_bin, "
        "' sync_binlog=', @@sync_binlog), @@innodb_flush_log_at_trx_commit = 1",
    .written = "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'",
    /* also there where there is no such log: it stays at 0; but not on Oracle's
     * MySQL */
    .written_binlog = "SHOW GLOBAL STATUS LIKE 'Binlog_bytes_written'",
};

#endif /* SQLOCK_WITH_MYSQL */
