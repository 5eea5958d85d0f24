/*
 * test_sqlite_queue.c - SQLite's queue lock, which a claim takes in its own
 * statement: a statement or transaction that is undone does not keep it
 */
#include "drivers/suite.h"

static void take_queue(struct session *session)
{
    session_run(session, "SELECT sqlock_enqueue(%d)", (int)QUEUE);
    assert_int_equal(cell_integer(session, 0, 0), 0);
}

static void refuse_with_queue(struct session *session)
{
    session_refuses(SQLOCK_EDATABASE, session,
                    "INSERT INTO %s (K) "
                    "SELECT CASE sqlock_enqueue(%d) WHEN 1 THEN 'K' END",
                    subject.values.quoted, (int)QUEUE);
}

static void check_queue_is_free(struct session *session)
{
    session_ok(session, session_queue(session, QUEUE, 0));
    session_leave_queue(session);
}

static void
test_statement_that_is_undone_gives_the_queue_lock_back(void **state)
{
    struct test *test = *state;
    struct session *a = &test->a;
    struct session *b = &test->b;

    refuse_with_queue(a);
    check_queue_is_free(b);
    session_ok(a, session_begin(a));
    refuse_with_queue(a);
    check_queue_is_free(b);
    take_queue(a);
    session_ok(a, session_rollback(a));
    check_queue_is_free(b);
    session_ok(a, session_begin(a));
    take_queue(a);
    session_ok(a, session_commit(a));
    assert_int_equal(session_queue(b, QUEUE, 0), SQLOCK_EBUSY);
    session_leave_queue(a);
    check_queue_is_free(b);
}

void add_sqlite_queue_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(statement_that_is_undone_gives_the_queue_lock_back);
#undef ADD
}
