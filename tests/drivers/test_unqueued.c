/*
 * test_unqueued.c - the shorter statements, for a row without tickets, about
 * one key or several, change a row that has none, and no other
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <string.h>

#define SHORT_US INT64_C(50000)

static const char name[] = "the name";
static const char holder[] = "the holder";
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

static bool is_about_many; /* whether they are about several keys */

/* Return whether the database has the statements about several. */
static bool has_many(struct test *test)
{
    sqlock_description description = {.connection_id = 0};

    subject.driver->describe(test->a.connection, &description);
    return subject.statements[test->layout][SQLOCK_SQL_CLAIM_UNQUEUED_MANY]
                   .text != NULL &&
           !description.returns_no_rows;
}

/* Write the test's key and two others, of which there are no rows, as JSON. */
static void write_keys(char *out, size_t size, const struct test *test,
                       const char *client)
{
    char other[2][SQLOCK_KEY_SIZE];

    next_key(other[0]);
    next_key(other[1]);
    (void)snprintf(out, size,
                   "[{\"k\":\"%s\",\"c\":\"%s\",\"t\":%lld,\"n\":\"%s\","
                   "\"h\":\"%s\"},{\"k\":\"%s\",\"c\":\"%s\",\"t\":1},"
                   "{\"k\":\"%s\",\"c\":\"%s\",\"t\":1}]",
                   test->key, client, (long long)LONG_US, name, holder,
                   other[0], client, other[1], client);
}

/* Send the statement about the test's key, in that region.  Return how many
 * rows it has changed. */
static int64_t send_in(struct session *session, const struct test *test,
                       sqlock_statement_kind one, sqlock_statement_kind many,
                       const char *client, const char *region)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);
    char json[1024];

    lk_argument_text(&arguments, SQLOCK_P_REGION, region);
    lk_argument_text(&arguments, SQLOCK_P_NAME, name);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, holder);
    write_keys(json, sizeof json, test, client);
    if (is_about_many)
        lk_argument_text(&arguments, SQLOCK_P_ITEMS, json);
    statement_run(session, test, is_about_many ? many : one, &arguments);
    if (!is_about_many)
        return one == SQLOCK_SQL_CLAIM_UNQUEUED ? (int64_t)session->result.rows
                                                : session->result.affected;
    if (session->result.rows == 1)
        assert_string_equal(cell_text(session, 0, 0), test->key);
    return (int64_t)session->result.rows;
}

/* Return the token; 0: nothing was changed. */
static int64_t claim_in(struct session *session, const struct test *test,
                        const char *client, const char *region)
{
    int64_t changed = send_in(session, test, SQLOCK_SQL_CLAIM_UNQUEUED,
                              SQLOCK_SQL_CLAIM_UNQUEUED_MANY, client, region);

    if (changed == 0)
        return 0;
    assert_int_equal(changed, 1);
    return cell_integer(session, 0, is_about_many ? 1 : 0);
}

static int64_t claim_unqueued(struct session *session, const struct test *test,
                              const char *client)
{
    return claim_in(session, test, client, REGION);
}

static int64_t release_in(struct session *session, const struct test *test,
                          const char *client, const char *region)
{
    return send_in(session, test, SQLOCK_SQL_RELEASE_UNQUEUED,
                   SQLOCK_SQL_RELEASE_UNQUEUED_MANY, client, region);
}

