/*
 * test_contended.c - a claim reports that another session has the queue lock,
 * on the layouts with wait queues
 */
#include "drivers/suite.h"

/* Return whether the last claim reported a queue lock of another session. */
static bool is_anothers(const struct session *session)
{
    return session->result.columns > 1 && cell_integer(session, 0, 1) != 0;
}

/* Another session has the queue lock: a claim is granted, and reports that.
 * When that session has given it up, a claim does not report it. */
static void test_a_claim_tells_of_a_queue_lock_that_is_anothers(void **state)
{
    struct test *test = *state;
    int64_t token;

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    session_ok(&test->b, session_queue(&test->b, QUEUE, 5000));
    token = claim(&test->a, test, test->client_a, LONG_US);
    assert_true(is_anothers(&test->a));
    assert_true(read_row(&test->a, test));
    assert_int_equal(cell_integer(&test->a, 0, INFO_TOKEN), token);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    session_leave_queue(&test->b);
    assert_less(token, claim(&test->a, test, test->client_a, LONG_US));
    assert_false(is_anothers(&test->a));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

void add_contended_tests(add_fn add)
{
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK)
        add("a_claim_tells_of_a_queue_lock_that_is_anothers",
            test_a_claim_tells_of_a_queue_lock_that_is_anothers);
}
