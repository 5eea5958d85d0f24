/*
 * floor_mysql.c - the floor driver of MySQL and MariaDB, with server-side
 * prepared statements and blocking calls
 *
 * It works with Oracle's libmysqlclient and MariaDB Connector/C.  It refuses
 * tls= in a URL: the cost of TLS would be the same on both sides of the ratio.
 */
#include "floor.h"

#ifdef SQLOCK_WITH_MYSQL

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mysql.h>

#include "base/url.h"

struct connection {
    MYSQL *mysql;
    MYSQL_STMT *update;
    MYSQL_STMT *sale_select;
    MYSQL_STMT *sale_update;
    MYSQL_STMT *sale_insert;
    char order[64]; /* the INSERT's parameter */
    unsigned long order_length;
    char key[37];
    unsigned long key_length;
    unsigned long region_length;
};

static int fail(struct bench_failure *failure, const char *what, MYSQL *mysql)
{
    return bench_fail(failure, "MySQL client, %s: %s", what,
                      mysql != NULL ? mysql_error(mysql) : "out of memory");
}

static const char *password_of(const struct lk_url *url)
{
    const char *variable = lk_url_parameter(url, "password_env");

    if (url->password == NULL && variable != NULL)
        return getenv(variable);
    return url->password;
}

static int connect_to(MYSQL *mysql, const char *text,
                      struct bench_failure *failure)
{
    struct lk_url url = {0};
    sqlock_error err;
    unsigned port = 0;
    int rc = 0;

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
    if (mysql_real_connect(mysql, url.host, url.user, password_of(&url),
                           url.path[0] == '/' ? url.path + 1 : NULL, port,
                           lk_url_parameter(&url, "socket"), 0) == NULL)
        rc = fail(failure, "connect", mysql);
out:
    lk_url_clear(&url);
    return rc;
}

static int prepare(MYSQL_STMT **out, MYSQL *mysql, const char *text,
                   struct bench_failure *failure)
{
    *out = mysql_stmt_init(mysql);
    if (*out == NULL)
        return fail(failure, text, mysql);
    if (mysql_stmt_prepare(*out, text, (unsigned long)strlen(text)) != 0)
        return bench_fail(failure, "MySQL client, %s: %s", text,
                          mysql_stmt_error(*out));
    return 0;
}

/* Bind the parameters of the UPDATE.  The statement keeps their addresses. */
static int bind_update(struct connection *me, struct bench_failure *failure)
{
    static char region[] = FLOOR_REGION;
    MYSQL_BIND bind[2];

    me->key_length = (unsigned long)strlen(me->key);
    me->region_length = (unsigned long)strlen(region);
    memset(bind, 0, sizeof bind);
    bind[0].buffer_type = MYSQL_TYPE_STRING;
    bind[0].buffer = me->key;
    bind[0].buffer_length = me->key_length;
    bind[0].length = &me->key_length;
    bind[1].buffer_type = MYSQL_TYPE_STRING;
    bind[1].buffer = region;
    bind[1].buffer_length = me->region_length;
    bind[1].length = &me->region_length;
    if (mysql_stmt_bind_param(me->update, bind) != 0)
        return bench_fail(failure, "MySQL client, bind: %s",
                          mysql_stmt_error(me->update));
    return 0;
}

static int open_mysql(void **out, const struct bench_target *target,
                      unsigned client, struct bench_failure *failure)
{
    struct connection *me = calloc(1, sizeof *me);
    char text[640];
    int rc;

    *out = me;
    if (me == NULL)
        return bench_fail(failure, "out of memory");
    (void)snprintf(me->key, sizeof me->key, "%036u", client);
    me->mysql = mysql_init(NULL);
    if (me->mysql == NULL)
        return fail(failure, "init", NULL);
    rc = connect_to(me->mysql, target->url, failure);
    if (rc != 0)
        return rc;
    (void)snprintf(text, sizeof text,
                   "INSERT IGNORE INTO %sLOCK (" FLOOR_COLUMNS
                   ") VALUES ('%s', " FLOOR_VALUES
                   ", '2000-01-01', '2000-01-02')",
                   target->floor_prefix, me->key);
    if (mysql_query(me->mysql, text) != 0)
        return fail(failure, text, me->mysql);
    (void)snprintf(text, sizeof text,
                   "UPDATE %sLOCK SET " FLOOR_UPDATE
                   " WHERE LOCK_KEY = ? AND REGION = ?",
                   target->floor_prefix);
    rc = prepare(&me->update, me->mysql, text, failure);
    if (rc == 0)
        rc = bind_update(me, failure);
    return rc;
}

static void close_mysql(void *connection)
{
    struct connection *me = connection;
    MYSQL_STMT *statements[4];
    size_t i;

    if (me == NULL)
        return;
    statements[0] = me->update;
    statements[1] = me->sale_select;
    statements[2] = me->sale_update;
    statements[3] = me->sale_insert;
    for (i = 0; i < sizeof statements / sizeof statements[0]; i++) {
        if (statements[i] != NULL)
            (void)mysql_stmt_close(statements[i]);
    }
    if (me->mysql != NULL)
        mysql_close(me->mysql);
    free(me);
}

static int update_mysql(void *connection, struct bench_failure *failure)
{
    struct connection *me = connection;

    if (mysql_stmt_execute(me->update) != 0 ||
        mysql_stmt_affected_rows(me->update) != 1)
        return bench_fail(failure, "MySQL client, update: %s",
                          mysql_stmt_error(me->update));
    return 0;
}