static int64_t release_unqueued(struct session *session,
                                const struct test *test, const char *client)
{
    return release_in(session, test, client, REGION);
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

/* Check the statements about one key, and those about several, each with a row
 * of its own. */
static void in_each_way(struct test *test, void (*check)(struct test *))
{
    is_about_many = false;
    check(test);
    is_about_many = has_many(test);
    if (!is_about_many)
        return;
    next_key(test->key);
    check(test);
}

static void take_a_free_row_only(struct test *test)
{
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
    assert_string_equal(cell_text(&test->a, 0, INFO_NAME), name);
    assert_string_equal(cell_text(&test->a, 0, INFO_HOLDER), holder);
    assert_int_equal(claim(&test->a, test, test->client_a, LONG_US), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

static void test_a_short_claim_takes_a_free_row_only(void **state)
{
    in_each_way(*state, take_a_free_row_only);
}

static void take_a_lease_that_is_over(struct test *test)
{
    int64_t token = claim(&test->a, test, test->client_a, SHORT_US);

    await_expiry(&test->a, test);
    assert_less(token, claim_unqueued(&test->b, test, test->client_b));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

static void test_a_short_claim_takes_a_lease_that_is_over(void **state)
{
    in_each_way(*state, take_a_lease_that_is_over);
}

static void raise_a_token(struct test *test)
{
    int64_t ahead = put_token_ahead(test);

    assert_int_equal(claim_unqueued(&test->b, test, test->client_b), ahead + 1);
}

static void test_a_short_claim_raises_a_token_ahead_of_the_clock(void **state)
{
    in_each_way(*state, raise_a_token);
}

static void notice_tickets(struct test *test)
{
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

static void test_short_statements_notice_tickets(void **state)
{
    in_each_way(*state, notice_tickets);
}

static void leave_the_row_free(struct test *test)
{
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t before = now_us(&test->b);
    int64_t acquired;

    assert_int_equal(release_unqueued(&test->b, test, test->client_b), 0);
    assert_less(0, remaining_us(&test->b, test));
    acquired = cell_integer(&test->b, 0, INFO_ACQUIRED);
    assert_int_equal(release_unqueued(&test->b, test, test->client_a), 1);
    assert_int_equal(release_unqueued(&test->b, test, test->client_a), 0);
    assert_less(remaining_us(&test->b, test), 0);
    assert_null(cell_text(&test->b, 0, INFO_CLIENT));
    assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), token);
    assert_int_equal(cell_integer(&test->b, 0, INFO_ACQUIRED), acquired);
    assert_less(before - 2, cell_integer(&test->b, 0, INFO_EXPIRES));
    assert_less(token, claim_unqueued(&test->b, test, test->client_b));
    assert_int_equal(release_unqueued(&test->b, test, test->client_b), 1);
}

static void test_a_short_release_leaves_the_row_free(void **state)
{
    in_each_way(*state, leave_the_row_free);
}

static void leave_other_regions_alone(struct test *test)
{
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release_in(&test->b, test, test->client_a, "elsewhere"),
                     0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_int_equal(claim_in(&test->b, test, test->client_b, "elsewhere"), 0);
    assert_less(0, claim_unqueued(&test->b, test, test->client_b));
}

static void test_short_statements_leave_other_regions_alone(void **state)
{
    in_each_way(*state, leave_other_regions_alone);
}

/* PostgreSQL's commit of a release waits for no disk, that of a claim does. */
static void need_no_disk(struct test *test)
{
    static const char setting[] =
        "SELECT current_setting('synchronous_commit')";

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    session_run(&test->b, "SET LOCAL synchronous_commit = on");
    assert_int_equal(release_unqueued(&test->b, test, test->client_a), 1);
    session_run(&test->b, "%s", setting);
    assert_string_equal(cell_text(&test->b, 0, 0), "off");
    session_run(&test->b, "SET LOCAL synchronous_commit = on");
    assert_less(0, claim_unqueued(&test->b, test, test->client_b));
    session_run(&test->b, "%s", setting);
    assert_string_equal(cell_text(&test->b, 0, 0), "on");
    assert_lock_ok(session_commit(&test->b), &test->b.err);
}

static void test_short_releases_need_no_disk(void **state)
{
    in_each_way(*state, need_no_disk);
}

static void test_short_statements_for_many_pass_over_a_locked_row(void **state)
{
    struct test *test = *state;

    is_about_many = has_many(test);
    if (!is_about_many)
        return;
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    session_run(&test->b, "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                subject.tables[test->layout].quoted, test->key);
    assert_int_equal(release_unqueued(&test->a, test, test->client_a), 0);
    assert_lock_ok(session_commit(&test->b), &test->b.err);
    assert_int_equal(release_unqueued(&test->a, test, test->client_a), 1);
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    session_run(&test->b, "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                subject.tables[test->layout].quoted, test->key);
    assert_int_equal(claim_unqueued(&test->a, test, test->client_a), 0);
    assert_lock_ok(session_commit(&test->b), &test->b.err);
    assert_less(0, claim_unqueued(&test->a, test, test->client_a));
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
    ADD(short_statements_leave_other_regions_alone);
    if (subject.database->bit == ON_POSTGRES)
        ADD(short_releases_need_no_disk);
    ADD(short_statements_for_many_pass_over_a_locked_row);
}
