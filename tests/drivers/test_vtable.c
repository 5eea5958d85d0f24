/*
 * test_vtable.c - the members of a driver, its description of a connection, and
 * URLs that it accepts
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(test_every_function_is_there)
{
    const sqlock_driver *driver = subject.driver;

    assert_non_null(driver->name);
    assert_non_null(driver->schemes);
    assert_true(driver->connection_bytes > 0);
    assert_non_null(driver->dialect);
    assert_non_null(driver->client);
    assert_non_null(driver->check_url);
    assert_non_null(driver->open);
    assert_non_null(driver->close);
    assert_non_null(driver->is_alive);
    assert_non_null(driver->execute);
    assert_non_null(driver->begin);
    assert_non_null(driver->commit);
    assert_non_null(driver->rollback);
    assert_non_null(driver->abort);
    assert_non_null(driver->native);
    assert_non_null(driver->describe);
}

/* Statements that a database of the library's drivers may lack on purpose, in
 * that layout. */
static bool may_be_missing(size_t layout, sqlock_statement_kind kind)
{
    switch (kind) {
    case SQLOCK_SQL_ENQUEUE:
    case SQLOCK_SQL_LEAVE:
    case SQLOCK_SQL_CLAIM_UNQUEUED:
    case SQLOCK_SQL_CLAIM_RESERVED:
    case SQLOCK_SQL_RELEASE_UNQUEUED:
    case SQLOCK_SQL_SHARE:
    case SQLOCK_SQL_RENEW_SHARE:
    case SQLOCK_SQL_RELEASE_SHARE:
    case SQLOCK_SQL_BREAK_SHARE:
    case SQLOCK_SQL_DOWNGRADE:
    case SQLOCK_SQL_PERMITS:
    case SQLOCK_SQL_PUBLISH:
    case SQLOCK_SQL_PASS_ON:
    case SQLOCK_SQL_WAITS:
        return layout != SQLOCK_LAYOUT_SQLOCK;
    case SQLOCK_SQL_RELEASE_TO_PEERS: /* no Spring service shares a file */
        return layout != SQLOCK_LAYOUT_SQLOCK ||
               subject.database->bit == ON_SQLITE;
    case SQLOCK_SQL_TELL:
    case SQLOCK_SQL_ASK_TO_LOOK:
        return layout != SQLOCK_LAYOUT_SQLOCK || subject.driver->bell == NULL ||
               subject.driver->bell->is_of_one;
    case SQLOCK_SQL_CLAIM_UNQUEUED_MANY:
    case SQLOCK_SQL_RELEASE_UNQUEUED_MANY:
    case SQLOCK_SQL_RELEASE_WITH_BELL:
    case SQLOCK_SQL_FIND_BEGIN:
    case SQLOCK_SQL_TX_ASSERT:
    case SQLOCK_SQL_ISOLATION:
    case SQLOCK_SQL_ONE_NODE:
    case SQLOCK_SQL_STALE_SESSIONS:
    case SQLOCK_SQL_TAGGED_SESSIONS:
        return true;
    /* rows are locked one by one, or there is one write lock */
    case SQLOCK_SQL_NAME_SEED:
    case SQLOCK_SQL_NAME_LOCK:
    case SQLOCK_SQL_NAME_WAIT:
    case SQLOCK_SQL_NAME_REAP:
        return subject.database->bit == ON_SQLITE;
    case SQLOCK_SQL_WRITE_LOCK:
        return subject.database->bit != ON_SQLITE;
    case SQLOCK_SQL_MARK:
        return layout != SQLOCK_LAYOUT_SQLOCK ||
               subject.database->bit != ON_POSTGRES;
    case SQLOCK_SQL_GRACE:
    case SQLOCK_SQL_BEGIN_GRACE:
    case SQLOCK_SQL_LENGTHEN_GRACE:
    case SQLOCK_SQL_ALLOW_GRACE:
    case SQLOCK_SQL_LEAST_GRACE:
    case SQLOCK_SQL_STANDBYS:
    case SQLOCK_SQL_LONGER:
    case SQLOCK_SQL_SHORTEN_GRACE:
    case SQLOCK_SQL_END_GRACE:
        return layout != SQLOCK_LAYOUT_SQLOCK ||
               subject.database->bit == ON_SQLITE;
    default:
        return false;
    }
}

/* Each layout of the library's drivers has a schema and all statements but the
 * optional ones. */
