/*
 * database.c - see database.h
 */
#include "database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/drivers.h"

#define STATEMENT_SIZE 65536
#define TIMEOUT_MS 20000

const struct database databases[DATABASES] = {
    {
        .bit = ON_POSTGRES,
        .name = "postgres",
        .variable = "POSTGRES",
        .clock_us =
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        .connection_id = "SELECT pg_backend_pid()",
    },
    {
        .bit = ON_MYSQL,
        .name = "mysql",
        .variable = "MYSQL",
        .clock_us = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01',"
                    " UTC_TIMESTAMP(6))",
        .connection_id = "SELECT CONNECTION_ID()",
    },
    {
        .bit = ON_SQLITE,
        .name = "sqlite",
        .variable = "SQLITE",
    },
};

static const char *from_environment(const struct database *database,
                                    const char *what)
{
    char variable[64];
    const char *value;

    (void)snprintf(variable, sizeof variable, "SQLOCK_TEST_%s_%s",
                   database->variable, what);
    value = getenv(variable);
    return value != NULL && *value != '\0' ? value : NULL;
}

const char *database_url(const struct database *database)
{
    return from_environment(database, "URL");
}

const char *database_admin_url(const struct database *database)
{
    const char *url = from_environment(database, "ADMIN_URL");

    return url != NULL ? url : database_url(database);
}

bool database_is_pooled(const struct database *database)
{
    return from_environment(database, "POOLER") != NULL;
}

bool database_is_polled(const struct database *database)
{
    const char *url = database_url(database);

    return url != NULL && strstr(url, "waiting=poll") != NULL;
}

pid_t database_pid_in(const char *path)
{
    long pid = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &pid) != 1)
        pid = 0;
    (void)fclose(file);
    return (pid_t)pid;
}

pid_t database_pid(const struct database *database)
{
    const char *file = from_environment(database, "PIDFILE");
    const char *text = from_environment(database, "PID");

    if (file != NULL)
        return database_pid_in(file);
    return text == NULL ? 0 : (pid_t)strtol(text, NULL, 10);
}

int driver_check(const sqlock_driver *driver, const char *text,
                 sqlock_error *err)
{
    struct lk_url url;
    int rc = lk_url_parse(&url, text, err);

    if (rc == 0)
        rc = driver->check_url(&url, err);
    lk_url_clear(&url);
    return rc;
}

int driver_open(const sqlock_driver *driver, void *connection, const char *text,
                const sqlock_connect *how, sqlock_error *err)
{
    struct lk_url url;
    int rc = lk_url_parse(&url, text, err);

    (void)lk_url_take(&url, "waiting");
    if (rc == 0)
        rc = driver->check_url(&url, err);
    if (rc == 0)
        rc = driver->open(connection, &url, how, err);
    lk_url_clear(&url);
    return rc;
}

int sql_open(struct sql *sql, const struct database *database, const char *url)
{
    sqlock_connect how = {.deadline_ns = check_deadline_ns(TIMEOUT_MS),
                          .statement_timeout_ms = TIMEOUT_MS,
                          .lock_timeout_ms = TIMEOUT_MS,
                          .may_create = true};
    int rc;

    memset(sql, 0, sizeof *sql);
    sql->database = database;
    rc = lk_driver_find(&sql->driver, url, &sql->err);
    if (rc < 0)
        return rc;
    sql->connection = calloc(1, sql->driver->connection_bytes);
    if (sql->connection == NULL)
        return SQLOCK_ENOMEM;
    rc = driver_open(sql->driver, sql->connection, url, &how, &sql->err);
    if (rc < 0)
        sql_close(sql);
    return rc;
}

void sql_close(struct sql *sql)
{
    if (sql->connection != NULL)
        sql->driver->close(sql->connection);
    free(sql->connection);
    sql->connection = NULL;
}

static int run(struct sql *sql, sqlock_result *result, const char *format,
               va_list args) __attribute__((format(printf, 3, 0)));

