/*
 * test_transactions.c - begin, commit and rollback, and the codes that tell
 * whether something was committed
 */
#include "drivers/mysql/errors.h"
#include "drivers/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return how many rows with this key session b sees in the table of values. */
static int64_t seen_by_other(struct test *test, const char *key)
{
    session_run(&test->b, "SELECT count(*) FROM %s WHERE K = '%s'",
                subject.values.quoted, key);
    return cell_integer(&test->b, 0, 0);
}

static int insert(struct session *session, const char *key)
{
    return session_try(session, "INSERT INTO %s (K) VALUES ('%s')",
                       subject.values.quoted, key);
}

static void test_commit_shows_what_was_written(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 0);
    assert_lock_ok(session_commit(&test->a), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 1);
}

static void test_rollback_takes_back_what_was_written(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 0);
    /* Autocommit again. */
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 1);
}

/* A connection in a transaction must not go back to a pool, where nobody would
 * commit the next statement: is_alive() returns false. */
static void test_connection_in_a_transaction_is_not_for_others(void **state)
{
    struct test *test = *state;
    const sqlock_driver *driver = subject.driver;

    assert_true(driver->is_alive(test->a.connection));
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_false(driver->is_alive(test->a.connection));
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    assert_true(driver->is_alive(test->a.connection));
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(session_commit(&test->a), &test->a.err);
    assert_true(driver->is_alive(test->a.connection));
}

/* Open a session while the server has a setting, which is then undone. */
static void open_under(struct session *session, const char *set,
                       const char *unset)
{
    struct session admin;
    int rc;

    rc = session_open_at(&admin, database_admin_url(subject.database),
                         LOCK_TIMEOUT_MS);
    session_ok(&admin, rc);
    session_run(&admin, "SET GLOBAL %s", set);
    rc = session_open_at(session, subject.url, LOCK_TIMEOUT_MS);
    session_run(&admin, "SET GLOBAL %s", unset);
    session_close(&admin);
    session_ok(session, rc);
}

/* The server is set to begin a transaction after each commit.  Nevertheless a
 * statement after a commit commits itself. */
static void test_commit_begins_no_transaction(void **state)
{
    struct test *test = *state;
    struct session other;

    open_under(&other, "completion_type = 'CHAIN'",
               "completion_type = 'NO_CHAIN'");
    session_ok(&other, session_begin(&other));
    session_ok(&other, session_commit(&other));
    session_ok(&other, insert(&other, test->key));
    assert_int_equal(seen_by_other(test, test->key), 1);
    session_close(&other);
}

/* Servers may limit results for people at a prompt.  A row of the lock table
 * that is left out would look like a free lock. */
static void test_no_limit_of_the_server_cuts_a_result(void **state)
{
    static const char *const limits[][2] = {
        {"sql_select_limit = 1", "sql_select_limit = DEFAULT"},
        {"max_join_size = 1", "max_join_size = DEFAULT"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct session other;

        open_under(&other, limits[i][0], limits[i][1]);
        session_run(&other, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3");
        assert_int_equal(other.result.rows, 3);
        session_close(&other);
    }
}

static void test_rollback_without_a_transaction_is_fine(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    session_run(&test->a, "SELECT 1");
}

/* F26: a statement of a transaction fails.  If the server has rolled the
 * transaction back, the commit returns an error, even if the server answers it
 * with success.  A server that has undone only that statement may commit the
 * others. */
static void test_commit_after_an_error_tells_the_truth(void **state)
{
    struct test *test = *state;
    char other[SQLOCK_KEY_SIZE];
    int rc;

    next_key(other);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, other), &test->a.err);
    assert_code(SQLOCK_EBUSY, insert(&test->a, test->key), &test->a.err);
    rc = session_commit(&test->a);
    assert_int_equal(seen_by_other(test, other), rc == 0);
    if (subject.database->bit == ON_POSTGRES)
        assert_int_not_equal(rc, 0);
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    session_run(&test->a, "SELECT 1");
}

