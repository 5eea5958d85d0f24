/*
 * test_reap.c - the statements that go over many rows: LIST, REAP_BOUND, REAP
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <string.h>

#define ROWS 7

/* A region of each test's own: rows of others are not to be counted. */
static char region[32];

static struct lk_arguments arguments_of(const struct test *test,
                                        const char *after, int64_t duration_us)
{
    struct lk_arguments arguments =
        arguments_for(test, test->client_a, duration_us);

    lk_argument_text(&arguments, SQLOCK_P_KEY, after);
    lk_argument_text(&arguments, SQLOCK_P_REGION, region);
    return arguments;
}

/* Claim so many locks of the region, by rising key. */
static void claim_rows(struct test *test, char keys[][SQLOCK_KEY_SIZE],
                       size_t count, int64_t ttl_us)
{
    (void)snprintf(region, sizeof region, "reap-%u", subject.serial);
    for (size_t i = 0; i < count; i++) {
        struct lk_arguments arguments;

        next_key(keys[i]);
        arguments = arguments_of(test, keys[i], ttl_us);
        assert_lock_ok(
            statement_try(&test->a, test, SQLOCK_SQL_CLAIM, &arguments),
            &test->a.err);
        assert_int_equal(test->a.result.rows, 1);
    }
}

static size_t list(struct test *test, const char *after, int64_t limit)
{
    struct lk_arguments arguments = arguments_of(test, after, limit);

    assert_lock_ok(statement_try(&test->b, test, SQLOCK_SQL_LIST, &arguments),
                   &test->b.err);
    assert_int_equal(test->b.result.columns, INFO_COLUMNS);
    return test->b.result.rows;
}

static int64_t reap(struct test *test, const char *after, const char *to,
                    int64_t retention_us)
{
    struct lk_arguments arguments = arguments_of(test, after, retention_us);

    lk_argument_text(&arguments, SQLOCK_P_OTHER, to);
    assert_lock_ok(statement_try(&test->a, test, SQLOCK_SQL_REAP, &arguments),
                   &test->a.err);
    return test->a.result.affected;
}

/* Until every lease of the region is over. */
static bool all_are_over(struct test *test)
{
    (void)list(test, "", 100);
    for (size_t i = 0; i < test->b.result.rows; i++)
        if (cell_integer(&test->b, i, INFO_REMAINING) >= 0)
            return false;
    return true;
}

static void test_list_goes_by_key(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, LONG_US);
    assert_int_equal(list(test, "", 100), ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(cell_text(&test->b, i, INFO_KEY), keys[i]);
        assert_string_equal(cell_text(&test->b, i, INFO_CLIENT),
                            test->client_a);
        assert_less(0, cell_integer(&test->b, i, INFO_REMAINING));
        if (test->layout == SQLOCK_LAYOUT_SQLOCK)
            assert_string_equal(cell_text(&test->b, i, INFO_HOLDER),
                                "a holder");
    }
}

static void test_list_is_read_in_pages(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    char after[SQLOCK_KEY_SIZE] = "";
    size_t seen = 0;

    claim_rows(test, keys, ROWS, LONG_US);
    while (list(test, after, 3) > 0) {
        assert_true(test->b.result.rows <= 3);
        for (size_t i = 0; i < test->b.result.rows; i++) {
            (void)snprintf(after, sizeof after, "%s",
                           cell_text(&test->b, i, INFO_KEY));
            assert_true(seen < ROWS);
            assert_string_equal(after, keys[seen++]);
        }
    }
    assert_int_equal(seen, ROWS);
}

static void test_bound_is_the_last_key_of_a_batch(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    const struct {
        const char *after;
        int64_t limit;
        const char *bound;
    } cases[] = {{"", 3, keys[2]},
                 {keys[2], 3, keys[5]},
                 {keys[5], 3, keys[6]},
                 {keys[6], 3, NULL}};

    claim_rows(test, keys, ROWS, LONG_US);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_arguments arguments =
            arguments_of(test, cases[i].after, cases[i].limit);

        assert_lock_ok(
            statement_try(&test->b, test, SQLOCK_SQL_REAP_BOUND, &arguments),
            &test->b.err);
        assert_int_equal(test->b.result.rows, 1);
        assert_int_equal(test->b.result.columns, 1);
        if (cases[i].bound == NULL)
            assert_null(cell_text(&test->b, 0, 0));
        else
            assert_string_equal(cell_text(&test->b, 0, 0), cases[i].bound);
    }
}

