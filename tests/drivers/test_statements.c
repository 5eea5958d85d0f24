/*
 * test_statements.c - the result of each statement of a dialect, as
 * db/dialect.h describes it, on every layout: claim, renew, release, break
 * and read a lock
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_US INT64_C(50000)

static bool is_ours(const struct test *test)
{
    return test->layout == SQLOCK_LAYOUT_SQLOCK;
}

/* ------------------------------------------------------------- claiming -- */

static void test_claim_of_a_new_lock_is_granted(void **state)
{
    struct test *test = *state;
    int64_t before = now_us(&test->a);
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t after = now_us(&test->a);

    assert_less(before - 1, token);
    assert_less(token, after + 1);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_KEY), test->key);
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT), test->client_a);
    assert_less(before + LONG_US - 1, cell_integer(&test->b, 0, INFO_EXPIRES));
    assert_less(cell_integer(&test->b, 0, INFO_EXPIRES), after + LONG_US + 1);
    assert_less(0, cell_integer(&test->b, 0, INFO_REMAINING));
    assert_less(cell_integer(&test->b, 0, INFO_REMAINING), LONG_US + 1);
}

static void test_claim_of_a_held_lock_is_busy(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t end;

    assert_true(read_row(&test->a, test));
    end = cell_integer(&test->a, 0, INFO_EXPIRES);
    assert_int_equal(claim(&test->b, test, test->client_b, 2 * LONG_US), 0);
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_a);
    assert_int_equal(cell_integer(&test->a, 0, INFO_EXPIRES), end);
    if (is_ours(test))
        assert_int_equal(cell_integer(&test->a, 0, INFO_TOKEN), token);
}

static void test_claim_by_its_own_client_keeps_the_token(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t acquired;

    assert_true(read_row(&test->a, test));
    acquired = cell_integer(&test->a, 0, INFO_ACQUIRED);
    if (test->layout == SQLOCK_LAYOUT_SPRING6) {
        /* This layout stores neither token nor acquisition time. */
        assert_less(0, claim(&test->b, test, test->client_a, 2 * LONG_US));
    } else {
        assert_int_equal(claim(&test->b, test, test->client_a, 2 * LONG_US),
                         token);
        assert_true(read_row(&test->a, test));
        assert_int_equal(cell_integer(&test->a, 0, INFO_ACQUIRED), acquired);
    }
    assert_less(LONG_US, remaining_us(&test->a, test));
}

static void test_claim_of_an_expired_lock_raises_the_token(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, SHORT_US);

    await_expiry(&test->a, test);
    assert_less(token, claim(&test->b, test, test->client_b, LONG_US));
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_b);
    assert_int_equal(claim(&test->a, test, test->client_a, LONG_US), 0);
}

static void test_own_expired_claim_is_a_new_acquisition(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, SHORT_US);

    await_expiry(&test->a, test);
    assert_less(token, claim(&test->a, test, test->client_a, LONG_US));
}

static void test_token_rises_over_releases(void **state)
{
    struct test *test = *state;
    int64_t last = 0;

    for (size_t i = 0; i < 20; i++) {
        const char *client = i % 2 == 0 ? test->client_a : test->client_b;
        int64_t token = claim(&test->a, test, client, LONG_US);

        assert_less(last, token);
        last = token;
        assert_int_equal(release(&test->b, test, client), 1);
    }
}

/* The clock was set back, or a server whose clock is behind has taken over. */
static void test_token_ahead_of_the_clock_rises_by_one(void **state)
{
    struct test *test = *state;
    int64_t ahead = put_token_ahead(test);

    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), ahead + 1);
}

static void test_claim_notes_name_and_holder(void **state)
{
    static const char name[] = "it's \"a\" \\ n\xc3\xa4me \xf0\x9f\x94\x92";
    struct test *test = *state;
    struct lk_arguments arguments =
        arguments_for(test, test->client_a, LONG_US);

    lk_argument_text(&arguments, SQLOCK_P_NAME, name);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, NULL);
    statement_run(&test->a, test, SQLOCK_SQL_CLAIM, &arguments);
    assert_int_equal(test->a.result.rows, 1);
    assert_true(read_row(&test->b, test));
    assert_null(cell_text(&test->b, 0, INFO_HOLDER));
    if (is_ours(test))
        assert_string_equal(cell_text(&test->b, 0, INFO_NAME), name);
    else
        assert_null(cell_text(&test->b, 0, INFO_NAME));
}

static void test_regions_do_not_know_each_other(void **state)
{
    struct test *test = *state;
    struct lk_arguments arguments =
        arguments_for(test, test->client_b, LONG_US);

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    lk_argument_text(&arguments, SQLOCK_P_REGION, "other");
    statement_run(&test->b, test, SQLOCK_SQL_CLAIM, &arguments);
    assert_int_equal(test->b.result.rows, 1);
    statement_run(&test->b, test, SQLOCK_SQL_RELEASE, &arguments);
    assert_int_equal(test->b.result.affected, 1);
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_a);
}

