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
TEST_ON(test_short_key_comes_back_as_it_was, ON_ALL, IN_ALL)
{
    (void)snprintf(f->key, sizeof f->key, "k%u", subject.serial);
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_true(read_row(&f->b, f));
    assert_string_equal(cell_text(&f->b, 0, LK_INFO_KEY), f->key);
    assert_int_equal(claim(&f->b, f, f->client_b, LONG_US), 0);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
}

/* Keys that differ in case are different locks. */
TEST_ON(test_keys_differ_by_case, ON_ALL, IN_ALL)
{
    (void)snprintf(f->key, sizeof f->key, "Case%u", subject.serial);
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    (void)snprintf(f->key, sizeof f->key, "cASE%u", subject.serial);
    assert_less(0, claim(&f->b, f, f->client_b, LONG_US));
    assert_int_equal(release(&f->b, f, f->client_b), 1);
}

/* Two renewals within a tick of a coarse clock write equal values, which some
 * servers count as no affected row.  That is no error, and the lease stays. */
TEST_ON(test_renewals_in_quick_succession_succeed, ON_ALL, IN_ALL)
{
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    for (size_t i = 0; i < 50; i++) {
        int64_t affected = renew(&f->a, f, f->client_a, LONG_US);

        assert_true(affected == 0 || affected == 1);
    }
    assert_int_equal(claim(&f->b, f, f->client_b, LONG_US), 0);
}

/* A Spring peer takes a released row, and writes only the columns that it knows
 * of.  The row is then the peer's, although the others are as the release left
 * them. */
TEST_ON(test_peer_takes_what_was_released, ON_ALL, IN_SQLOCK)
{
    int64_t token = claim(&f->a, f, f->client_a, LONG_US);

    assert_int_equal(release(&f->a, f, f->client_a), 1);
    session_run(&f->a,
                "UPDATE %s SET CLIENT_ID = 'peer', EXPIRED_AFTER = %s "
                "WHERE LOCK_KEY = '%s'",
                subject.tables[f->layout].quoted,
                subject.database->bit == ON_SQLITE ? "32472144000000000"
                                                   : "'2999-01-01 00:00:00'",
                f->key);
    assert_true(read_row(&f->b, f));
    assert_string_equal(cell_text(&f->b, 0, LK_INFO_CLIENT), "peer");
    assert_less(0, cell_integer(&f->b, 0, LK_INFO_REMAINING));
    assert_less(token - SECOND_US, cell_integer(&f->b, 0, LK_INFO_ACQUIRED));
    assert_int_equal(release(&f->a, f, f->client_a), 0);
    assert_int_equal(claim(&f->b, f, f->client_b, LONG_US), 0);
}

/* -------------------------------------------------------------- looking -- */

TEST_ON(test_server_tells_role_clock_and_version, ON_ALL, IN_ALL)
{
    struct lk_arguments arguments = arguments_for(f, "", 0);
    struct sql sql;
    int64_t before, after;

    assert_int_equal(sql_open(&sql, subject.database, subject.url), 0);
    before = sql_now_us(&sql);
    statement_run(&f->a, f, SQLOCK_SQL_SERVER, &arguments);
    after = sql_now_us(&sql);
    sql_close(&sql);
    assert_int_equal(f->a.result.rows, 1);
    assert_int_equal(f->a.result.columns, 3);
    assert_int_equal(cell_integer(&f->a, 0, 0), 0);
    assert_less(before - 1, cell_integer(&f->a, 0, 1));
    assert_less(cell_integer(&f->a, 0, 1), after + 1);
    assert_true(check_one_line(cell_text(&f->a, 0, 2)));
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

static int describe(struct fixture *f, const char *table)
{
    struct lk_arguments arguments = arguments_for(f, "", 0);

    lk_argument_text(&arguments, SQLOCK_P_TABLE, table);
    lk_argument_text(&arguments, SQLOCK_P_SCHEMA, NULL);
    return statement_try(&f->a, f, SQLOCK_SQL_DESCRIBE, &arguments);
}

TEST_ON(test_own_schema_is_described_as_fit, ON_ALL, IN_ALL)
{
    static const size_t columns[SQLOCK_LAYOUTS] = {11, 5, 4};
    size_t keys = 0;

    session_ok(&f->a, describe(f, subject.tables[f->layout].name));
    assert_int_equal(f->a.result.rows, columns[f->layout]);
    assert_in_range(f->a.result.columns, 9, 10);
    for (size_t i = 0; i < f->a.result.rows; i++) {
        const char *name = cell_text(&f->a, i, 0);
        const sqlock_column *column = column_named(name);
        bool nullable =
            strcmp(name, "CLIENT_ID") == 0 || strcmp(name, "LOCK_NAME") == 0 ||
            strcmp(name, "HOLDER") == 0 || strcmp(name, "QUEUE") == 0 ||
            strcmp(name, "SHARERS") == 0 || strcmp(name, "LEADER") == 0;

        assert_non_null(column);
        if (!fits(column->types, cell_text(&f->a, i, 1)))
            fail_msg("%s: type %s does not fit %s", name,
                     cell_text(&f->a, i, 1), column->types);
        assert_int_equal(cell_integer(&f->a, i, 2), nullable);
        if (cell_integer(&f->a, i, 3) > 0)
            keys++;
        assert_int_equal(cell_integer(&f->a, i, 3),
                         strcmp(name, "LOCK_KEY") == 0 ? 1
                         : strcmp(name, "REGION") == 0 ? 2
                                                       : 0);
        assert_null(cell_text(&f->a, i, 4));
        assert_int_equal(cell_integer(&f->a, i, 7), 0);
        assert_int_equal(cell_integer(&f->a, i, 8), 2);
    }
    assert_int_equal(keys, 2);
}

TEST_ON(test_missing_table_has_no_description, ON_ALL, IN_ALL)
{
    assert_lock_ok(describe(f, "no_such_table"), &f->a.err);
    assert_int_equal(f->a.result.rows, 0);
}

TEST_ON(test_view_is_described_as_unfit, ON_ALL, IN_ALL)
{
    char view[64];

    /* Databases fold an unquoted name to lower case, or keep it. */
    (void)snprintf(view, sizeof view, "ds_view_%u", subject.serial);
    session_run(&f->a, "CREATE VIEW %s AS SELECT * FROM %s", view,
                subject.tables[f->layout].quoted);
    assert_lock_ok(describe(f, view), &f->a.err);
    assert_less(0, (int64_t)f->a.result.rows);
    for (size_t i = 0; i < f->a.result.rows; i++) {
        const char *reason = cell_text(&f->a, i, 4);

        assert_non_null(reason);
        assert_contains(reason, "view");
    }
    session_run(&f->a, "DROP VIEW %s", view);
}