static void test_reap_leaves_live_leases(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, LONG_US);
    assert_int_equal(reap(test, "", keys[ROWS - 1], 0), 0);
    assert_int_equal(list(test, "", 100), ROWS);
}

static void test_reap_keeps_for_the_retention(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, 1000);
    assert_becomes_true(all_are_over(test), PATIENCE_MS);
    assert_int_equal(reap(test, "", keys[ROWS - 1], 3600 * SECOND_US), 0);
    assert_int_equal(reap(test, "", keys[ROWS - 1], 0), ROWS);
    assert_int_equal(list(test, "", 100), 0);
}

static void test_reap_stays_within_its_batch(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, 1000);
    assert_becomes_true(all_are_over(test), PATIENCE_MS);
    assert_int_equal(reap(test, keys[1], keys[4], 0), 3);
    assert_int_equal(list(test, "", 100), ROWS - 3);
    assert_string_equal(cell_text(&test->b, 1, INFO_KEY), keys[1]);
    assert_string_equal(cell_text(&test->b, 2, INFO_KEY), keys[5]);
}

static void test_reap_stays_within_its_region(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, 1000);
    assert_becomes_true(all_are_over(test), PATIENCE_MS);
    (void)snprintf(region, sizeof region, "no such region");
    assert_int_equal(reap(test, "", keys[ROWS - 1], 0), 0);
}

/* A token that lies ahead of the clock must not be forgotten: it would come
 * again. */
static void test_reap_keeps_young_tokens(void **state)
{
    struct test *test = *state;
    char keys[2][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, 2, 1000);
    assert_becomes_true(all_are_over(test), PATIENCE_MS);
    session_run(&test->a, "UPDATE %s SET FENCE = %lld WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted,
                (long long)(now_us(&test->a) + 3600 * SECOND_US), keys[0]);
    assert_int_equal(reap(test, "", keys[1], 0), 1);
    assert_int_equal(list(test, "", 100), 1);
    assert_string_equal(cell_text(&test->b, 0, INFO_KEY), keys[0]);
}

/* Rows that were released count from then on. */
static void test_reap_removes_released_rows(void **state)
{
    struct test *test = *state;
    char keys[2][SQLOCK_KEY_SIZE];
    struct lk_arguments arguments;

    claim_rows(test, keys, 2, LONG_US);
    arguments = arguments_of(test, keys[0], 0);
    assert_lock_ok(
        statement_try(&test->a, test, SQLOCK_SQL_RELEASE, &arguments),
        &test->a.err);
    assert_int_equal(test->a.result.affected, 1);
    assert_int_equal(reap(test, "", keys[1], 0),
                     test->layout == SQLOCK_LAYOUT_SQLOCK ? 1 : 0);
    assert_int_equal(list(test, "", 100), 1);
    assert_string_equal(cell_text(&test->b, 0, INFO_KEY), keys[1]);
}

/* However long ago the lock had been taken. */
static void test_reap_keeps_released_rows_for_the_retention(void **state)
{
    struct test *test = *state;
    char keys[1][SQLOCK_KEY_SIZE];
    struct lk_arguments arguments;

    claim_rows(test, keys, 1, LONG_US);
    session_run(&test->a, "UPDATE %s SET FENCE = 1 WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, keys[0]);
    arguments = arguments_of(test, keys[0], 0);
    assert_lock_ok(
        statement_try(&test->a, test, SQLOCK_SQL_RELEASE, &arguments),
        &test->a.err);
    assert_int_equal(reap(test, "", keys[0], LONG_US), 0);
    assert_int_equal(reap(test, "", keys[0], 0), 1);
}

void add_reap_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(list_goes_by_key);
    ADD(list_is_read_in_pages);
    ADD(bound_is_the_last_key_of_a_batch);
    ADD(reap_leaves_live_leases);
    ADD(reap_keeps_for_the_retention);
    ADD(reap_stays_within_its_batch);
    ADD(reap_stays_within_its_region);
    ADD(reap_removes_released_rows);
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK) {
        ADD(reap_keeps_released_rows_for_the_retention);
        ADD(reap_keeps_young_tokens);
    }
#undef ADD
}