/* CHAR(36) pads a key with blanks; info rows have the key without them. */
static void test_short_key_comes_back_as_it_was(void **state)
{
    struct test *test = *state;

    (void)snprintf(test->key, sizeof test->key, "k%u", subject.serial);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_KEY), test->key);
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

/* Keys that differ in case are different locks. */
static void test_keys_differ_by_case(void **state)
{
    struct test *test = *state;

    (void)snprintf(test->key, sizeof test->key, "Case%u", subject.serial);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    (void)snprintf(test->key, sizeof test->key, "cASE%u", subject.serial);
    assert_less(0, claim(&test->b, test, test->client_b, LONG_US));
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

/* ------------------------------------------------ renewing and releasing -- */

static void test_renewal_begins_the_lease_anew(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t before = now_us(&test->a);

    assert_int_equal(renew(&test->a, test, test->client_a, 2 * LONG_US), 1);
    assert_true(read_row(&test->b, test));
    assert_less(before + 2 * LONG_US - 1,
                cell_integer(&test->b, 0, INFO_EXPIRES));
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT), test->client_a);
    if (is_ours(test))
        assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), token);
}

/* Two renewals within a tick of a coarse clock write equal values, which some
 * servers count as no affected row.  That is no error, and the lease stays. */
static void test_renewals_in_quick_succession_succeed(void **state)
{
    struct test *test = *state;

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    for (size_t i = 0; i < 50; i++) {
        int64_t affected = renew(&test->a, test, test->client_a, LONG_US);

        assert_true(affected == 0 || affected == 1);
    }
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
}

static void test_expired_lease_is_not_revived(void **state)
{
    struct test *test = *state;

    assert_less(0, claim(&test->a, test, test->client_a, SHORT_US));
    await_expiry(&test->a, test);
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    assert_less(remaining_us(&test->a, test), 0);
}

static void test_only_the_holder_renews(void **state)
{
    struct test *test = *state;
    int64_t end;

    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_true(read_row(&test->a, test));
    end = cell_integer(&test->a, 0, INFO_EXPIRES);
    assert_int_equal(renew(&test->b, test, test->client_b, 2 * LONG_US), 0);
    assert_true(read_row(&test->a, test));
    assert_int_equal(cell_integer(&test->a, 0, INFO_EXPIRES), end);
}

static void test_release_frees_once(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);

    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    if (is_ours(test)) {
        assert_true(read_row(&test->b, test));
        assert_null(cell_text(&test->b, 0, INFO_CLIENT));
        /* The row still names the last holder. */
        assert_string_equal(cell_text(&test->b, 0, INFO_HOLDER), "a holder");
        assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), token);
        assert_less(cell_integer(&test->b, 0, INFO_REMAINING), 0);
        assert_less(cell_integer(&test->b, 0, INFO_EXPIRES), now_us(&test->a));
        assert_less(token - SECOND_US, cell_integer(&test->b, 0, INFO_EXPIRES));
        assert_less(token - SECOND_US,
                    cell_integer(&test->b, 0, INFO_ACQUIRED));
    } else {
        assert_false(read_row(&test->b, test));
    }
    assert_less(token, claim(&test->b, test, test->client_b, LONG_US));
}

/* A Spring peer takes a released row, and writes only the columns that it knows
 * of.  The row is then the peer's, although the others are as the release left
 * them. */
static void test_peer_takes_what_was_released(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);

    assert_int_equal(release(&test->a, test, test->client_a), 1);
    session_run(&test->a,
                "UPDATE %s SET CLIENT_ID = 'peer', EXPIRED_AFTER = %s "
                "WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted,
                subject.database->bit == ON_SQLITE ? "32472144000000000"
                                                   : "'2999-01-01 00:00:00'",
                test->key);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT), "peer");
    assert_less(0, cell_integer(&test->b, 0, INFO_REMAINING));
    assert_less(token - SECOND_US, cell_integer(&test->b, 0, INFO_ACQUIRED));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
}

static void test_only_the_holder_releases(void **state)
{
    struct test *test = *state;

    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->b, test, test->client_b), 0);
    assert_less(0, remaining_us(&test->a, test));
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
}

static void test_expired_lease_can_be_released(void **state)
{
    struct test *test = *state;

    assert_less(0, claim(&test->a, test, test->client_a, SHORT_US));
    await_expiry(&test->a, test);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_less(0, claim(&test->b, test, test->client_b, LONG_US));
}

