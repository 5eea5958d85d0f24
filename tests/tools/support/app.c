/*
 * app.c - see app.h
 */
#include "app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SQLOCK_WITH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SQLOCK_WITH_MYSQL
#include <mysql.h>

#include "base/url.h"
#endif
#ifdef SQLOCK_WITH_SQLITE
#include <sqlite3.h>
#endif

struct rows;

/* The operations of one client library. */
struct client {
    unsigned bit; /* ON_... */
    void (*open)(struct app *app, const char *url);
    void (*close)(struct app *app);
    void (*reset)(struct app *app);
    int (*run)(struct app *app, const char *sql, struct rows *rows);
    bool (*in_transaction)(struct app *app);
    bool (*set_utf8)(struct app *app, bool is_utf8);
    /* For app_settings() and app_change_settings(); they end with NULL. */
    const char *const *settings, *const *unusual;
};

/* The rows of a statement's result as text: a line for each row. */
struct rows {
    FILE *out;
    char *text;
    size_t size;
    struct app *app; /* gets the first cell */
};

static void add_cell(struct rows *rows, const char *cell, bool ends_row)
{
    if (cell == NULL)
        cell = "";
    if (!rows->app->has_first)
        (void)snprintf(rows->app->first, sizeof rows->app->first, "%s", cell);
    rows->app->has_first = true;
    (void)fprintf(rows->out, "%s%c", cell, ends_row ? '\n' : ' ');
}

static int failed(struct app *app, const char *text)
{
    (void)snprintf(app->error, sizeof app->error, "%s", text);
    return -1;
}

/* --- PostgreSQL --- */

#ifdef SQLOCK_WITH_POSTGRES
static int run_postgres(struct app *app, const char *sql, struct rows *rows)
{
    PGresult *result = PQexec(app->native, sql);
    ExecStatusType status = PQresultStatus(result);
    int rc = 0;

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        rc = failed(app, PQerrorMessage(app->native));
    for (int row = 0; rc == 0 && row < PQntuples(result); row++)
        for (int i = 0; i < PQnfields(result); i++)
            add_cell(rows, PQgetvalue(result, row, i),
                     i + 1 == PQnfields(result));
    PQclear(result);
    return rc;
}

static void open_postgres(struct app *app, const char *url)
{
    app->native = PQconnectdb(url);
    if (PQstatus(app->native) != CONNECTION_OK)
        fail_msg("PostgreSQL: %s", PQerrorMessage(app->native));
}

static void close_postgres(struct app *app)
{
    PQfinish(app->native);
}

static void reset_postgres(struct app *app)
{
    PQreset(app->native);
    assert_int_equal(PQstatus(app->native), CONNECTION_OK);
}

static bool is_open_postgres(struct app *app)
{
    return PQtransactionStatus(app->native) != PQTRANS_IDLE;
}

static bool set_utf8_postgres(struct app *app, bool is_utf8)
{
    return PQsetClientEncoding(app->native, is_utf8 ? "UTF8" : "LATIN1") == 0;
}

static const char *const postgres_settings[] = {
    "SELECT name, setting FROM pg_settings ORDER BY name",
    "SELECT name, statement FROM pg_prepared_statements ORDER BY name",
    "SELECT pg_my_temp_schema()",
    "SELECT locktype, mode FROM pg_locks WHERE locktype = 'advisory' "
    "AND pid = pg_backend_pid()",
    NULL,
};

static const char *const postgres_unusual[] = {
    "SET lock_timeout = '1234ms'",
    "SET statement_timeout = '54321ms'",
    "SET TimeZone = 'America/St_Johns'",
    "SET DateStyle = 'German'",
    "SET application_name = 'back office'",
    "PREPARE mine AS SELECT 1",
    NULL,
};

static const struct client postgres = {
    .bit = ON_POSTGRES,
    .open = open_postgres,
    .close = close_postgres,
    .reset = reset_postgres,
    .run = run_postgres,
    .in_transaction = is_open_postgres,
    .set_utf8 = set_utf8_postgres,
    .settings = postgres_settings,
    .unusual = postgres_unusual,
};
#endif

