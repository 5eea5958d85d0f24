/*
 * test_transactions.c - what transactions.statements cannot say of them: codes
 * of MySQL, names of prepared statements, and adopted sessions
 */
#include "drivers/mysql/errors.h"
#include "drivers/suite.h"

#include <stdlib.h>

/* NULL where MySQL's driver is not compiled in. */
extern __attribute__((weak)) int lk_mysql_classify(unsigned int number,
                                                   enum lk_mysql_stage stage);

/* After an error of COMMIT the outcome is unknown, unless the error says that
 * nothing was committed.  After an error of another statement in a transaction,
 * or of a login, nothing was done. */
TEST_ON(test_errors_tell_what_may_be_committed, ON_MYSQL, 0)
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

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int code = lk_mysql_classify(errors[i].number, errors[i].stage);

        if (code != errors[i].code)
            fail_msg("error %u at stage %d is %d, not %d", errors[i].number,
                     (int)errors[i].stage, code, errors[i].code);
    }
}

/* A pooler lends b a session in which another client has prepared a statement
 * of that name.  The transaction gets ERETRY, and succeeds when it is run
 * again. */
TEST_ON(test_prepared_by_somebody_else_in_a_transaction, ON_POSTGRES, 0)
{
    const sqlock_statement statement = {.text = "SELECT 1 + 1",
                                        .id = SQLOCK_STATEMENT_IDS};
    int64_t deadline_ns = check_deadline_ns(DEADLINE_MS);

    for (int i = 0; i < 2; i++)
        session_ok(&f->a,
                   session_send(&f->a, &statement, NULL, 0, deadline_ns));
    session_run(&f->a, "SELECT name FROM pg_prepared_statements "
                       "WHERE statement = 'SELECT 1 + 1'");
    session_run(&f->b, "PREPARE \"%s\" AS SELECT 1 + 1",
                cell_text(&f->a, 0, 0));
    assert_lock_ok(session_begin(&f->b), &f->b.err);
    session_ok(&f->b, session_send(&f->b, &statement, NULL, 0, deadline_ns));
    session_fails(SQLOCK_ERETRY, &f->b,
                  session_send(&f->b, &statement, NULL, 0, deadline_ns));
    assert_lock_ok(session_rollback(&f->b), &f->b.err);
    assert_lock_ok(session_begin(&f->b), &f->b.err);
    session_ok(&f->b, session_send(&f->b, &statement, NULL, 0, deadline_ns));
    assert_lock_ok(session_rollback(&f->b), &f->b.err);
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
TEST_ON(test_only_the_same_session_is_resumed, ON_SERVERS, 0)
{
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
    adopted = adopt(&f->a);
    rc = part->prepare(adopted, "owner", &call, 1, deadline_ns, &f->a.err);
    if (rc == SQLOCK_ENOTSUP && !is_postgres) {
        unadopt(adopted);
        return; /* Oracle's MySQL */
    }
    session_ok(&f->a, rc);
    assert_true(part->is_prepared(adopted));
    unadopt(adopted);
    adopted = adopt(&f->b);
    assert_false(part->is_prepared(adopted));
    session_fails(
        SQLOCK_ENOTFOUND, &f->b,
        part->resume(adopted, "owner", &call, 1, deadline_ns, &f->b.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_NONE);
    assert_false(part->is_prepared(adopted));
    unadopt(adopted);
    adopted = adopt(&f->a);
    session_fails(
        SQLOCK_ENOTFOUND, &f->a,
        part->resume(adopted, "stranger", &call, 1, deadline_ns, &f->a.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_NONE);
    session_ok(&f->a, part->resume(adopted, "owner", &call, 1, deadline_ns,
                                   &f->a.err));
    assert_int_equal(part->state(adopted), SQLOCK_TX_OPEN);
    assert_true(part->is_prepared(adopted));
    session_ok(&f->a,
               subject.driver->rollback(adopted, deadline_ns, &f->a.err));
    /* The session has it already, and that is used. */
    session_ok(&f->a, part->prepare(adopted, "owner", &call, 1, deadline_ns,
                                    &f->a.err));
    unadopt(adopted);
}