static void test_release_never_hits_the_next_holder(void **state)
{
    struct test *test = *state;

    assert_less(0, claim(&test->a, test, test->client_a, SHORT_US));
    await_expiry(&test->a, test);
    assert_less(0, claim(&test->b, test, test->client_b, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    assert_true(read_row(&test->a, test));
    assert_string_equal(cell_text(&test->a, 0, INFO_CLIENT), test->client_b);
}

/* ------------------------------------------------------------- breaking -- */

static int64_t break_lock(struct session *session, const struct test *test,
                          sqlock_statement_kind kind, const char *client)
{
    static const char breaker[] = "ffffffff-ffff-4fff-8fff-ffffffffffff";
    struct lk_arguments arguments = arguments_for(test, breaker, 0);

    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, client);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, "broken by a test");
    statement_run(session, test, kind, &arguments);
    return session->result.affected;
}

static void test_broken_lease_is_lost_and_keeps_its_end(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);
    int64_t end;

    assert_true(read_row(&test->a, test));
    end = cell_integer(&test->a, 0, INFO_EXPIRES);
    assert_int_equal(
        break_lock(&test->b, test, SQLOCK_SQL_BREAK, test->client_a), 1);
    assert_true(read_row(&test->b, test));
    assert_int_equal(cell_integer(&test->b, 0, INFO_EXPIRES), end);
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT),
                        "ffffffff-ffff-4fff-8fff-ffffffffffff");
    if (is_ours(test)) {
        assert_less(token, cell_integer(&test->b, 0, INFO_TOKEN));
        assert_string_equal(cell_text(&test->b, 0, INFO_HOLDER),
                            "broken by a test");
    }
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
}

/* Assert that the row is over for a peer, too, whose clock is far behind. */
static void assert_is_over_for_slow_clocks(struct test *test)
{
    session_run(&test->b,
                "SELECT COUNT(*) FROM %s WHERE LOCK_KEY = '%s' "
                "AND EXPIRED_AFTER < '2001-01-01'",
                subject.tables[test->layout].quoted, test->key);
    assert_int_equal(cell_integer(&test->b, 0, 0), 1);
}

static void test_broken_now_is_free_at_once(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);

    assert_int_equal(
        break_lock(&test->b, test, SQLOCK_SQL_BREAK_NOW, test->client_a), 1);
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 0);
    if (is_ours(test)) {
        assert_true(read_row(&test->b, test));
        assert_less(cell_integer(&test->b, 0, INFO_REMAINING), 0);
        assert_less(token, cell_integer(&test->b, 0, INFO_TOKEN));
        token = cell_integer(&test->b, 0, INFO_TOKEN);
        if (subject.database->bit != ON_SQLITE) /* one machine, one clock */
            assert_is_over_for_slow_clocks(test);
    }
    assert_less(token, claim(&test->b, test, test->client_b, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
}

static void test_another_holder_is_not_broken(void **state)
{
    struct test *test = *state;
    static const sqlock_statement_kind kinds[] = {SQLOCK_SQL_BREAK,
                                                  SQLOCK_SQL_BREAK_NOW};

    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(break_lock(&test->b, test, kinds[i], test->client_b),
                         0);
    assert_int_equal(renew(&test->a, test, test->client_a, LONG_US), 1);
}

static void test_released_lock_cannot_be_broken(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, LONG_US);

    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_int_equal(
        break_lock(&test->b, test, SQLOCK_SQL_BREAK, test->client_a), 0);
    assert_less(token, claim(&test->b, test, test->client_b, LONG_US));
}

/* -------------------------------------------------------------- looking -- */

static void test_unknown_lock_has_no_row(void **state)
{
    assert_false(read_row(&((struct test *)*state)->a, *state));
}

static void test_server_tells_role_clock_and_version(void **state)
{
    struct test *test = *state;
    struct lk_arguments arguments = arguments_for(test, "", 0);
    struct sql sql;
    int64_t before, after;

    assert_int_equal(sql_open(&sql, subject.database, subject.url), 0);
    before = sql_now_us(&sql);
    statement_run(&test->a, test, SQLOCK_SQL_SERVER, &arguments);
    after = sql_now_us(&sql);
    sql_close(&sql);
    assert_int_equal(test->a.result.rows, 1);
    assert_int_equal(test->a.result.columns, 3);
    assert_int_equal(cell_integer(&test->a, 0, 0), 0);
    assert_less(before - 1, cell_integer(&test->a, 0, 1));
    assert_less(cell_integer(&test->a, 0, 1), after + 1);
    assert_true(check_one_line(cell_text(&test->a, 0, 2)));
}

static bool fits(const char *patterns, const char *type)
{
    char copy[256];
    char *rest = NULL;

    (void)snprintf(copy, sizeof copy, "%s", patterns);
    for (char *one = strtok_r(copy, "|", &rest); one != NULL;
         one = strtok_r(NULL, "|", &rest))
        if (fnmatch(one, type, 0) == 0)
            return true;
    return false;
}

