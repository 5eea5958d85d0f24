/*
 * suite.c - fixtures and shorthand of the driver suite; see suite.h
 */
#include "drivers/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/writer.h"
#include "db/drivers.h"
#include "tx/tx.h"

struct subject subject;

static const struct spelling spellings[] = {
    {
        .bit = ON_POSTGRES,
        .text_type = "TEXT",
        .slow = "SELECT pg_sleep(60)",
        .set_zone = "SET TIME ZONE 'Asia/Tokyo'",
        .own_id = "SELECT pg_backend_pid()",
        .in_flight =
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
            "AND query LIKE '%pg_sleep%' AND pid = ",
    },
    {
        .bit = ON_MYSQL,
        .text_type = "TEXT CHARACTER SET utf8mb4",
        .slow = "SELECT SLEEP(60)",
        .set_zone = "SET time_zone = '+09:00'",
        .own_id = "SELECT CONNECTION_ID()",
        .in_flight = "SELECT count(*) FROM information_schema.PROCESSLIST "
                     "WHERE INFO LIKE '%SLEEP%' AND ID = ",
    },
    {
        .bit = ON_SQLITE,
        .text_type = "TEXT",
        .slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
                "n LIMIT 4000000000) SELECT count(*) FROM n",
    },
};

/* ------------------------------------------------------------- sessions -- */

static struct lk_watchdog dog; /* as a registry has one */
static bool has_dog = true;

int session_open_at(struct session *session, const char *url,
                    uint32_t lock_timeout_ms)
{
    sqlock_connect how = {.deadline_ns = check_deadline_ns(DEADLINE_MS),
                          .statement_timeout_ms = 2 * DEADLINE_MS,
                          .lock_timeout_ms = lock_timeout_ms,
                          .dog = has_dog ? &dog : NULL,
                          .may_create = true};
    int rc;

    memset(session, 0, sizeof *session);
    session->connection = calloc(1, subject.driver->connection_bytes);
    assert_non_null(session->connection);
    rc = driver_open(subject.driver, session->connection, url, &how,
                     &session->err);
    session->is_open = rc == 0;
    return rc;
}

void session_open(struct session *session)
{
    session_open_url(session, subject.url);
}

void session_close(struct session *session)
{
    if (session->connection != NULL)
        subject.driver->close(session->connection);
    free(session->connection);
    sqlock_result_clear(&session->result);
    memset(session, 0, sizeof *session);
}

int session_open_in_child(void)
{
    struct session session = {0};
    int rc;

    has_dog = false; /* its thread is the parent's */
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(PATIENCE_MS / 1000);
    rc = session_open_at(&session, subject.url, LOCK_TIMEOUT_MS);
    return rc < 0 ? rc : session_try(&session, "SELECT 1");
}

int session_send(struct session *session, const sqlock_statement *statement,
                 const sqlock_value *values, size_t count, int64_t deadline_ns)
{
    sqlock_result_clear(&session->result);
    return subject.driver->execute(session->connection, statement, values,
                                   count, deadline_ns, &session->result,
                                   &session->err);
}

int session_try(struct session *session, const char *format, ...)
{
    char text[8192];
    sqlock_statement statement = {.text = text};
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof text)
        return sqlock_error_set(&session->err, SQLOCK_EINVAL, 0, NULL,
                                "the test's statement is too long");
    return session_send(session, &statement, NULL, 0,
                        check_deadline_ns(DEADLINE_MS));
}

int session_values(struct session *session, uint32_t id, const char *text,
                   const sqlock_value *values, size_t count)
{
    const struct lk_name names[] = {{"table", subject.values.quoted},
                                    {NULL, NULL}};
    sqlock_statement statement = {.id = id == 0 ? 0 : id + subject.ids};
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    size_t wanted = count;
    char *named;
    char *numbered;
    int rc;

    assert_non_null(out);
    lk_names_write(out, text, names);
    named = lk_writer_close(&writer);
    assert_non_null(named);
    numbered = lk_placeholders_number(named, &wanted);
    assert_non_null(numbered);
    assert_int_equal(wanted, count);
    statement.text =
        subject.driver->dialect->placeholder == SQLOCK_PLACEHOLDER_DOLLAR
            ? numbered
            : named;
    rc = session_send(session, &statement, values, count,
                      check_deadline_ns(DEADLINE_MS));
    free(numbered);
    free(named);
    return rc;
}

int64_t session_integer(struct session *session, const char *text)
{
    session_run(session, "%s", text);
    return cell_integer(session, 0, 0);
}

int session_begin(struct session *session)
{
    return subject.driver->begin(session->connection,
                                 check_deadline_ns(DEADLINE_MS), &session->err);
}

int session_commit(struct session *session)
{
    return subject.driver->commit(
        session->connection, check_deadline_ns(DEADLINE_MS), &session->err);
}

int session_rollback(struct session *session)
{
    return subject.driver->rollback(
        session->connection, check_deadline_ns(DEADLINE_MS), &session->err);
}

