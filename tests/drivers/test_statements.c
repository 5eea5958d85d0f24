/*
 * test_statements.c - what the tables *.statements cannot say of a dialect: odd
 * keys, the server, and tables that are described
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* CHAR(36) pads a key with blanks; info rows have the key without them. */
static void test_short_key_comes_back_as_it_was(void **state)
{
    struct test *test = *state;

    (void)snprintf(test->key, sizeof test->key, "k%u", subject.serial);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_KEY), test->key);
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
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_CLIENT), "peer");
    assert_less(0, cell_integer(&test->b, 0, LK_INFO_REMAINING));
    assert_less(token - SECOND_US, cell_integer(&test->b, 0, LK_INFO_ACQUIRED));
    assert_int_equal(release(&test->a, test, test->client_a), 0);
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
}

/* -------------------------------------------------------------- looking -- */

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
    static const size_t columns[SQLOCK_LAYOUTS] = {11, 5, 4};
    struct test *test = *state;
    size_t keys = 0;

    session_ok(&test->a, describe(test, subject.tables[test->layout].name));
    assert_int_equal(test->a.result.rows, columns[test->layout]);
    assert_in_range(test->a.result.columns, 9, 10);
    for (size_t i = 0; i < test->a.result.rows; i++) {
        const char *name = cell_text(&test->a, i, 0);
        const sqlock_column *column = column_named(name);
        bool nullable =
            strcmp(name, "CLIENT_ID") == 0 || strcmp(name, "LOCK_NAME") == 0 ||
            strcmp(name, "HOLDER") == 0 || strcmp(name, "QUEUE") == 0 ||
            strcmp(name, "SHARERS") == 0 || strcmp(name, "LEADER") == 0;

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
        assert_int_equal(cell_integer(&test->a, i, 8), 2);
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
    ADD(short_key_comes_back_as_it_was);
    ADD(keys_differ_by_case);
    ADD(renewals_in_quick_succession_succeed);
    ADD(server_tells_role_clock_and_version);
    ADD(own_schema_is_described_as_fit);
    ADD(missing_table_has_no_description);
    ADD(view_is_described_as_unfit);
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK)
        ADD(peer_takes_what_was_released);
#undef ADD
}