/* InnoDB without room for another row lock rolls back the whole transaction. */
static void test_no_room_for_locks_ends_the_transaction(void **state)
{
    struct test *test = *state;
    char other[SQLOCK_KEY_SIZE];

    next_key(other);
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    session_refuses(SQLOCK_ERESOURCE, &test->a,
                    "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1206");
    assert_code(SQLOCK_ERETRY, insert(&test->a, other), &test->a.err);
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 0);
    assert_int_equal(seen_by_other(test, other), 0);
}

#define SIGNAL(number) "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = " number
#define SIGNAL_FAILED_COMMIT SIGNAL("1180")
#define SIGNAL_FAILED_HOOK SIGNAL("3100")

/* With these errors Galera and Group Replication report a commit that other
 * members may have carried out. */
static void test_failed_commit_of_a_statement_is_uncertain(void **state)
{
    static const char *const statements[] = {SIGNAL_FAILED_COMMIT,
                                             SIGNAL_FAILED_HOOK};
    struct test *test = *state;

    for (size_t i = 0; i < 2; i++) {
        struct session session;

        session_open(&session);
        session_refuses(SQLOCK_EUNCERTAIN, &session, "%s", statements[i]);
        assert_false(subject.driver->is_alive(session.connection));
        session_fails(SQLOCK_EUNREACHABLE, &session,
                      insert(&session, test->key));
        session_close(&session);
    }
}

/* Within a transaction this error is uncertain, too: the statement may have
 * committed the transaction, as CREATE TABLE does. */
static void test_failed_hook_in_a_transaction_is_uncertain(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_begin(&test->a), &test->a.err);
    session_refuses(SQLOCK_EUNCERTAIN, &test->a, SIGNAL_FAILED_HOOK);
    assert_false(subject.driver->is_alive(test->a.connection));
}

/* NULL where MySQL's driver is not compiled in. */
extern __attribute__((weak)) int lk_mysql_classify(unsigned int number,
                                                   enum lk_mysql_stage stage);

/* After an error of COMMIT the outcome is unknown, unless the error says that
 * nothing was committed.  After an error of another statement in a transaction,
 * or of a login, nothing was done. */