TEST(test_every_statement_and_schema_is_there)
{
    const sqlock_dialect *dialect = subject.driver->dialect;
    size_t columns = 0;

    for (size_t i = 0; i < SQLOCK_LAYOUTS; i++) {
        assert_non_null(dialect->schema[i]);
        assert_contains(dialect->schema[i], "INT_LOCK");
        assert_contains(dialect->schema[i], ";\n");
        for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
            if (subject.statements[i][kind].text == NULL &&
                !may_be_missing(i, (sqlock_statement_kind)kind))
                fail_msg("layout %zu lacks statement %zu", i, kind);
    }
    assert_true(dialect->quote == '"' || dialect->quote == '`');
    assert_true(dialect->identifier_max >= 32);
    while (dialect->columns[columns].name != NULL)
        columns++;
    assert_int_equal(columns, 11);
}

TEST(test_closing_what_was_never_opened_is_harmless)
{
    void *connection = calloc(1, subject.driver->connection_bytes);

    assert_non_null(connection);
    subject.driver->close(connection);
    subject.driver->close(connection);
    free(connection);
}

TEST(test_aborting_what_was_never_opened_is_harmless)
{
    void *connection = calloc(1, subject.driver->connection_bytes);

    assert_non_null(connection);
    subject.driver->abort(connection);
    subject.driver->close(connection);
    free(connection);
}

TEST(test_an_open_connection_is_alive_and_has_a_handle)
{
    assert_true(subject.driver->is_alive(f->a.connection));
    assert_non_null(subject.driver->native(f->a.connection));
    session_run(&f->a, "SELECT 1");
    assert_true(subject.driver->is_alive(f->a.connection));
}

TEST(test_description_names_server_client_and_session)
{
    sqlock_description description;
    sqlock_description other;
    int64_t id = 0;

    memset(&description, 'x', sizeof description);
    subject.driver->describe(f->a.connection, &description);
    assert_true(check_one_line(description.server));
    assert_true(check_one_line(description.client));
    assert_non_null(memchr(description.tls, '\0', sizeof description.tls));
    if (subject.spelling->own_id != NULL)
        id = session_integer(&f->a, subject.spelling->own_id);
    assert_int_equal(description.connection_id, id);
    /* The epoch is the server's, so it is equal in all sessions. */
    subject.driver->describe(f->b.connection, &other);
    assert_string_equal(description.epoch, other.epoch);
    assert_true(subject.database->bit == ON_SQLITE ||
                check_one_line(description.epoch));
    assert_true(check_one_line(subject.driver->client()));
    assert_ptr_equal(subject.driver->client(), subject.driver->client());
}

TEST(test_url_of_the_suite_is_accepted)
{
    sqlock_error err;

    assert_lock_ok(driver_check(subject.driver, subject.url, &err), &err);
}

TEST(test_bad_url_is_refused_without_its_password)
{
    static const char *const tails[] = {
        "://user:sEcReT99@[::1/db", "://user:sEcReT99@host:port/db",
        "://user:sEcReT99%zz@host/db",
        "://user:sEcReT99@host/db?no_such_parameter=1"};
    char url[256];

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        sqlock_error err = {.code = 0};
        size_t scheme = strcspn(subject.url, ":");

        (void)snprintf(url, sizeof url, "%.*s%s", (int)scheme, subject.url,
                       tails[i]);
        assert_code(SQLOCK_EINVAL, driver_check(subject.driver, url, &err),
                    &err);
        assert_lacks(err.message, "sEcReT99");
    }
}

/* Check how a statement commits, and one in a transaction. */
static void check_commits(struct session *session, bool may_be_lost,
                          const char *expected)
{
    const sqlock_statement show = {
        .text = "SELECT current_setting('synchronous_commit')",
        .may_be_lost = may_be_lost,
    };

    session_ok(session, session_send(session, &show, NULL, 0,
                                     check_deadline_ns(DEADLINE_MS)));
    assert_string_equal(cell_text(session, 0, 0), expected);
}

TEST_ON(test_fast_commits_are_those_that_may_be_lost, ON_POSTGRES, 0)
{
    static const struct {
        const char *options, *durable;
    } rows[] = {
        {"", "on"},
        {"&options=-csynchronous_commit%3Doff", "on"},
        {"&options=-csynchronous_commit%3Dremote_write", "remote_write"},
    };
    struct session session;
    char url[512];

    if (database_is_pooled(subject.database))
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(url, sizeof url, "%s%cdurability=fast%s", subject.url,
                       strchr(subject.url, '?') == NULL ? '?' : '&',
                       rows[i].options);
        session_open_url(&session, url);
        check_commits(&session, true, "off");
        check_commits(&session, false, rows[i].durable);
        check_commits(&session, true, "off");
        session_ok(&session, session_begin(&session));
        check_commits(&session, true, rows[i].durable);
        session_ok(&session, session_commit(&session));
        check_commits(&session, true, "off");
        session_close(&session);
    }
}