/* --- MySQL --- */

#ifdef SQLOCK_WITH_MYSQL
static void open_mysql(struct app *app, const char *url)
{
    struct lk_url parts = {0};
    MYSQL *mysql = mysql_init(NULL);
    unsigned protocol = MYSQL_PROTOCOL_TCP;

    assert_non_null(mysql);
    assert_int_equal(lk_url_parse(&parts, url, NULL), 0);
    (void)mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol);
    app->native = mysql_real_connect(
        mysql, parts.host, parts.user, parts.password, parts.path + 1,
        (unsigned)strtoul(parts.port, NULL, 10), NULL, app->flags);
    if (app->native == NULL)
        fail_msg("MySQL: %s", mysql_error(mysql));
    lk_url_clear(&parts);
}

static int run_mysql(struct app *app, const char *sql, struct rows *rows)
{
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(app->native, sql) != 0)
        return failed(app, mysql_error(app->native));
    result = mysql_store_result(app->native);
    if (result == NULL)
        return mysql_field_count(app->native) == 0
                   ? 0
                   : failed(app, mysql_error(app->native));
    for (row = mysql_fetch_row(result); row != NULL;
         row = mysql_fetch_row(result))
        for (unsigned i = 0; i < mysql_num_fields(result); i++)
            add_cell(rows, row[i], i + 1 == mysql_num_fields(result));
    mysql_free_result(result);
    return 0;
}

static void close_mysql(struct app *app)
{
    mysql_close(app->native);
}

/* The client library reconnects when it finds that the session was ended. */
static void reset_mysql(struct app *app)
{
    app_reconnect(app, true);
    (void)mysql_query(app->native, "KILL CONNECTION_ID()");
    (void)mysql_ping(app->native); /* within a transaction it only fails */
    app_check(app, mysql_ping(app->native));
    app_reconnect(app, false);
    app->session = app_integer(app, "%s", app->database->connection_id);
}

static bool is_open_mysql(struct app *app)
{
    const MYSQL *mysql = app->native;

    app_run(app, "DO 0"); /* an error leaves server_status as it was */
    return (mysql->server_status & SERVER_STATUS_IN_TRANS) != 0;
}

static bool set_utf8_mysql(struct app *app, bool is_utf8)
{
    return mysql_set_character_set(app->native,
                                   is_utf8 ? "utf8mb4" : "latin1") == 0;
}

/* Without variables that change by themselves, or by the last statement. */
static const char *const mysql_settings[] = {
    "SHOW SESSION VARIABLES WHERE Variable_name NOT IN "
    "('timestamp', 'rand_seed1', 'rand_seed2', 'last_insert_id', 'identity', "
    "'error_count', 'warning_count', 'gtid_current_pos', 'gtid_binlog_pos', "
    "'gtid_binlog_state', 'last_gtid', 'gtid_executed', 'gtid_owned', "
    "'gtid_purged', 'in_transaction', "
    "'innodb_buffer_pool_load_now', 'pseudo_thread_id', 'statement_id')",
    "SELECT DATABASE()",
    "SELECT LAST_INSERT_ID()",
    NULL,
};

static const char *const mysql_unusual[] = {
    "SET innodb_lock_wait_timeout = 37",
    "SET time_zone = '-03:30'",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "/*M! SET max_statement_time = 41.5 */"
    "/*!50708 SET max_execution_time = 41500 */",
    NULL,
};

static const struct client mysql_client = {
    .bit = ON_MYSQL,
    .open = open_mysql,
    .close = close_mysql,
    .reset = reset_mysql,
    .run = run_mysql,
    .in_transaction = is_open_mysql,
    .set_utf8 = set_utf8_mysql,
    .settings = mysql_settings,
    .unusual = mysql_unusual,
};
#endif

/* --- SQLite --- */