static int run(struct sql *sql, sqlock_result *result, const char *format,
               va_list args)
{
    char *text = malloc(STATEMENT_SIZE);
    sqlock_statement statement = {.text = text};
    int length;
    int rc = SQLOCK_ENOMEM;

    if (text == NULL)
        return rc;
    length = vsnprintf(text, STATEMENT_SIZE, format, args);
    if (length >= 0 && length < STATEMENT_SIZE)
        rc = sql->driver->execute(sql->connection, &statement, NULL, 0,
                                  check_deadline_ns(TIMEOUT_MS), result,
                                  &sql->err);
    free(text);
    return rc;
}

int sql_try(struct sql *sql, int64_t *affected, const char *format, ...)
{
    sqlock_result result = {0};
    va_list args;
    int rc;

    va_start(args, format);
    rc = run(sql, &result, format, args);
    va_end(args);
    if (rc == 0 && affected != NULL)
        *affected = result.affected;
    sqlock_result_clear(&result);
    return rc;
}

/* Run one statement; fail the test if it fails.  The caller clears *result. */
static void run_or_fail(struct sql *sql, sqlock_result *result,
                        const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void run_or_fail(struct sql *sql, sqlock_result *result,
                        const char *format, va_list args)
{
    int rc = run(sql, result, format, args);

    if (rc < 0) {
        print_error("statement: %s\n", format);
        assert_lock_ok(rc, &sql->err);
    }
}

int64_t sql_run(struct sql *sql, const char *format, ...)
{
    sqlock_result result = {0};
    va_list args;
    int64_t affected;

    va_start(args, format);
    run_or_fail(sql, &result, format, args);
    va_end(args);
    affected = result.affected;
    sqlock_result_clear(&result);
    return affected;
}

void sql_drop_locks(struct sql *sql, const char *prefix)
{
    (void)sql_run(sql, "DROP VIEW IF EXISTS %sLOCK_NOW", prefix);
    (void)sql_run(sql, "DROP TABLE IF EXISTS %sLOCK", prefix);
    (void)sql_run(sql, "DROP TABLE IF EXISTS %sLOCK_SERVER", prefix);
    (void)sql_run(sql, "DROP TABLE IF EXISTS %sLOCK_MARK", prefix);
    (void)sql_run(sql, "DROP TABLE IF EXISTS %sDONE", prefix);
}

int64_t sql_integer(struct sql *sql, const char *format, ...)
{
    sqlock_result result = {0};
    va_list args;
    int64_t value = INT64_MIN;

    va_start(args, format);
    run_or_fail(sql, &result, format, args);
    va_end(args);
    if (result.rows > 0 && result.columns > 0) {
        if (result.cells[0].type == SQLOCK_INT64)
            value = result.cells[0].integer;
        else if (result.cells[0].type == SQLOCK_TEXT)
            value = strtoll(result.cells[0].text, NULL, 10);
    }
    sqlock_result_clear(&result);
    if (value == INT64_MIN)
        fail_msg("no number came from: %s", format);
    return value;
}

bool sql_text(struct sql *sql, char *out, size_t size, const char *format, ...)
{
    sqlock_result result = {0};
    va_list args;
    bool found;

    va_start(args, format);
    run_or_fail(sql, &result, format, args);
    va_end(args);
    out[0] = '\0';
    found = result.rows > 0 && result.columns > 0;
    if (found && result.cells[0].type == SQLOCK_TEXT)
        (void)snprintf(out, size, "%s", result.cells[0].text);
    else if (found && result.cells[0].type == SQLOCK_INT64)
        (void)snprintf(out, size, "%lld", (long long)result.cells[0].integer);
    sqlock_result_clear(&result);
    return found;
}

int sql_begin(struct sql *sql)
{
    return sql->driver->begin(sql->connection, check_deadline_ns(TIMEOUT_MS),
                              &sql->err);
}

int sql_commit(struct sql *sql)
{
    return sql->driver->commit(sql->connection, check_deadline_ns(TIMEOUT_MS),
                               &sql->err);
}

int sql_rollback(struct sql *sql)
{
    return sql->driver->rollback(sql->connection, check_deadline_ns(TIMEOUT_MS),
                                 &sql->err);
}

int64_t sql_now_us(struct sql *sql)
{
    struct timespec now;

    if (sql->database->clock_us != NULL)
        return sql_integer(sql, "%s", sql->database->clock_us);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
