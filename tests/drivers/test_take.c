/*
 * test_take.c - TAKE, a cheaper claim of a row that exists and is over, on the
 * layouts that have it
 */
#include "drivers/suite.h"

#include "db/driver.h"

#define SHORT_US INT64_C(50000)

/* Send TAKE.  Return the token; 0: nothing was changed. */
static int64_t take(struct session *session, const struct test *test,
                    const char *client)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    statement_run(session, test, SQLOCK_SQL_TAKE, &arguments);
    assert_in_range(session->result.rows, 0, 1);
    return session->result.rows == 0 ? 0 : cell_integer(session, 0, 0);
}

static void test_take_grants_what_is_over(void **state)
{
    struct test *test = *state;
    int64_t token;

    token = claim(&test->a, test, test->client_a, SHORT_US);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_less(token, take(&test->b, test, test->client_b));
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_b);
    assert_string_equal(cell_text(&test->a, 0, INFO_NAME), "a name");
    assert_string_equal(cell_text(&test->a, 0, INFO_HOLDER), "a holder");
    token = cell_integer(&test->a, 0, INFO_TOKEN);
    assert_less(LONG_US / 2, remaining_us(&test->a, test));
    assert_int_equal(release(&test->b, test, test->client_b), 1);

    assert_less(token, claim(&test->a, test, test->client_a, SHORT_US));
    await_expiry(&test->a, test);
    token = now_us(&test->b);
    assert_less(token - 1, take(&test->b, test, test->client_b));
    assert_int_equal(claim(&test->a, test, test->client_a, LONG_US), 0);
}

static void test_take_leaves_everything_else_alone(void **state)
{
    struct test *test = *state;
    int64_t token;

    assert_int_equal(take(&test->a, test, test->client_a), 0);
    assert_false(read_row(&test->a, test));
    token = claim(&test->a, test, test->client_a, LONG_US);
    assert_int_equal(take(&test->b, test, test->client_b), 0);
    assert_int_equal(take(&test->b, test, test->client_a), 0);
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_a);
    assert_int_equal(cell_integer(&test->a, 0, INFO_TOKEN), token);
}

static void test_taken_tokens_rise_whatever_the_clock_says(void **state)
{
    struct test *test = *state;
    int64_t ahead = put_token_ahead(test);

    assert_int_equal(take(&test->b, test, test->client_b), ahead + 1);
}

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
    if (subject.statements[test->layout][SQLOCK_SQL_TAKE].text != NULL) {
        assert_less(token, take(&test->a, test, test->client_a));
        assert_true(is_anothers(&test->a));
        assert_int_equal(release(&test->a, test, test->client_a), 1);
    }
    session_leave_queue(&test->b);
    assert_less(token, claim(&test->a, test, test->client_a, LONG_US));
    assert_false(is_anothers(&test->a));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

static bool takes(void)
{
    struct lk_statement statement = {0};
    const sqlock_driver *driver;
    bool does;

    does = lk_driver_find(&driver, database_url(subject.database), NULL) == 0 &&
           lk_statement_of_kind(&statement, driver->dialect,
                                (sqlock_layout)subject.layout, SQLOCK_SQL_TAKE,
                                "T", 1) == 0;
    lk_statement_clear(&statement);
    return does;
}

void add_take_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK)
        ADD(a_claim_tells_of_a_queue_lock_that_is_anothers);
    if (!takes())
        return;
    ADD(take_grants_what_is_over);
    ADD(take_leaves_everything_else_alone);
    ADD(taken_tokens_rise_whatever_the_clock_says);
#undef ADD
}
