/*
 * test_batch.c - how many leases have time in one statement, how much time many
 * have, and in which parts they are sent
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

/* --- a claim in parts --- */

/* The lengths of the parts that were sent. */
static struct {
    size_t counts[16];
    size_t times;
} sent;

/* The first one times out, which was not carried out. */
static int send(struct lk_store *store, struct lk_batch *batch,
                sqlock_error *err)
{
    (void)store;
    (void)err;
    assert_true(sent.times < sizeof sent.counts / sizeof *sent.counts);
    sent.counts[sent.times++] = batch->count;
    return sent.times == 1 ? SQLOCK_ETIMEDOUT : 0;
}

/* A part of two, before one that shares its lock, is cut; those behind that one
 * are sent together all the same. */
static void test_a_short_part_that_is_cut_shortens_no_other(void **state)
{
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};
    struct lk_item items[3 + 600] = {{.lease = {.key = "a"}}};
    struct lk_batch batch = {.items = items,
                             .count = 3 + 600,
                             .deadline_ns = sqlock_monotonic_ns() +
                                            3600000 * LK_NS_PER_MS};
    static const size_t expected[] = {2, 1, 1, 1, 600};

    (void)state;
    items[2].lease.weight = 1;
    sent.times = 0;
    assert_int_equal(lk_batch_apart(&store, &batch, send, NULL), 0);
    assert_int_equal(sent.times, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sent.counts[i], expected[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_statement_has_what_it_has_time_for),
    cmocka_unit_test(test_the_time_grows_with_the_number),
    cmocka_unit_test(test_a_short_part_that_is_cut_shortens_no_other),
};
const struct suite suite_batch = SUITE("batches", tests);
