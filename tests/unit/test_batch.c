/*
 * test_batch.c - how many leases have time in one statement, and how much time
 * many have
 */
#include "unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "lease/batch.h"

static void expect_parts(bool has_parts, uint32_t timeout_ms, size_t count)
{
    struct lk_store store = {.options = {.statement_timeout_ms = timeout_ms}};
    struct lk_batch batch = {.count = count};

    batch.items = calloc(count, sizeof *batch.items);
    assert_non_null(batch.items);
    assert_int_equal(lk_batch_has_parts(&store, &batch), has_parts);
    free(batch.items);
}

static void test_a_statement_has_what_it_has_time_for(void **state)
{
    (void)state;
    expect_parts(false, 10, 1);
    expect_parts(false, 10, 20);
    expect_parts(true, 10, 21);
    expect_parts(false, 500, 1000);
    expect_parts(true, 500, 1001);
    expect_parts(false, 3600000, 1000);
    expect_parts(true, 3600000, 1001);
}

/* Timeouts of hours: a pause of the machine is less. */
static void test_the_time_grows_with_the_number(void **state)
{
    static const struct {
        size_t count;
        int64_t hours;
    } rows[] = {{1, 1}, {1000, 1}, {1001, 2}, {2000, 2}, {10000, 10}};
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};
    int64_t hour_ns = 3600000 * LK_NS_PER_MS;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t before_ns = sqlock_monotonic_ns();
        int64_t time_ns = lk_batch_deadline(&store, rows[i].count) - before_ns;

        assert_true(time_ns >= rows[i].hours * hour_ns);
        assert_true(time_ns < (rows[i].hours + 1) * hour_ns);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_statement_has_what_it_has_time_for),
    cmocka_unit_test(test_the_time_grows_with_the_number),
};
const struct suite suite_batch = SUITE("batches", tests);
