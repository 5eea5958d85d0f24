/*
 * test_unqueued.c - the shorter statements, for a row without tickets, change a
 * row that has none, and no other
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <string.h>

#define SHORT_US INT64_C(50000)

static const char client_c[] = "cccccccc-cccc-4ccc-8ccc-cccccccccccc";

/* Leave a ticket in the row, which another client has. */
static void let_wait(struct test *test, const char *client)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    lk_argument_integer(&arguments, SQLOCK_P_TURN, 0);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, "somebody");
    lk_argument_text(&arguments, SQLOCK_P_BELL, NULL);
    statement_run(&test->b, test, SQLOCK_SQL_ENQUEUE, &arguments);
    assert_true(read_row(&test->b, test));
    assert_non_null(strstr(cell_text(&test->b, 0, INFO_QUEUE), client));
}

/* Return the token; 0: nothing was changed. */
static int64_t claim_unqueued(struct session *session, const struct test *test,
                              const char *client)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    statement_run(session, test, SQLOCK_SQL_CLAIM_UNQUEUED, &arguments);
    if (session->result.rows == 0)
        return 0;
    assert_int_equal(session->result.rows, 1);
    return cell_integer(session, 0, 0);
}

static int64_t release_unqueued(struct session *session,
                                const struct test *test, const char *client)
{
    const struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    statement_run(session, test, SQLOCK_SQL_RELEASE_UNQUEUED, &arguments);
    return session->result.affected;
}

/* Return the row as one text, which a statement that changes it changes. */
static void copy_row(struct test *test, char *out, size_t size)
{
    size_t length = 0;

    assert_true(read_row(&test->b, test));
    for (size_t i = 0; i < INFO_COLUMNS; i++) {
        const sqlock_value *cell = &test->b.result.cells[i];

        if (i == INFO_REMAINING)
            continue;
        length += (size_t)snprintf(
            out + length, size - length, "%s %lld|",
            cell->type == SQLOCK_TEXT ? cell->text : "-",
            cell->type == SQLOCK_INT64 ? (long long)cell->integer : 0);
        assert_true(length < size);
    }
}

static void test_a_short_claim_takes_a_free_row_only(void **state)
{
    struct test *test = *state;
    int64_t token, next;

    assert_int_equal(claim_unqueued(&test->a, test, test->client_a), 0);
    assert_false(read_row(&test->b, test));
    token = claim(&test->a, test, test->client_a, LONG_US);
    assert_int_equal(claim_unqueued(&test->b, test, test->client_b), 0);
    assert_int_equal(claim_unqueued(&test->a, test, test->client_a), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    next = claim_unqueued(&test->b, test, test->client_b);
    assert_less(token, next);
    assert_less(LONG_US / 2, remaining_us(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_b);
    assert_int_equal(cell_integer(&test->a, 0, INFO_TOKEN), next);
    assert_int_equal(claim(&test->a, test, test->client_a, LONG_US), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

static void test_a_short_claim_takes_a_lease_that_is_over(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, SHORT_US);

    await_expiry(&test->a, test);
    assert_less(token, claim_unqueued(&test->b, test, test->client_b));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

static void test_a_short_claim_raises_a_token_ahead_of_the_clock(void **state)
{
    struct test *test = *state;
    int64_t ahead = put_token_ahead(test);

    assert_int_equal(claim_unqueued(&test->b, test, test->client_b), ahead + 1);
}

static void test_short_statements_notice_tickets(void **state)
{
    struct test *test = *state;
    char before[1024], after[1024];

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    let_wait(test, test->client_b);
    let_wait(test, client_c);
    copy_row(test, before, sizeof before);
    assert_int_equal(release_unqueued(&test->a, test, test->client_a), 0);
    copy_row(test, after, sizeof after);
    assert_string_equal(after, before);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    await_expiry(&test->b, test);
    copy_row(test, before, sizeof before);
    assert_int_equal(claim_unqueued(&test->a, test, test->client_a), 0);
    copy_row(test, after, sizeof after);
    assert_string_equal(after, before);
}

static void test_a_short_release_leaves_the_row_free(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t before = now_us(&test->b);

    assert_int_equal(release_unqueued(&test->b, test, test->client_b), 0);
    assert_less(0, remaining_us(&test->b, test));
    assert_int_equal(release_unqueued(&test->b, test, test->client_a), 1);
    assert_int_equal(release_unqueued(&test->b, test, test->client_a), 0);
    assert_less(remaining_us(&test->b, test), 0);
    assert_null(cell_text(&test->b, 0, INFO_CLIENT));
    assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), token);
    assert_less(before - 2, cell_integer(&test->b, 0, INFO_EXPIRES));
    assert_less(token, claim_unqueued(&test->b, test, test->client_b));
    assert_int_equal(release_unqueued(&test->b, test, test->client_b), 1);
}

/* Send the statement about the test's key and two others, of which there are no
 * rows, where the database has it.  Return the rows that were changed; -1: it
 * has none. */
static int64_t run_for_many(struct session *session, const struct test *test,
                            sqlock_statement_kind kind, const char *client)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);
    sqlock_description description = {.connection_id = 0};
    char json[1024];
    char other[2][SQLOCK_KEY_SIZE];

    subject.driver->describe(session->connection, &description);
    if (subject.statements[test->layout][kind].text == NULL ||
        description.returns_no_rows)
        return -1;
    next_key(other[0]);
    next_key(other[1]);
    (void)snprintf(json, sizeof json,
                   "[{\"k\":\"%s\",\"c\":\"%s\",\"t\":%lld,\"n\":\"n\","
                   "\"h\":\"h\"},{\"k\":\"%s\",\"c\":\"%s\",\"t\":1},"
                   "{\"k\":\"%s\",\"c\":\"%s\",\"t\":1}]",
                   test->key, client, (long long)LONG_US, other[0], client,
                   other[1], client);
    lk_argument_text(&arguments, SQLOCK_P_ITEMS, json);
    statement_run(session, test, kind, &arguments);
    if (session->result.rows == 1)
        assert_string_equal(cell_text(session, 0, 0), test->key);
    return (int64_t)session->result.rows;
}

