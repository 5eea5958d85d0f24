/*
 * test_values.c - parameters and results, counts of rows, and statements that
 * are run again
 */
#include "drivers/suite.h"

#include <stdlib.h>

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

static void put_and_get(struct fixture *f, const struct row *row)
{
    assert_lock_ok(insert(&f->a, row), &f->a.err);
    assert_int_equal(f->a.result.affected, 1);
    assert_int_equal(f->a.result.rows, 0);
    assert_lock_ok(select_row(&f->b, row), &f->b.err);
    assert_int_equal(f->b.result.rows, 1);
    assert_int_equal(f->b.result.columns, 3);
    assert_int_equal(f->b.result.affected, 0);
}

TEST(test_null_is_null_and_not_empty)
{
    struct row row = row_of(f->key, NULL);

    put_and_get(f, &row);
    assert_int_equal(cell(&f->b, 0, 0)->type, SQLOCK_NULL);
    assert_int_equal(cell(&f->b, 0, 1)->type, SQLOCK_NULL);
}

TEST(test_integers_keep_all_64_bits)
{
    static const int64_t integers[] = {INT64_MIN,           -1, 0, 1, INT64_MAX,
                                       INT64_C(1) << 53 | 1};

    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        struct row row;

        next_key(f->key);
        row = row_of(f->key, "x");
        row.values[I] = sqlock_integer(integers[i]);
        put_and_get(f, &row);
        assert_true(cell_integer(&f->b, 0, 0) == integers[i]);
    }
}

TEST(test_texts_come_back_byte_for_byte)
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

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct row row;

        next_key(f->key);
        row = row_of(f->key, texts[i]);
        put_and_get(f, &row);
        assert_string_equal(cell_text(&f->b, 0, 1), texts[i]);
        assert_string_equal(cell_text(&f->b, 0, 2), f->key);
    }
}

TEST(test_long_text_is_not_cut)
{
    char *text = malloc(LARGE_BYTES + 1);
    struct row row;

    assert_non_null(text);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        text[i] = (char)('a' + i % 23);
    text[LARGE_BYTES] = '\0';
    row = row_of(f->key, text);
    put_and_get(f, &row);
    assert_int_equal(cell(&f->b, 0, 1)->length, LARGE_BYTES);
    assert_string_equal(cell_text(&f->b, 0, 1), text);
    /* A buffer that grew for this row serves the next one. */
    next_key(f->key);
    row = row_of(f->key, "short");
    put_and_get(f, &row);
    assert_string_equal(cell_text(&f->b, 0, 1), "short");
    free(text);
}

TEST(test_many_rows_come_in_order)
{
    struct row row = row_of(f->key, f->key);
    const size_t rows = 100;

    for (size_t i = 0; i < rows; i++) {
        next_key(f->key);
        row = row_of(f->key, f->key);
        row.values[T] = sqlock_text("many");
        row.values[I] = sqlock_integer((int64_t)i);
        assert_lock_ok(insert(&f->a, &row), &f->a.err);
    }
    session_ok(&f->a,
               session_values(&f->a, 3,
                              "SELECT I FROM {table} WHERE T = ? ORDER BY K",
                              &row.values[T], 1));
    assert_int_equal(f->a.result.rows, rows);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(cell_integer(&f->a, i, 0), i);
}

TEST(test_statement_with_an_id_runs_a_thousand_times)
{
    struct row row = row_of(f->key, "again");

    put_and_get(f, &row);
    for (int64_t i = 0; i < 1000; i++) {
        const sqlock_value values[] = {sqlock_integer(i), row.values[K]};

        session_ok(&f->a, session_values(&f->a, 4,
                                         "UPDATE {table} SET I = ? WHERE K = ?",
                                         values, 2));
    }
    assert_lock_ok(select_row(&f->a, &row), &f->a.err);
    assert_int_equal(cell_integer(&f->a, 0, 0), 999);
}

TEST(test_prepared_statement_survives_a_changed_table)
{
    struct row row = row_of(f->key, "before");

    put_and_get(f, &row);
    assert_lock_ok(select_row(&f->b, &row), &f->b.err);
    session_run(&f->b, "ALTER TABLE %s ADD COLUMN EXTRA BIGINT",
                subject.values.quoted);
    assert_lock_ok(select_row(&f->b, &row), &f->b.err);
    assert_string_equal(cell_text(&f->b, 0, 1), "before");
    next_key(f->key);
    row = row_of(f->key, "after");
    put_and_get(f, &row);
    session_run(&f->b, "ALTER TABLE %s DROP COLUMN EXTRA",
                subject.values.quoted);
    next_key(f->key);
    row = row_of(f->key, "later");
    put_and_get(f, &row);
    assert_string_equal(cell_text(&f->b, 0, 1), "later");
}

TEST(test_result_of_a_failure_is_left_alone)
{
    struct session *a = &f->a;
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
