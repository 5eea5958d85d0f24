/*
 * test_values.c - parameters and results, counts of rows, and statements that
 * are run again
 */
#include "drivers/suite.h"

#include <stdlib.h>
#include <string.h>

#define INSERT "INSERT INTO {table} (K, I, T) VALUES (?, ?, ?)"
#define SELECT "SELECT I, T, K FROM {table} WHERE K = ?"
#define LARGE_BYTES 10000

/* A row's values, in the order of INSERT. */
enum { K, I, T, COLUMNS };
struct row {
    sqlock_value values[COLUMNS];
};

/* Return a row whose I is null. */
static struct row row_of(const char *key, const char *text)
{
    return (struct row){{[K] = sqlock_text(key), [T] = sqlock_text(text)}};
}

static int insert(struct session *session, const struct row *row)
{
    return session_values(session, 1, INSERT, row->values, COLUMNS);
}

static int select_row(struct session *session, const struct row *row)
{
    return session_values(session, 2, SELECT, &row->values[K], 1);
}

static void put_and_get(struct test *test, const struct row *row)
{
    assert_lock_ok(insert(&test->a, row), &test->a.err);
    assert_int_equal(test->a.result.affected, 1);
    assert_int_equal(test->a.result.rows, 0);
    assert_lock_ok(select_row(&test->b, row), &test->b.err);
    assert_int_equal(test->b.result.rows, 1);
    assert_int_equal(test->b.result.columns, 3);
    assert_int_equal(test->b.result.affected, 0);
}

static void test_null_is_null_and_not_empty(void **state)
{
    struct test *test = *state;
    struct row row = row_of(test->key, NULL);

    put_and_get(test, &row);
    assert_int_equal(cell(&test->b, 0, 0)->type, SQLOCK_NULL);
    assert_int_equal(cell(&test->b, 0, 1)->type, SQLOCK_NULL);
}

static void test_integers_keep_all_64_bits(void **state)
{
    static const int64_t integers[] = {INT64_MIN,           -1, 0, 1, INT64_MAX,
                                       INT64_C(1) << 53 | 1};
    struct test *test = *state;

    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        struct row row;

        next_key(test->key);
        row = row_of(test->key, "x");
        row.values[I] = sqlock_integer(integers[i]);
        put_and_get(test, &row);
        assert_true(cell_integer(&test->b, 0, 0) == integers[i]);
    }
}

static void test_texts_come_back_byte_for_byte(void **state)
{
    static const char *const texts[] = {
        "",
        " leading and trailing ",
        "it's \"quoted\" `so` \\ and \\' \\\\",
        "lines\nand\r\ttabs",
        "%s %n $1 ? {1} :x @y --x /* */ ; DROP TABLE x",
        "gr\xc3\xbc\xc3\x9f \xe9\x94\x81 \xf0\x9f\x94\x92 e\xcc\x81",
        "\x01\x7f",
    };
    struct test *test = *state;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct row row;

        next_key(test->key);
        row = row_of(test->key, texts[i]);
        put_and_get(test, &row);
        assert_string_equal(cell_text(&test->b, 0, 1), texts[i]);
        assert_string_equal(cell_text(&test->b, 0, 2), test->key);
    }
}

static void test_long_text_is_not_cut(void **state)
{
    struct test *test = *state;
    char *text = malloc(LARGE_BYTES + 1);
    struct row row;

    assert_non_null(text);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        text[i] = (char)('a' + i % 23);
    text[LARGE_BYTES] = '\0';
    row = row_of(test->key, text);
    put_and_get(test, &row);
    assert_int_equal(cell(&test->b, 0, 1)->length, LARGE_BYTES);
    assert_string_equal(cell_text(&test->b, 0, 1), text);
    /* A buffer that grew for this row serves the next one. */
    next_key(test->key);
    row = row_of(test->key, "short");
    put_and_get(test, &row);
    assert_string_equal(cell_text(&test->b, 0, 1), "short");
    free(text);
}

static void test_many_rows_come_in_order(void **state)
{
    struct test *test = *state;
    struct row row = row_of(test->key, test->key);
    const size_t rows = 100;

    for (size_t i = 0; i < rows; i++) {
        next_key(test->key);
        row = row_of(test->key, test->key);
        row.values[T] = sqlock_text("many");
        row.values[I] = sqlock_integer((int64_t)i);
        assert_lock_ok(insert(&test->a, &row), &test->a.err);
    }
    session_ok(&test->a,
               session_values(&test->a, 3,
                              "SELECT I FROM {table} WHERE T = ? ORDER BY K",
                              &row.values[T], 1));
    assert_int_equal(test->a.result.rows, rows);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(cell_integer(&test->a, i, 0), i);
}

static void test_statement_with_an_id_runs_a_thousand_times(void **state)
{
    struct test *test = *state;
    struct row row = row_of(test->key, "again");

    put_and_get(test, &row);
    for (int64_t i = 0; i < 1000; i++) {
        const sqlock_value values[] = {sqlock_integer(i), row.values[K]};

        session_ok(&test->a,
                   session_values(&test->a, 4,
                                  "UPDATE {table} SET I = ? WHERE K = ?",
                                  values, 2));
    }
    assert_lock_ok(select_row(&test->a, &row), &test->a.err);
    assert_int_equal(cell_integer(&test->a, 0, 0), 999);
}

static void test_prepared_statement_survives_a_changed_table(void **state)
{
    struct test *test = *state;
    struct row row = row_of(test->key, "before");

    put_and_get(test, &row);
    assert_lock_ok(select_row(&test->b, &row), &test->b.err);
    session_run(&test->b, "ALTER TABLE %s ADD COLUMN EXTRA BIGINT",
                subject.values.quoted);
    assert_lock_ok(select_row(&test->b, &row), &test->b.err);
    assert_string_equal(cell_text(&test->b, 0, 1), "before");
    next_key(test->key);
    row = row_of(test->key, "after");
    put_and_get(test, &row);
    session_run(&test->b, "ALTER TABLE %s DROP COLUMN EXTRA",
                subject.values.quoted);
    next_key(test->key);
    row = row_of(test->key, "later");
    put_and_get(test, &row);
    assert_string_equal(cell_text(&test->b, 0, 1), "later");
}

static void test_result_of_a_failure_is_left_alone(void **state)
{
    struct test *test = *state;
    struct session *a = &test->a;
    sqlock_statement bad = {.text = "SELECT FROM WHERE"};
    sqlock_result result = {0};
    const sqlock_value seven = {.type = SQLOCK_INT64, .integer = 7};

    assert_int_equal(sqlock_result_start(&result, 1), 0);
    assert_int_equal(sqlock_result_push(&result, &seven), 0);
    session_fails(SQLOCK_EDATABASE, a,
                  subject.driver->execute(a->connection, &bad, NULL, 0,
                                          check_deadline_ns(DEADLINE_MS),
                                          &result, &a->err));
    assert_int_equal(result.rows, 1);
    assert_int_equal(result.cells[0].integer, 7);
    sqlock_result_clear(&result);
}

void add_value_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(null_is_null_and_not_empty);
    ADD(integers_keep_all_64_bits);
    ADD(texts_come_back_byte_for_byte);
    ADD(long_text_is_not_cut);
    ADD(many_rows_come_in_order);
    ADD(statement_with_an_id_runs_a_thousand_times);
    ADD(prepared_statement_survives_a_changed_table);
    ADD(result_of_a_failure_is_left_alone);
#undef ADD
}