static void test_errors_tell_what_may_be_committed(void **state)
{
    static const struct {
        enum lk_mysql_stage stage;
        unsigned int number;
        int code;
    } errors[] = {
        {LK_MYSQL_COMMITTING, 1213, SQLOCK_ERETRY},
        {LK_MYSQL_COMMITTING, 3101, SQLOCK_ERETRY},
        {LK_MYSQL_COMMITTING, 1290, SQLOCK_EREADONLY},
        {LK_MYSQL_COMMITTING, 1836, SQLOCK_EREADONLY},
        {LK_MYSQL_COMMITTING, 1047, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1180, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 3100, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1317, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1205, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1021, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1105, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 1598, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 2013, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 4031, SQLOCK_EUNREACHABLE},
        {LK_MYSQL_COMMITTING, 3032, SQLOCK_EUNCERTAIN},
        {LK_MYSQL_COMMITTING, 9001, SQLOCK_EUNCERTAIN},
        /* of Group Replication, before a statement begins */
        {LK_MYSQL_AUTOCOMMIT, 3101, SQLOCK_ERETRY},
        {LK_MYSQL_AUTOCOMMIT, 3781, SQLOCK_ERETRY},
        {LK_MYSQL_AUTOCOMMIT, 3797, SQLOCK_ERETRY},
        {LK_MYSQL_AUTOCOMMIT, 3798, SQLOCK_ERETRY},
        {LK_MYSQL_AUTOCOMMIT, 3782, SQLOCK_ECANCELED},
        {LK_MYSQL_AUTOCOMMIT, 3783, SQLOCK_EREADONLY},
        {LK_MYSQL_AUTOCOMMIT, 3796, SQLOCK_EREADONLY},
        {LK_MYSQL_AUTOCOMMIT, 3799, SQLOCK_EREADONLY},
        {LK_MYSQL_RUNNING, 1792, SQLOCK_EREADONLY},    /* tx_read_only */
        {LK_MYSQL_RUNNING, 3032, SQLOCK_EUNREACHABLE}, /* offline_mode */
        {LK_MYSQL_RUNNING, 9001, SQLOCK_EUNREACHABLE}, /* of ProxySQL */
        {LK_MYSQL_CONNECTING, 9002, SQLOCK_EUNREACHABLE},
        {LK_MYSQL_CONNECTING, 1105, SQLOCK_EUNREACHABLE},
        {LK_MYSQL_CONNECTING, 1045, SQLOCK_EACCESS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int code = lk_mysql_classify(errors[i].number, errors[i].stage);

        if (code != errors[i].code)
            fail_msg("error %u at stage %d is %d, not %d", errors[i].number,
                     (int)errors[i].stage, code, errors[i].code);
    }
}

/* Within a transaction, before COMMIT, this error means that nothing was
 * committed. */
static void test_failed_commit_before_the_commit_may_be_retried(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    session_refuses(SQLOCK_ERETRY, &test->a, SIGNAL_FAILED_COMMIT);
    assert_code(SQLOCK_ERETRY, session_commit(&test->a), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 0);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
}

/* CockroachDB returns SQLSTATE 40003 for a commit whose outcome is unknown. */
static void test_unknown_completion_is_uncertain(void **state)
{
    struct test *test = *state;

    session_refuses(SQLOCK_EUNCERTAIN, &test->a,
                    "DO $$BEGIN RAISE EXCEPTION 'unknown' "
                    "USING ERRCODE = '40003'; END$$");
}

/* Assert how many prepared statements of a text the session has. */
static void assert_prepared(struct session *session, int64_t count,
                            const char *text)
{
    session_run(session,
                "SELECT count(*) FROM pg_prepared_statements "
                "WHERE statement = '%s'",
                text);
    assert_int_equal(cell_integer(session, 0, 0), count);
}

/* To prepare takes a round trip, and a command that holds one lock sends most
 * of its statements once. */
static void test_prepared_when_sent_again(void **state)
{
    struct test *test = *state;
    const sqlock_statement statement = {.text = "SELECT 1 + 1",
                                        .id = SQLOCK_STATEMENT_IDS};
    int64_t deadline_ns = check_deadline_ns(DEADLINE_MS);

    for (int64_t sent = 0; sent < 3; sent++) {
        session_ok(&test->a,
                   session_send(&test->a, &statement, NULL, 0, deadline_ns));
        assert_int_equal(cell_integer(&test->a, 0, 0), 2);
        assert_prepared(&test->a, sent > 0, statement.text);
    }
}

/* A pooler lends b a session in which another client has prepared a statement
 * of that name.  The transaction gets ERETRY, and succeeds when it is run
 * again. */
static void test_prepared_by_somebody_else_in_a_transaction(void **state)
{
    struct test *test = *state;
    const sqlock_statement statement = {.text = "SELECT 1 + 1",
                                        .id = SQLOCK_STATEMENT_IDS};
    int64_t deadline_ns = check_deadline_ns(DEADLINE_MS);

    for (int i = 0; i < 2; i++)
        session_ok(&test->a,
                   session_send(&test->a, &statement, NULL, 0, deadline_ns));
    session_run(&test->a, "SELECT name FROM pg_prepared_statements "
                          "WHERE statement = 'SELECT 1 + 1'");
    session_run(&test->b, "PREPARE \"%s\" AS SELECT 1 + 1",
                cell_text(&test->a, 0, 0));
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    session_ok(&test->b,
               session_send(&test->b, &statement, NULL, 0, deadline_ns));
    session_fails(SQLOCK_ERETRY, &test->b,
                  session_send(&test->b, &statement, NULL, 0, deadline_ns));
    assert_lock_ok(session_rollback(&test->b), &test->b.err);
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    session_ok(&test->b,
               session_send(&test->b, &statement, NULL, 0, deadline_ns));
    assert_lock_ok(session_rollback(&test->b), &test->b.err);
}

/* Return a connection that has adopted the session's handle. */
static void *adopt(struct session *session)
{
    const sqlock_driver *driver = subject.driver;
    void *adopted = calloc(1, driver->connection_bytes);

    assert_non_null(adopted);
    session_ok(session, driver->transactions->adopt(
                            adopted, driver->native(session->connection),
                            &session->err));
    return adopted;
}

static void unadopt(void *adopted)
{
    subject.driver->transactions->unadopt(adopted, true);
    free(adopted);
}

/* A session is recognized by the statements that were prepared there, by the
 * same owner, whatever handle leads to it and whatever number it has. */
static void test_only_the_same_session_is_resumed(void **state)
{
    struct test *test = *state;
    const sqlock_transactions *part = subject.driver->transactions;
    bool is_postgres = subject.database->bit == ON_POSTGRES;
    const sqlock_statement statement = {.text = is_postgres ? "SELECT $1::text"
                                                            : "SELECT ?",
                                        .id = SQLOCK_STATEMENT_IDS};
    const sqlock_value value = {.type = SQLOCK_TEXT, .text = "x", .length = 1};
    const sqlock_call call = {&statement, &value, 1};
    int64_t deadline_ns = check_deadline_ns(DEADLINE_MS);
    void *adopted;
    int rc;

    if (part->prepare == NULL || part->resume == NULL)
        return; /* libpq has no pipelines */
    adopted = adopt(&test->a);
    rc = part->prepare(adopted, "owner", &call, 1, deadline_ns, &test->a.err);
    if (rc == SQLOCK_ENOTSUP && !is_postgres) {
        unadopt(adopted);
        return; /* Oracle's MySQL */
    }
    session_ok(&test->a, rc);
    assert_true(part->is_prepared(adopted));
    unadopt(adopted);
    adopted = adopt(&test->b);
    assert_false(part->is_prepared(adopted));
    session_fails(
        SQLOCK_ENOTFOUND, &test->b,
        part->resume(adopted, "owner", &call, 1, deadline_ns, &test->b.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_NONE);
    assert_false(part->is_prepared(adopted));
    unadopt(adopted);
    adopted = adopt(&test->a);
    session_fails(
        SQLOCK_ENOTFOUND, &test->a,
        part->resume(adopted, "stranger", &call, 1, deadline_ns, &test->a.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_NONE);
    session_ok(&test->a, part->resume(adopted, "owner", &call, 1, deadline_ns,
                                      &test->a.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_OPEN);
    assert_true(part->is_prepared(adopted));
    session_ok(&test->a,
               subject.driver->rollback(adopted, deadline_ns, &test->a.err));
    /* The session has it already, and that is used. */
    session_ok(&test->a, part->prepare(adopted, "owner", &call, 1, deadline_ns,
                                       &test->a.err));
    unadopt(adopted);
}

static void test_transaction_goes_with_its_connection(void **state)
{
    struct test *test = *state;
    struct session session;

    session_open(&session);
    assert_lock_ok(session_begin(&session), &session.err);
    assert_lock_ok(insert(&session, test->key), &session.err);
    session_close(&session);
    assert_int_equal(seen_by_other(test, test->key), 0);
    /* The server soon ends the session and unlocks the row. */
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
}

/* READ COMMITTED: a statement sees what was committed before it, also within a
 * transaction.  (With SQLite nobody commits meanwhile: b has the write
 * lock.) */
static void test_each_statement_sees_what_is_committed(void **state)
{
    struct test *test = *state;

    assert_lock_ok(session_begin(&test->b), &test->b.err);
    assert_int_equal(seen_by_other(test, test->key), 0);
    assert_lock_ok(insert(&test->a, test->key), &test->a.err);
    assert_int_equal(seen_by_other(test, test->key), 1);
    assert_lock_ok(session_commit(&test->b), &test->b.err);
}

/* a releases in a transaction, so the row stays locked.  b's claim gives up
 * after 300 ms, and is granted after a's commit. */
static void test_wait_for_a_row_lock_ends_as_busy(void **state)
{
    struct test *test = *state;
    struct session *b = &test->b;
    struct lk_arguments arguments =
        arguments_for(test, test->client_b, LONG_US);

    session_close(b);
    assert_lock_ok(session_open_at(b, subject.url, 300), &b->err);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    session_fails(SQLOCK_EBUSY, b,
                  statement_try(b, test, SQLOCK_SQL_CLAIM, &arguments));
    assert_true(subject.driver->is_alive(b->connection));
    assert_lock_ok(session_commit(&test->a), &test->a.err);
    assert_less(0, claim(b, test, test->client_b, LONG_US));
}

/* A READ does not wait for a row lock. */
static void test_read_passes_a_locked_row(void **state)
{
    struct test *test = *state;

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    assert_int_equal(renew(&test->a, test, test->client_a, 2 * LONG_US), 1);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_CLIENT), test->client_a);
    assert_lock_ok(session_rollback(&test->a), &test->a.err);
}

/* Assert the server's limit of waits for locks after opening with lock_ms, in
 * the unit of the server's setting. */
static void expect_limits(uint32_t lock_ms, int64_t expected)
{
    bool is_mysql = subject.database->bit == ON_MYSQL;
    struct session session;

    session_ok(&session, session_open_at(&session, subject.url, lock_ms));
    assert_int_equal(
        session_integer(&session, is_mysql ? "SELECT @@innodb_lock_wait_timeout"
                                           : "SELECT CAST(setting AS bigint) "
                                             "FROM pg_settings "
                                             "WHERE name = 'lock_timeout'"),
        expected);
    if (is_mysql)
        assert_int_equal(
            session_integer(&session, "SELECT @@lock_wait_timeout"), expected);
    session_close(&session);
}

/* MySQL counts whole seconds: a fraction is rounded up. */
static void test_the_server_limits_waits_for_locks_as_asked(void **state)
{
    bool is_mysql = subject.database->bit == ON_MYSQL;

    (void)state;
    expect_limits(1, 1);
    expect_limits(1000, is_mysql ? 1 : 1000);
    expect_limits(1001, is_mysql ? 2 : 1001);
    expect_limits(2500, is_mysql ? 3 : 2500);
    expect_limits(3600000, is_mysql ? 3600 : 3600000);
}

void add_transaction_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(commit_shows_what_was_written);
    ADD(rollback_takes_back_what_was_written);
    ADD(rollback_without_a_transaction_is_fine);
    ADD(connection_in_a_transaction_is_not_for_others);
    ADD(commit_after_an_error_tells_the_truth);
    ADD(transaction_goes_with_its_connection);
    ADD(wait_for_a_row_lock_ends_as_busy);
    ADD(read_passes_a_locked_row);
    if (subject.database->bit != ON_SQLITE) {
        ADD(each_statement_sees_what_is_committed);
        ADD(the_server_limits_waits_for_locks_as_asked);
        ADD(only_the_same_session_is_resumed);
    }
    if (subject.database->bit == ON_MYSQL) {
        ADD(commit_begins_no_transaction);
        ADD(no_limit_of_the_server_cuts_a_result);
        ADD(no_room_for_locks_ends_the_transaction);
        ADD(failed_commit_of_a_statement_is_uncertain);
        ADD(failed_commit_before_the_commit_may_be_retried);
        ADD(failed_hook_in_a_transaction_is_uncertain);
        ADD(errors_tell_what_may_be_committed);
    }
    if (subject.database->bit == ON_POSTGRES) {
        ADD(unknown_completion_is_uncertain);
        ADD(prepared_when_sent_again);
        ADD(prepared_by_somebody_else_in_a_transaction);
    }
#undef ADD
}
