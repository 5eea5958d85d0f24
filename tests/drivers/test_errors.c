/*
 * test_errors.c - errors of opening become codes, with a message of one line
 * and without secrets; nothing is printed
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"
#include "support/workers.h"

#define SECRET "sEcReT99"

static int insert_prepared(struct worker *worker)
{
    struct fixture *f = worker->context;
    char text[1024];
    const sqlock_statement insert = {.id = SQLOCK_STATEMENT_IDS - 1,
                                     .text = text};

    (void)snprintf(text, sizeof text, "INSERT INTO %s (K) VALUES ('%s')",
                   subject.values.quoted, f->key);
    worker_expect(
        worker, SQLOCK_EUNREACHABLE,
        session_send(&f->b, &insert, NULL, 0, check_deadline_ns(PATIENCE_MS)));
    return 0;
}

static int alter_table(struct worker *worker)
{
    session_run((struct session *)worker->context, "ALTER TABLE %s FORCE",
                subject.values.quoted);
    return 0;
}

/* While ALTER TABLE waits for a's transaction, b's preparation of an INSERT
 * waits for ALTER TABLE.  An abort ends the preparation: the INSERT was not
 * sent, and the result is EUNREACHABLE. */
TEST_ON(test_aborted_preparation_has_sent_no_statement, ON_MYSQL, 0)
{
    struct session other;
    struct worker altering;
    struct worker worker;

    session_open(&other);
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    session_run(&f->a, "SELECT count(*) FROM %s", subject.values.quoted);
    worker_start(&altering, alter_table, &other);
    check_sleep(300);
    worker_start(&worker, insert_prepared, f);
    check_sleep(300); /* so that the preparation has begun */
    subject.driver->abort(f->b.connection);
    worker_join(&worker);
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    worker_join(&altering);
    session_close(&other);
    session_close(&f->b);
    session_open(&f->b);
}

TEST(test_error_may_be_left_out)
{
    const sqlock_statement statement = {.text = "SELEKT"};

    assert_int_equal(subject.driver->execute(f->a.connection, &statement, NULL,
                                             0, check_deadline_ns(DEADLINE_MS),
                                             &f->a.result, NULL),
                     SQLOCK_EDATABASE);
}

/* ---------------------------------------------------------- logging in -- */

/* Write the URL `from` with another user, password, host or database; NULL
 * keeps the old one.  With another host, parameters that name a host or a
 * socket are left out. */
static void other_url(char *out, size_t size, const char *from,
                      const char *user, const char *password, const char *host,
                      const char *database)
{
    struct lk_url url;
    const char *separator = "?";
    size_t used;

    assert_int_equal(lk_url_parse(&url, from, NULL), 0);
    if (user == NULL)
        user = url.user == NULL ? "" : url.user;
    if (password == NULL)
        password = url.password == NULL ? "" : url.password;
    used = (size_t)snprintf(
        out, size, "%s://%s%s%s@%s%s%s%s%s", url.scheme, user,
        password[0] != '\0' ? ":" : "", password,
        host != NULL       ? host
        : url.host == NULL ? ""
                           : url.host,
        url.port == NULL ? "" : ":", url.port == NULL ? "" : url.port,
        database == NULL ? "" : "/", database == NULL ? url.path : database);
    for (size_t i = 0; i < url.count && used < size; i++) {
        const char *name = url.parameters[i].name;

        if (host != NULL &&
            (strcmp(name, "host") == 0 || strcmp(name, "socket") == 0))
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s=%s", separator,
                                 name, url.parameters[i].value);
        separator = "&";
    }
    assert_true(used < size);
    lk_url_clear(&url);
}

static void check_refused(int expected, const char *advice, const char *url)
{
    struct session session;
    int rc = session_open_at(&session, url, LOCK_TIMEOUT_MS);
    sqlock_error err = session.err;

    session_close(&session);
    assert_code(expected, rc, &err);
    assert_lacks(err.message, SECRET);
    assert_non_null(strstr(err.message, advice));
}