const sqlock_value *cell(const struct session *session, size_t row,
                         size_t column)
{
    const sqlock_result *result = &session->result;

    if (row >= result->rows || column >= result->columns)
        fail_msg("no cell %zu,%zu in %zu rows of %zu columns", row, column,
                 result->rows, result->columns);
    return &result->cells[row * result->columns + column];
}

int64_t cell_integer(const struct session *session, size_t row, size_t column)
{
    const sqlock_value *value = cell(session, row, column);

    assert_int_equal(value->type, SQLOCK_INT64);
    return value->integer;
}

const char *cell_text(const struct session *session, size_t row, size_t column)
{
    const sqlock_value *value = cell(session, row, column);

    if (value->type == SQLOCK_NULL)
        return NULL;
    assert_int_equal(value->type, SQLOCK_TEXT);
    assert_int_equal(strlen(value->text), value->length);
    return value->text;
}

/* --------------------------------------------- statements of the dialect -- */

struct lk_arguments arguments_for(const struct fixture *f, const char *client,
                                  int64_t duration_us)
{
    struct lk_arguments arguments;

    memset(&arguments, 0, sizeof arguments);
    lk_argument_text(&arguments, SQLOCK_P_KEY, f->key);
    lk_argument_text(&arguments, SQLOCK_P_REGION, REGION);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, client);
    lk_argument_integer(&arguments, SQLOCK_P_TTL, duration_us);
    lk_argument_integer(&arguments, SQLOCK_P_PEER_TTL, PEER_TTL_US);
    lk_argument_text(&arguments, SQLOCK_P_NAME, "a name");
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, "a holder");
    lk_argument_integer(&arguments, SQLOCK_P_TOKEN, 0);
    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, "");
    return arguments;
}

int statement_try(struct session *session, const struct fixture *f,
                  sqlock_statement_kind kind,
                  const struct lk_arguments *arguments)
{
    const struct lk_statement *statement = &subject.statements[f->layout][kind];
    sqlock_value ordered[LK_PLACES_MAX];

    if (statement->text == NULL)
        return sqlock_error_set(&session->err, SQLOCK_ENOTSUP, 0, NULL,
                                "the dialect has no statement %d", (int)kind);
    lk_statement_order(statement, arguments, ordered);
    return session_send(session, &statement->sent, ordered, statement->count,
                        check_deadline_ns(DEADLINE_MS));
}

int64_t claim(struct session *session, const struct fixture *f,
              const char *client, int64_t ttl_us)
{
    struct lk_arguments arguments = arguments_for(f, client, ttl_us);
    int64_t token;

    lk_argument_text(&arguments, SQLOCK_P_QUEUE, NULL);
    statement_run(session, f, SQLOCK_SQL_CLAIM, &arguments);
    if (session->result.rows == 0)
        return 0;
    assert_int_equal(session->result.rows, 1);
    assert_in_range(session->result.columns, 1, 3);
    token = cell_integer(session, 0, 0);
    assert_less(0, token);
    return token;
}

static int64_t affected_by(struct session *session, const struct fixture *f,
                           sqlock_statement_kind kind, const char *client,
                           int64_t duration_us)
{
    struct lk_arguments arguments = arguments_for(f, client, duration_us);

    statement_run(session, f, kind, &arguments);
    return session->result.affected;
}

int64_t renew(struct session *session, const struct fixture *f,
              const char *client, int64_t ttl_us)
{
    return affected_by(session, f, SQLOCK_SQL_RENEW, client, ttl_us);
}

int64_t release(struct session *session, const struct fixture *f,
                const char *client)
{
    return affected_by(session, f, SQLOCK_SQL_RELEASE, client, 0);
}

bool read_row(struct session *session, const struct fixture *f)
{
    struct lk_arguments arguments = arguments_for(f, f->client_a, 0);

    statement_run(session, f, SQLOCK_SQL_READ, &arguments);
    if (session->result.rows == 0)
        return false;
    assert_int_equal(session->result.rows, 1);
    assert_int_equal(session->result.columns, LK_INFO_COLUMNS);
    return true;
}

int64_t remaining_us(struct session *session, const struct fixture *f)
{
    assert_true(read_row(session, f));
    return cell_integer(session, 0, LK_INFO_REMAINING);
}

void await_expiry(struct session *session, const struct fixture *f)
{
    assert_becomes_true(remaining_us(session, f) < 0, PATIENCE_MS);
}

int64_t now_us(struct session *session)
{
    struct fixture f = {.layout = SQLOCK_LAYOUT_SQLOCK};
    struct lk_arguments arguments = arguments_for(&f, "", 0);

    statement_run(session, &f, SQLOCK_SQL_SERVER, &arguments);
    return cell_integer(session, 0, 1);
}

void next_key(char key[SQLOCK_KEY_SIZE])
{
    (void)snprintf(key, SQLOCK_KEY_SIZE, "%08x-0000-4000-8000-%012lx",
                   ++subject.serial, (unsigned long)getpid());
}

/* ------------------------------------------------------------- fixtures -- */