static void *native_mysql(void *connection)
{
    struct connection *me = connection;

    return me->mysql;
}

static int describe_mysql(void *connection, struct bench_server *server,
                          struct bench_failure *failure)
{
    struct connection *me = connection;
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(me->mysql,
                    "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, "
                    "@@sync_binlog, @@version_comment") != 0)
        return fail(failure, "describe", me->mysql);
    result = mysql_store_result(me->mysql);
    if (result == NULL)
        return fail(failure, "describe", me->mysql);
    row = mysql_fetch_row(result);
    if (row == NULL || row[0] == NULL || row[1] == NULL || row[2] == NULL) {
        mysql_free_result(result);
        return bench_fail(failure, "MySQL client, describe: no row");
    }
    (void)snprintf(server->version, sizeof server->version, "%s (%s)",
                   mysql_get_server_info(me->mysql),
                   row[3] != NULL ? row[3] : "");
    (void)snprintf(server->settings, sizeof server->settings,
                   "innodb_flush_log_at_trx_commit=%s log_bin=%s "
                   "sync_binlog=%s",
                   row[0], row[1], row[2]);
    server->is_durable = strcmp(row[0], "1") == 0;
    mysql_free_result(result);
    return 0;
}

static int run_mysql(void *connection, const char *text,
                     struct bench_failure *failure)
{
    struct connection *me = connection;

    if (mysql_query(me->mysql, text) != 0)
        return fail(failure, text, me->mysql);
    return 0;
}

static int number_mysql(void *connection, const char *text, int64_t *number,
                        struct bench_failure *failure)
{
    struct connection *me = connection;
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(me->mysql, text) != 0)
        return fail(failure, text, me->mysql);
    result = mysql_store_result(me->mysql);
    if (result == NULL)
        return fail(failure, text, me->mysql);
    row = mysql_fetch_row(result);
    if (row != NULL && row[0] != NULL)
        *number = strtoll(row[0], NULL, 10);
    mysql_free_result(result);
    return 0;
}

/* The binary log's variable is there also where there is no such log: it stays
 * at 0.  Oracle's MySQL does not have it. */
static int written_mysql(void *connection, struct bench_traffic *to,
                         struct bench_failure *failure)
{
    static const char text[] =
        "SHOW GLOBAL STATUS WHERE Variable_name IN "
        "('Innodb_os_log_written', 'Binlog_bytes_written')";
    struct connection *me = connection;
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(me->mysql, text) != 0)
        return fail(failure, text, me->mysql);
    result = mysql_store_result(me->mysql);
    if (result == NULL)
        return fail(failure, text, me->mysql);
    for (row = mysql_fetch_row(result); row != NULL;
         row = mysql_fetch_row(result)) {
        if (strncmp(row[0], "Innodb", 6) == 0)
            to->log_bytes = strtod(row[1], NULL);
        else
            to->binlog_bytes = strtod(row[1], NULL);
    }
    mysql_free_result(result);
    return 0;
}

static int prepare_sale_mysql(void *connection,
                              const struct bench_target *target,
                              const char *item, struct bench_failure *failure)
{
    struct connection *me = connection;
    struct floor_sale sale;
    MYSQL_BIND bind;

    floor_sale_texts(&sale, target, item, " FOR UPDATE", "?");
    if (prepare(&me->sale_select, me->mysql, sale.select, failure) != 0 ||
        prepare(&me->sale_update, me->mysql, sale.update, failure) != 0 ||
        prepare(&me->sale_insert, me->mysql, sale.insert, failure) != 0)
        return -1;
    memset(&bind, 0, sizeof bind);
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = me->order;
    bind.buffer_length = sizeof me->order;
    bind.length = &me->order_length;
    if (mysql_stmt_bind_param(me->sale_insert, &bind) != 0)
        return bench_fail(failure, "MySQL client, bind: %s",
                          mysql_stmt_error(me->sale_insert));
    return 0;
}

static int execute(MYSQL_STMT *statement, bool has_row,
                   struct bench_failure *failure)
{
    if (mysql_stmt_execute(statement) != 0 ||
        (has_row && (mysql_stmt_store_result(statement) != 0 ||
                     mysql_stmt_num_rows(statement) != 1 ||
                     mysql_stmt_free_result(statement) != 0)) ||
        (!has_row && mysql_stmt_affected_rows(statement) != 1))
        return bench_fail(failure, "MySQL client, a sale: %s",
                          mysql_stmt_error(statement));
    return 0;
}

static int sell_mysql(void *connection, const char *order,
                      struct bench_failure *failure)
{
    struct connection *me = connection;

    if (run_mysql(me, "BEGIN", failure) != 0 ||
        execute(me->sale_select, true, failure) != 0 ||
        execute(me->sale_update, false, failure) != 0)
        return -1;
    if (order != NULL) {
        me->order_length =
            (unsigned long)snprintf(me->order, sizeof me->order, "%s", order);
        if (execute(me->sale_insert, false, failure) != 0)
            return -1;
    }
    return run_mysql(me, "COMMIT", failure);
}

const struct floor_driver floor_mysql = {
    FLOOR_MEMBERS(mysql),
    .begin = "BEGIN",
    .written = written_mysql,
};

#endif /* SQLOCK_WITH_MYSQL */