#ifdef SQLOCK_WITH_SQLITE
static int run_sqlite(struct app *app, const char *sql, struct rows *rows)
{
    sqlite3_stmt *statement = NULL;
    int step = sqlite3_prepare_v2(app->native, sql, -1, &statement, NULL);

    if (step == SQLITE_OK)
        step = sqlite3_step(statement);
    while (step == SQLITE_ROW) {
        int count = sqlite3_column_count(statement);

        for (int i = 0; i < count; i++)
            add_cell(rows, (const char *)sqlite3_column_text(statement, i),
                     i + 1 == count);
        step = sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    return step == SQLITE_DONE ? 0 : failed(app, sqlite3_errmsg(app->native));
}

static void open_sqlite(struct app *app, const char *url)
{
    assert_int_equal(
        sqlite3_open_v2(strchr(url, ':') + 1, (sqlite3 **)&app->native,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL),
        SQLITE_OK);
}

static void close_sqlite(struct app *app)
{
    assert_int_equal(sqlite3_close(app->native), SQLITE_OK);
}

static bool is_open_sqlite(struct app *app)
{
    return sqlite3_get_autocommit(app->native) == 0;
}

static const char *const sqlite_settings[] = {
    "PRAGMA busy_timeout",
    "PRAGMA foreign_keys",
    "PRAGMA synchronous",
    "PRAGMA cache_size",
    "PRAGMA temp_store",
    "PRAGMA locking_mode",
    "PRAGMA journal_mode",
    "PRAGMA recursive_triggers",
    "PRAGMA query_only",
    "PRAGMA defer_foreign_keys",
    "PRAGMA trusted_schema",
    "PRAGMA wal_autocheckpoint",
    "SELECT name, builtin, type, narg FROM pragma_function_list "
    "ORDER BY 1, 4",
    "SELECT last_insert_rowid()",
    NULL,
};

static const char *const sqlite_unusual[] = {
    "PRAGMA busy_timeout = 1234",
    "PRAGMA foreign_keys = 1",
    "PRAGMA cache_size = 77",
    NULL,
};

static const struct client sqlite = {
    .bit = ON_SQLITE,
    .open = open_sqlite,
    .close = close_sqlite,
    .run = run_sqlite,
    .in_transaction = is_open_sqlite,
    .settings = sqlite_settings,
    .unusual = sqlite_unusual,
};
#endif

/* --- any --- */

static const struct client *const clients[] = {
#ifdef SQLOCK_WITH_POSTGRES
    &postgres,
#endif
#ifdef SQLOCK_WITH_MYSQL
    &mysql_client,
#endif
#ifdef SQLOCK_WITH_SQLITE
    &sqlite,
#endif
};

static const struct client *client_of(const struct app *app)
{
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
        if (clients[i]->bit == app->database->bit)
            return clients[i];
    fail_msg("no client library for %s", app->database->name);
    return NULL;
}

static int run(struct app *app, struct rows *rows, const char *sql)
{
    int rc;

    memset(rows, 0, sizeof *rows);
    rows->app = app;
    app->has_first = false;
    rows->out = open_memstream(&rows->text, &rows->size);
    assert_non_null(rows->out);
    rc = client_of(app)->run(app, sql, rows);
    (void)fclose(rows->out);
    return rc;
}

static void open_it(struct app *app, const struct database *database,
                    const char *url)
{
    app->database = database;
    client_of(app)->open(app, url);
    /* Ask the server: a pooler gives the client library another number. */
    if (database->connection_id != NULL)
        app->session = app_integer(app, "%s", database->connection_id);
}

void app_open(struct app *app, const struct database *database, const char *url)
{
    memset(app, 0, sizeof *app);
    open_it(app, database, url);
}

void app_open_counting_found(struct app *app, const struct database *database,
                             const char *url)
{
    memset(app, 0, sizeof *app);
#ifdef SQLOCK_WITH_MYSQL
    app->flags = CLIENT_FOUND_ROWS;
#endif
    open_it(app, database, url);
}

void app_close(struct app *app)
{
    if (app->native == NULL)
        return;
    client_of(app)->close(app);
    app->native = NULL;
}

int app_try(struct app *app, const char *format, ...)
{
    struct rows rows;
    va_list arguments;
    int rc;

    va_start(arguments, format);
    (void)vsnprintf(app->sql, sizeof app->sql, format, arguments);
    va_end(arguments);
    rc = run(app, &rows, app->sql);
    free(rows.text);
    return rc;
}

void app_check(struct app *app, int rc)
{
    if (rc != 0)
        fail_msg("%s: %s", app->sql, app->error);
}

long long app_number(struct app *app)
{
    if (!app->has_first)
        fail_msg("%s: no row", app->sql);
    return strtoll(app->first, NULL, 10);
}

const char *const app_levels[LEVELS] = {"READ COMMITTED", "REPEATABLE READ",
                                        "SERIALIZABLE"};

void app_begin_at(struct app *app, const char *level)
{
    if (app->database->bit == ON_POSTGRES) {
        app_run(app, "BEGIN ISOLATION LEVEL %s", level);
    } else {
        app_run(app, "SET TRANSACTION ISOLATION LEVEL %s", level);
        app_run(app, "BEGIN");
    }
}

bool app_in_transaction(struct app *app)
{
    return client_of(app)->in_transaction(app);
}

void app_set_utf8(struct app *app, bool is_utf8)
{
    assert_true(client_of(app)->set_utf8(app, is_utf8));
}

long long app_session(const struct app *app)
{
    return app->session;
}

void app_reconnect(struct app *app, bool reconnects)
{
#ifdef SQLOCK_WITH_MYSQL
    const char flag = reconnects;

    assert_int_equal(app->database->bit, ON_MYSQL);
    assert_int_equal(mysql_options(app->native, MYSQL_OPT_RECONNECT, &flag), 0);
#else
    (void)reconnects;
    fail_msg("no client library for %s", app->database->name);
#endif
}

bool app_pipeline(struct app *app, bool begins)
{
#if defined(SQLOCK_WITH_POSTGRES) && defined(LIBPQ_HAS_PIPELINING)
    assert_int_equal(begins ? PQenterPipelineMode(app->native)
                            : PQexitPipelineMode(app->native),
                     1);
    return true;
#else
    (void)app;
    (void)begins;
    return false;
#endif
}

void app_reset(struct app *app)
{
    client_of(app)->reset(app);
}

#ifdef SQLOCK_WITH_MYSQL
void app_forget(struct app *app, bool logs_in)
{
    struct lk_url parts = {0};
    int rc;

    assert_int_equal(lk_url_parse(&parts, database_url(app->database), NULL),
                     0);
    rc = logs_in ? mysql_change_user(app->native, parts.user, parts.password,
                                     parts.path + 1)
                 : mysql_reset_connection(app->native);
    lk_url_clear(&parts);
    app_check(app, rc);
}

void app_renumber(struct app *app)
{
    MYSQL *mysql = app->native;

    mysql->thread_id += 1000000; /* none that a server will have */
}

void app_begin_result(struct app *app, const char *sql)
{
    app_check(app, mysql_query(app->native, sql));
    app->result = mysql_use_result(app->native);
    assert_non_null(app->result);
}

void app_end_result(struct app *app)
{
    mysql_free_result(app->result);
}
#else
static void lacks_mysql(const struct app *app)
{
    fail_msg("no client library for %s", app->database->name);
}

void app_forget(struct app *app, bool logs_in)
{
    (void)logs_in;
    lacks_mysql(app);
}

void app_renumber(struct app *app)
{
    lacks_mysql(app);
}

void app_begin_result(struct app *app, const char *sql)
{
    (void)sql;
    lacks_mysql(app);
}

void app_end_result(struct app *app)
{
    lacks_mysql(app);
}
#endif

char *app_settings(struct app *app)
{
    const char *const *queries = client_of(app)->settings;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    for (; *queries != NULL; queries++) {
        struct rows rows;
        int rc = run(app, &rows, *queries);

        (void)fputs(rows.text, out);
        free(rows.text);
        if (rc != 0)
            fail_msg("%s: %s", *queries, app->error);
    }
    (void)fclose(out);
    return text;
}

void app_change_settings(struct app *app)
{
    const char *const *texts = client_of(app)->unusual;

    for (; *texts != NULL; texts++)
        app_run(app, "%s", *texts);
}