/* Write the prefix of the tables of a layout. */
static void prefix_of(size_t layout, char out[32])
{
    (void)snprintf(out, 32, "DS%ldL%zu_", (long)getpid(), layout);
}

static void drop_tables(struct session *session)
{
    char prefix[32];

    prefix_of(SQLOCK_LAYOUT_SQLOCK, prefix);
    (void)session_try(session, "DROP VIEW %sLOCK_NOW", prefix);
    (void)session_try(session, "DROP TABLE %sLOCK_SERVER", prefix);
    (void)session_try(session, "DROP TABLE %sLOCK_MARK", prefix);
    for (size_t i = 0; i < SQLOCK_LAYOUTS; i++)
        (void)session_try(session, "DROP TABLE %s", subject.tables[i].quoted);
    (void)session_try(session, "DROP TABLE %s", subject.values.quoted);
}

static int create_table(struct session *session, size_t layout)
{
    char prefix[32];
    char *text;
    char *at;
    char *end;
    int rc = 0;

    prefix_of(layout, prefix);
    text = lk_schema_render(subject.driver->dialect->schema[layout], prefix);
    at = text;
    while (rc == 0 && at != NULL && (end = strstr(at, ";\n")) != NULL) {
        *end = '\0';
        rc = session_try(session, "%s", at);
        at = end + 2;
    }
    if (rc < 0)
        print_error("schema %zu: %s\n", layout, session->err.message);
    free(text);
    return rc;
}

static int render_all(size_t layout)
{
    const sqlock_dialect *dialect = subject.driver->dialect;
    const struct lk_name names[] = {
        {"INT_LOCK", subject.tables[layout].quoted},
        {"INT_DONE", subject.tables[layout].quoted},
        {NULL, NULL},
    };
    char prefix[32];
    int rc;

    prefix_of(layout, prefix);
    rc = lk_table_from_prefix(&subject.tables[layout], prefix, dialect, NULL);
    for (size_t kind = 0; rc == 0 && kind < SQLOCK_SQL_KINDS; kind++) {
        rc = lk_statement_of_kind(
            &subject.statements[layout][kind], dialect, (sqlock_layout)layout,
            (sqlock_statement_kind)kind, names, subject.ids + 1);
        if (rc == 0)
            subject.ids++;
        else if (rc == SQLOCK_ENOTSUP)
            rc = 0;
    }
    return rc;
}

static int prepare_database(struct session *session)
{
    char prefix[32];
    int rc = 0;

    (void)snprintf(prefix, sizeof prefix, "DS%ldV_", (long)getpid());
    if (lk_table_from_prefix(&subject.values, prefix, subject.driver->dialect,
                             NULL) < 0)
        return -1;
    for (size_t i = 0; rc == 0 && i < SQLOCK_LAYOUTS; i++)
        rc = render_all(i);
    if (rc < 0) {
        print_error("a statement cannot be made: %d\n", rc);
        return -1;
    }
    drop_tables(session);
    for (size_t i = 0; rc == 0 && i < SQLOCK_LAYOUTS; i++)
        rc = create_table(session, i);
    if (rc == 0)
        rc = session_try(session,
                         "CREATE TABLE %s (K VARCHAR(36) NOT NULL PRIMARY KEY, "
                         "I BIGINT, T %s)",
                         subject.values.quoted, subject.spelling->text_type);
    if (rc < 0)
        print_error("%s\n", session->err.message);
    return rc;
}

int suite_open(void **state)
{
    const struct database *database = subject.database;
    struct session session;
    sqlock_error err;
    int rc;

    (void)state;
    lk_watchdog_init(&dog);
    subject.url = database_url(database);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (spellings[i].bit == database->bit)
            subject.spelling = &spellings[i];
    if (lk_driver_find(&subject.driver, subject.url, &err) < 0) {
        print_error("%s\n", err.message);
        return -1;
    }
    rc = session_open_at(&session, subject.url, LOCK_TIMEOUT_MS);
    if (rc < 0)
        print_error("%s: %s\n", database->name, session.err.message);
    else
        rc = prepare_database(&session);
    session_close(&session);
    return rc;
}

int suite_close(void **state)
{
    struct session session;
    int rc;

    (void)state;
    rc = session_open_at(&session, subject.url, LOCK_TIMEOUT_MS);
    if (rc == 0)
        drop_tables(&session);
    session_close(&session);
    for (size_t i = 0; i < SQLOCK_LAYOUTS; i++)
        for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
            lk_statement_clear(&subject.statements[i][kind]);
    memset(&subject, 0, sizeof subject);
    lk_watchdog_stop(&dog);
    return rc;
}

/* At first *state points to a struct start. */
int test_open(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct start *start = *state;

    if (f == NULL)
        return -1;
    f->start = start;
    f->layout = start->layout;
    *state = f;
    session_open(&f->a);
    session_open(&f->b);
    next_key(f->key);
    lk_random_uuid(f->client_a);
    lk_random_uuid(f->client_b);
    return 0;
}

int test_close(void **state)
{
    struct fixture *f = *state;

    session_close(&f->a);
    session_close(&f->b);
    free(f);
    return 0;
}