TEST_ON(test_wrong_login_is_refused_without_the_password, ON_SERVERS, 0)
{
    char url[1024];

    other_url(url, sizeof url, subject.url, "no_such_user", SECRET, NULL, NULL);
    check_refused(SQLOCK_EACCESS, "password_env=", url);
}

TEST_ON(test_unknown_host_is_a_wrong_url, ON_SERVERS, 0)
{
    char url[1024];

    other_url(url, sizeof url, subject.url, NULL, SECRET,
              "no-such-host.invalid", NULL);
    check_refused(SQLOCK_EINVAL, "no-such-host.invalid", url);
}

/* Nobody listens on port 1. */
TEST_ON(test_closed_port_is_unreachable, ON_SERVERS, 0)
{
    char url[1024];

    (void)snprintf(url, sizeof url, "%.*s://user:" SECRET "@127.0.0.1:1/db",
                   (int)strcspn(subject.url, ":"), subject.url);
    check_refused(SQLOCK_EUNREACHABLE, "is the server running", url);
}

TEST_ON(test_unknown_database_is_a_schema_error, ON_SERVERS, 0)
{
    char url[1024];

    /* As administrator: to other users some servers do not say that a database
     * is missing. */
    other_url(url, sizeof url, database_admin_url(subject.database), NULL, NULL,
              NULL, "no_such_database");
    check_refused(SQLOCK_ESCHEMA, "", url);
}

TEST(test_opening_leaves_no_descriptor)
{
    char url[1024];
    int code = SQLOCK_EUNREACHABLE;
    size_t before = 0, after = 0;

    (void)snprintf(url, sizeof url, "%.*s://user:" SECRET "@127.0.0.1:1/db",
                   (int)strcspn(subject.url, ":"), subject.url);
    if (subject.database->bit == ON_SQLITE) {
        (void)snprintf(url, sizeof url, "sqlite:/no/such/directory/db");
        code = SQLOCK_EINVAL;
    }
    for (size_t i = 0; i < 6; i++) {
        struct session session;

        check_refused(code, "", url);
        session_ok(&session,
                   session_open_at(&session, subject.url, LOCK_TIMEOUT_MS));
        session_close(&session);
        after = check_entries("/proc/self/fd");
        /* The first attempts may open a descriptor that stays open. */
        before = i == 0 ? after : before;
    }
    assert_int_equal(after, before);
}

/* --------------------------------------------------------- printing nothing */

/* Make the server send notices, warnings and errors. */
static void provoke(void)
{
    struct session session;
    char url[1024];

    (void)session_open_at(&session, subject.url, LOCK_TIMEOUT_MS);
    (void)session_try(&session, "DROP TABLE IF EXISTS no_such_table_here");
    (void)session_try(&session, "SELECT 1 FROM no_such_table_here");
    (void)session_try(&session, "SELEKT");
    if (subject.database->bit == ON_POSTGRES)
        (void)session_try(&session,
                          "DO $$ BEGIN RAISE WARNING 'heard'; END $$");
    (void)session_begin(&session);
    (void)session_begin(&session);
    (void)session_commit(&session);
    (void)session_commit(&session);
    session_close(&session);
    (void)snprintf(url, sizeof url, "%.*s://user:" SECRET "@127.0.0.1:1/db",
                   (int)strcspn(subject.url, ":"), subject.url);
    (void)session_open_at(&session, url, LOCK_TIMEOUT_MS);
    session_close(&session);
}

TEST(test_nothing_is_printed)
{
    FILE *file = tmpfile();
    char text[256] = "";
    int out = dup(STDOUT_FILENO);
    int errors = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    assert_true(out >= 0 && errors >= 0);
    (void)fflush(NULL);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    provoke();
    (void)fflush(NULL);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(errors, STDERR_FILENO);
    (void)close(out);
    (void)close(errors);
    rewind(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    (void)fclose(file);
    assert_string_equal(text, "");
}