static void test_short_statements_for_many_change_what_they_can(void **state)
{
    const sqlock_statement_kind take = SQLOCK_SQL_CLAIM_UNQUEUED_MANY;
    const sqlock_statement_kind give = SQLOCK_SQL_RELEASE_UNQUEUED_MANY;
    struct test *test = *state;
    int64_t token;

    if (run_for_many(&test->a, test, take, test->client_a) < 0)
        return;
    assert_false(read_row(&test->b, test));
    token = claim(&test->a, test, test->client_a, LONG_US);
    assert_int_equal(run_for_many(&test->b, test, take, test->client_b), 0);
    assert_int_equal(run_for_many(&test->b, test, give, test->client_b), 0);
    assert_int_equal(run_for_many(&test->b, test, give, test->client_a), 1);
    /* A locked row is passed over. */
    assert_lock_ok(session_begin(&test->a), &test->a.err);
    session_run(&test->a, "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                subject.tables[test->layout].quoted, test->key);
    assert_int_equal(run_for_many(&test->b, test, take, test->client_b), 0);
    assert_lock_ok(session_commit(&test->a), &test->a.err);
    assert_int_equal(run_for_many(&test->b, test, take, test->client_b), 1);
    assert_less(token, cell_integer(&test->b, 0, 1));
    token = cell_integer(&test->b, 0, 1);
    assert_less(LONG_US / 2, remaining_us(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_b);
    assert_int_equal(cell_integer(&test->a, 0, INFO_TOKEN), token);
    let_wait(test, test->client_a);
    assert_int_equal(run_for_many(&test->b, test, give, test->client_b), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
    assert_int_equal(run_for_many(&test->b, test, take, test->client_b), 0);
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_a);
}

void add_unqueued_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    if (subject.layout != SQLOCK_LAYOUT_SQLOCK)
        return;
    ADD(a_short_claim_takes_a_free_row_only);
    ADD(a_short_claim_takes_a_lease_that_is_over);
    ADD(a_short_claim_raises_a_token_ahead_of_the_clock);
    ADD(short_statements_notice_tickets);
    ADD(a_short_release_leaves_the_row_free);
    ADD(short_statements_for_many_change_what_they_can);
}