static const sqlock_column *column_named(const char *name)
{
    const sqlock_column *column = subject.driver->dialect->columns;

    while (column->name != NULL && strcmp(column->name, name) != 0)
        column++;
    return column->name == NULL ? NULL : column;
}

static int describe(struct test *test, const char *table)
{
    struct lk_arguments arguments = arguments_for(test, "", 0);

    lk_argument_text(&arguments, SQLOCK_P_TABLE, table);
    lk_argument_text(&arguments, SQLOCK_P_SCHEMA, NULL);
    return statement_try(&test->a, test, SQLOCK_SQL_DESCRIBE, &arguments);
}

static void test_own_schema_is_described_as_fit(void **state)
{
    static const size_t columns[SQLOCK_LAYOUTS] = {10, 5, 4};
    struct test *test = *state;
    size_t keys = 0;

    session_ok(&test->a, describe(test, subject.tables[test->layout].name));
    assert_int_equal(test->a.result.rows, columns[test->layout]);
    assert_int_equal(test->a.result.columns, 9);
    for (size_t i = 0; i < test->a.result.rows; i++) {
        const char *name = cell_text(&test->a, i, 0);
        const sqlock_column *column = column_named(name);
        bool nullable =
            strcmp(name, "CLIENT_ID") == 0 || strcmp(name, "LOCK_NAME") == 0 ||
            strcmp(name, "HOLDER") == 0 || strcmp(name, "QUEUE") == 0 ||
            strcmp(name, "SHARERS") == 0;

        assert_non_null(column);
        if (!fits(column->types, cell_text(&test->a, i, 1)))
            fail_msg("%s: type %s does not fit %s", name,
                     cell_text(&test->a, i, 1), column->types);
        assert_int_equal(cell_integer(&test->a, i, 2), nullable);
        if (cell_integer(&test->a, i, 3) > 0)
            keys++;
        assert_int_equal(cell_integer(&test->a, i, 3),
                         strcmp(name, "LOCK_KEY") == 0 ? 1
                         : strcmp(name, "REGION") == 0 ? 2
                                                       : 0);
        assert_null(cell_text(&test->a, i, 4));
        assert_int_equal(cell_integer(&test->a, i, 7), 0);
        assert_int_equal(cell_integer(&test->a, i, 8), 1);
    }
    assert_int_equal(keys, 2);
}

static void test_missing_table_has_no_description(void **state)
{
    assert_lock_ok(describe(*state, "no_such_table"),
                   &((struct test *)*state)->a.err);
    assert_int_equal(((struct test *)*state)->a.result.rows, 0);
}

static void test_view_is_described_as_unfit(void **state)
{
    struct test *test = *state;
    char view[64];

    /* Databases fold an unquoted name to lower case, or keep it. */
    (void)snprintf(view, sizeof view, "ds_view_%u", subject.serial);
    session_run(&test->a, "CREATE VIEW %s AS SELECT * FROM %s", view,
                subject.tables[test->layout].quoted);
    assert_lock_ok(describe(test, view), &test->a.err);
    assert_less(0, (int64_t)test->a.result.rows);
    for (size_t i = 0; i < test->a.result.rows; i++) {
        const char *reason = cell_text(&test->a, i, 4);

        assert_non_null(reason);
        assert_contains(reason, "view");
    }
    session_run(&test->a, "DROP VIEW %s", view);
}

void add_statement_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(claim_of_a_new_lock_is_granted);
    ADD(claim_of_a_held_lock_is_busy);
    ADD(claim_by_its_own_client_keeps_the_token);
    ADD(claim_of_an_expired_lock_raises_the_token);
    ADD(own_expired_claim_is_a_new_acquisition);
    ADD(token_rises_over_releases);
    ADD(claim_notes_name_and_holder);
    ADD(regions_do_not_know_each_other);
    ADD(short_key_comes_back_as_it_was);
    ADD(keys_differ_by_case);
    ADD(renewal_begins_the_lease_anew);
    ADD(renewals_in_quick_succession_succeed);
    ADD(expired_lease_is_not_revived);
    ADD(only_the_holder_renews);
    ADD(release_frees_once);
    ADD(only_the_holder_releases);
    ADD(expired_lease_can_be_released);
    ADD(release_never_hits_the_next_holder);
    ADD(broken_lease_is_lost_and_keeps_its_end);
    ADD(broken_now_is_free_at_once);
    ADD(another_holder_is_not_broken);
    ADD(released_lock_cannot_be_broken);
    ADD(unknown_lock_has_no_row);
    ADD(server_tells_role_clock_and_version);
    ADD(own_schema_is_described_as_fit);
    ADD(missing_table_has_no_description);
    ADD(view_is_described_as_unfit);
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK) {
        ADD(peer_takes_what_was_released);
        ADD(token_ahead_of_the_clock_rises_by_one);
    }
#undef ADD
}
