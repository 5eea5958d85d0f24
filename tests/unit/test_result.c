/*
 * test_result.c - rows that a driver pushes into a result that may have had
 * others before
 */
#include "support/test.h"

#include <string.h>

#include "db/driver.h"

static void push_row(sqlock_result *result, int64_t number, const char *text,
                     size_t length)
{
    sqlock_value integer = {.type = SQLOCK_INT64, .integer = number};
    sqlock_value words = {.type = SQLOCK_TEXT, .text = text, .length = length};

    assert_int_equal(sqlock_result_push(result, &integer), 0);
    assert_int_equal(sqlock_result_push(result, &words), 0);
}

/* Begin the result anew, and push rows, whose texts grow up to 511 bytes. */
static void fill(sqlock_result *result, size_t rows, char letter)
{
    char text[512];

    memset(text, letter, sizeof text);
    assert_int_equal(sqlock_result_start(result, 2), 0);
    assert_int_equal(result->rows, 0);
    assert_int_equal(result->affected, 0);
    for (size_t i = 0; i < rows; i++)
        push_row(result, (int64_t)i, text, i % sizeof text);
    result->affected = (int64_t)rows;
}

static void check(const sqlock_result *result, size_t rows, char letter)
{
    assert_int_equal(result->rows, rows);
    assert_int_equal(result->columns, 2);
    for (size_t i = 0; i < rows; i++) {
        const sqlock_value *cells = &result->cells[i * 2];

        assert_int_equal(cells[0].integer, i);
        assert_int_equal(cells[1].length, i % 512);
        assert_int_equal(strlen(cells[1].text), cells[1].length);
        for (size_t at = 0; at < cells[1].length; at++)
            assert_int_equal(cells[1].text[at], letter);
    }
}

TEST(test_a_result_that_is_started_again_has_only_new_rows)
{
    static const size_t sizes[] = {1000, 3000, 2, 0, 1, 5000};
    sqlock_result result = {0};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char letter = (char)('a' + i);

        fill(&result, sizes[i], letter);
        check(&result, sizes[i], letter);
    }
    sqlock_result_clear(&result);
    assert_null(result.cells);
    assert_null(result.memory);
}

TEST(test_the_number_of_columns_may_change)
{
    sqlock_value one = {.type = SQLOCK_INT64, .integer = 1};
    sqlock_result result = {0};

    fill(&result, 10, 'x');
    assert_int_equal(sqlock_result_start(&result, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(sqlock_result_push(&result, &one), 0);
    assert_int_equal(result.rows, 100);
    assert_int_equal(sqlock_result_start(&result, 0), 0);
    assert_int_equal(result.rows, 0);
    assert_int_equal(sqlock_result_push(&result, &one), SQLOCK_EINVAL);
    sqlock_result_clear(&result);
}
