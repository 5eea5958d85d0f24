/*
 * test_sqlite_deadline.c - a deadline that comes while SQLite ends a statement:
 * the result says what was done
 */
#include "drivers/suite.h"

#ifdef SQLOCK_WITH_SQLITE

#include <sqlite3.h>

/* The driver looks at the clock after every 1000th step of SQLite's virtual
 * machine.  These statements have a few steps, so some of the looks come at the
 * end of a statement. */
#define TIMES 1000
#define SHORT_MS 1

#define TABLE "ended_late"

/* Calls whose deadline passes at their end. */
struct ending {
    struct session *session;
    sqlite3 *db;
    int64_t deadline_ns;
    int64_t told; /* rows whose insertion was reported */
};

/* Wait until the deadline is over.  SQLite calls it when a statement or COMMIT
 * has only to commit. */
static int pass_the_deadline(void *context)
{
    const struct ending *ending = context;

    while (sqlock_monotonic_ns() <= ending->deadline_ns)
        continue;
    return 0;
}

/* Wait until the deadline is over.  SQLite calls it when a statement begins.
 * During BEGIN, the driver does not look at the clock before the end. */
static int on_begin(unsigned event, void *context, void *statement, void *text)
{
    (void)event;
    (void)statement;
    (void)text;
    return pass_the_deadline(context);
}

static void ending_make(struct ending *ending, struct fixture *f)
{
    *ending = (struct ending){.session = &f->a};
    ending->db = subject.driver->native(f->a.connection);
    session_run(&f->a, "CREATE TABLE " TABLE " (i INTEGER)");
}

static void ending_check(struct ending *ending)
{
    (void)sqlite3_commit_hook(ending->db, NULL, NULL);
    (void)sqlite3_trace_v2(ending->db, 0, NULL, NULL);
    assert_int_equal(
        session_integer(ending->session, "SELECT count(*) FROM " TABLE),
        ending->told);
    session_run(ending->session, "DROP TABLE " TABLE);
}

static int insert(struct ending *ending, int64_t deadline_ns)
{
    const sqlock_statement statement = {
        .text = "INSERT INTO " TABLE " VALUES (1)", .id = 1};

    return session_send(ending->session, &statement, NULL, 0, deadline_ns);
}

TEST_ON(test_statement_that_is_late_at_its_end, ON_SQLITE, 0)
{
    struct ending ending;

    ending_make(&ending, f);
    (void)sqlite3_commit_hook(ending.db, pass_the_deadline, &ending);
    for (int i = 0; i < TIMES; i++) {
        ending.deadline_ns = check_deadline_ns(SHORT_MS);
        ending.told += insert(&ending, ending.deadline_ns) == 0;
    }
    ending_check(&ending);
}

TEST_ON(test_begin_that_is_late_at_its_end, ON_SQLITE, 0)
{
    struct ending ending;

    ending_make(&ending, f);
    (void)sqlite3_trace_v2(ending.db, SQLITE_TRACE_STMT, on_begin, &ending);
    for (int i = 0; i < TIMES; i++) {
        bool has_begun;
        int rc;

        ending.deadline_ns = check_deadline_ns(SHORT_MS);
        rc = subject.driver->begin(ending.session->connection,
                                   ending.deadline_ns, &ending.session->err);
        has_begun = sqlite3_get_autocommit(ending.db) == 0;
        assert_int_equal(has_begun, rc == 0);
        assert_lock_ok(session_rollback(ending.session), &ending.session->err);
    }
    ending_check(&ending);
}

TEST_ON(test_commit_that_is_late_at_its_end, ON_SQLITE, 0)
{
    struct ending ending;

    ending_make(&ending, f);
    (void)sqlite3_commit_hook(ending.db, pass_the_deadline, &ending);
    for (int i = 0; i < TIMES; i++) {
        assert_lock_ok(session_begin(ending.session), &ending.session->err);
        assert_lock_ok(insert(&ending, INT64_MAX), &ending.session->err);
        ending.deadline_ns = check_deadline_ns(SHORT_MS);
        ending.told += subject.driver->commit(ending.session->connection,
                                              ending.deadline_ns, NULL) == 0;
    }
    ending_check(&ending);
}

#endif
