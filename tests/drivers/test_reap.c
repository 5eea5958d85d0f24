/*
 * test_reap.c - the statements that go over many rows: FIND_BEGIN, FIND_PAGE,
 * REAP_BOUND, REAP
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <string.h>

#define ROWS 7

/* A region for each test, so that rows of other tests are not counted. */
static char region[32];

static struct lk_arguments arguments_of(const struct test *test,
                                        const char *after, int64_t duration_us)
{
    struct lk_arguments arguments =
        arguments_for(test, test->client_a, duration_us);

    lk_argument_text(&arguments, SQLOCK_P_AFTER, after);
    lk_argument_text(&arguments, SQLOCK_P_REGION, region);
    return arguments;
}

/* Those of a page with all rows of the region, free ones too. */
static struct lk_arguments arguments_of_page(const struct test *test,
                                             const char *after, int64_t limit)
{
    struct lk_arguments arguments = arguments_of(test, after, limit);

    lk_argument_text(&arguments, SQLOCK_P_AFTER_REGION, region);
    lk_argument_text(&arguments, SQLOCK_P_PATTERN, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_WITH_FREE, 1);
    return arguments;
}

/* Choose a new region, and claim `count` locks in it, by rising key. */
static void claim_rows(struct test *test, char keys[][SQLOCK_KEY_SIZE],
                       size_t count, int64_t ttl_us)
{
    (void)snprintf(region, sizeof region, "reap-%u", subject.serial);
    for (size_t i = 0; i < count; i++) {
        struct lk_arguments arguments;

        next_key(keys[i]);
        arguments = arguments_of(test, keys[i], ttl_us);
        statement_run(&test->a, test, SQLOCK_SQL_CLAIM, &arguments);
        assert_int_equal(test->a.result.rows, 1);
    }
}

static bool goes_by_key(const struct test *test)
{
    return subject.statements[test->layout][SQLOCK_SQL_FIND_BEGIN].text == NULL;
}

/* Begin a list, which ends with list_end(). */
static void list_begin(struct test *test)
{
    struct lk_arguments arguments = arguments_of_page(test, "", 0);

    if (goes_by_key(test))
        return;
    assert_lock_ok(session_begin(&test->b), &test->b.err);
    statement_run(&test->b, test, SQLOCK_SQL_FIND_BEGIN, &arguments);
}

static void list_end(struct test *test)
{
    if (!goes_by_key(test))
        assert_lock_ok(session_rollback(&test->b), &test->b.err);
}

static size_t list_next(struct test *test, const char *after, int64_t limit)
{
    struct lk_arguments arguments = arguments_of_page(test, after, limit);

    statement_run(&test->b, test, SQLOCK_SQL_FIND_PAGE, &arguments);
    assert_int_equal(test->b.result.columns, LK_INFO_COLUMNS + 1);
    for (size_t i = 0; i < test->b.result.rows; i++)
        assert_string_equal(cell_text(&test->b, i, LK_INFO_COLUMNS), region);
    return test->b.result.rows;
}

static size_t list(struct test *test, const char *after, int64_t limit)
{
    size_t rows;

    list_begin(test);
    rows = list_next(test, after, limit);
    list_end(test);
    return rows;
}

/* Reap one range of about `rows` rows, which begins at *bound, and set *bound
 * to the end of the range.  Return the number of removed rows; -1: no range is
 * left. */
static int64_t reap_part(struct test *test, char bound[SQLOCK_KEY_SIZE],
                         int64_t rows, int64_t retention_us)
{
    struct lk_arguments arguments = arguments_of(test, bound, rows);
    char from[SQLOCK_KEY_SIZE];

    statement_run(&test->b, test, SQLOCK_SQL_REAP_BOUND, &arguments);
    assert_int_equal(test->b.result.rows, 1);
    assert_int_equal(test->b.result.columns, 1);
    if (cell_text(&test->b, 0, 0) == NULL)
        return -1;
    memcpy(from, bound, sizeof from);
    assert_true(strlen(cell_text(&test->b, 0, 0)) < SQLOCK_KEY_SIZE);
    (void)snprintf(bound, SQLOCK_KEY_SIZE, "%s", cell_text(&test->b, 0, 0));
    arguments = arguments_of(test, from, retention_us);
    lk_argument_text(&arguments, SQLOCK_P_UNTIL, bound);
    statement_run(&test->a, test, SQLOCK_SQL_REAP, &arguments);
    return test->a.result.affected;
}

static int64_t reap(struct test *test, int64_t retention_us)
{
    char bound[SQLOCK_KEY_SIZE] = "";
    int64_t removed = 0;
    int64_t part;

    while ((part = reap_part(test, bound, 3, retention_us)) >= 0)
        removed += part;
    return removed;
}

/* Return whether every lease of the region is over. */
static bool all_are_over(struct test *test)
{
    (void)list(test, "", 100);
    for (size_t i = 0; i < test->b.result.rows; i++)
        if (cell_integer(&test->b, i, LK_INFO_REMAINING) >= 0)
            return false;
    return true;
}

static void claim_rows_that_end(struct test *test, char keys[][SQLOCK_KEY_SIZE],
                                size_t count)
{
    claim_rows(test, keys, count, 1000);
    assert_becomes_true(all_are_over(test), PATIENCE_MS);
}

/* Return the index of a key.  A key that is unknown, or was seen before, fails
 * the test. */
static size_t find(const char *key, char keys[][SQLOCK_KEY_SIZE], bool *seen)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (seen[i] || strcmp(key, keys[i]) != 0)
            continue;
        seen[i] = true;
        return i;
    }
    fail_msg("%s is no key of these, or came before", key);
    return 0;
}

static void test_list_has_all_rows(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    bool seen[ROWS] = {false};

    claim_rows(test, keys, ROWS, LONG_US);
    assert_int_equal(list(test, "", 100), ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        size_t found = find(cell_text(&test->b, i, LK_INFO_KEY), keys, seen);

        if (goes_by_key(test))
            assert_int_equal(found, i);
        assert_string_equal(cell_text(&test->b, i, LK_INFO_CLIENT),
                            test->client_a);
        assert_less(0, cell_integer(&test->b, i, LK_INFO_REMAINING));
        if (test->layout == SQLOCK_LAYOUT_SQLOCK)
            assert_string_equal(cell_text(&test->b, i, LK_INFO_HOLDER),
                                "a holder");
    }
}

static void test_list_is_read_in_pages(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    char after[SQLOCK_KEY_SIZE] = "";
    bool seen[ROWS] = {false};
    size_t count = 0;

    claim_rows(test, keys, ROWS, LONG_US);
    list_begin(test);
    while (list_next(test, after, 3) > 0) {
        assert_true(!goes_by_key(test) || test->b.result.rows <= 3);
        for (size_t i = 0; i < test->b.result.rows; i++) {
            (void)snprintf(after, sizeof after, "%s",
                           cell_text(&test->b, i, LK_INFO_KEY));
            (void)find(after, keys, seen);
            count++;
        }
    }
    list_end(test);
    assert_int_equal(count, ROWS);
}

/* All rows are updated after the list has begun, so that they may move to other
 * pages.  None is left out or listed twice. */
static void test_list_is_of_one_moment(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    bool seen[ROWS] = {false};
    size_t rows;

    claim_rows(test, keys, ROWS, LONG_US);
    list_begin(test);
    session_run(&test->a,
                "UPDATE %s SET CLIENT_ID = 'other' WHERE REGION = '%s'",
                subject.tables[test->layout].quoted, region);
    rows = list_next(test, "", 100);
    assert_int_equal(rows, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        (void)find(cell_text(&test->b, i, LK_INFO_KEY), keys, seen);
    list_end(test);
}

static void test_parts_of_a_reap_lie_side_by_side(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    char first[SQLOCK_KEY_SIZE] = "";
    char again[SQLOCK_KEY_SIZE] = "";
    int64_t removed;

    claim_rows_that_end(test, keys, ROWS);
    removed = reap_part(test, first, 3, 0);
    if (goes_by_key(test))
        assert_int_equal(removed, 3);
    assert_int_equal(list(test, "", 100), ROWS - removed);
    /* Go over the ranges behind the first one to the end, with a long
     * retention: no row is removed. */
    memcpy(again, first, sizeof again);
    while (reap_part(test, again, 3, 3600 * SECOND_US) >= 0)
        ;
    assert_int_equal(list(test, "", 100), ROWS - removed);
    assert_int_equal(reap(test, 0), ROWS - removed);
    assert_int_equal(list(test, "", 100), 0);
}

static void test_reap_leaves_live_leases(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, ROWS, LONG_US);
    assert_int_equal(reap(test, 0), 0);
    assert_int_equal(list(test, "", 100), ROWS);
}

static void test_reap_keeps_for_the_retention(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows_that_end(test, keys, ROWS);
    assert_int_equal(reap(test, 3600 * SECOND_US), 0);
    assert_int_equal(reap(test, 0), ROWS);
    assert_int_equal(list(test, "", 100), 0);
}

/* Another session has locked a row: the reap passes over it, and does not
 * wait. */
static void test_reap_passes_over_locked_rows(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];
    struct session third = {.is_open = false};

    claim_rows_that_end(test, keys, ROWS);
    session_open(&third);
    assert_lock_ok(session_begin(&third), &third.err);
    session_run(&third, "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                subject.tables[test->layout].quoted, keys[2]);
    assert_int_equal(reap(test, 0), ROWS - 1);
    assert_int_equal(list(test, "", 100), 1);
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_KEY), keys[2]);
    assert_lock_ok(session_rollback(&third), &third.err);
    assert_int_equal(reap(test, 0), 1);
    session_close(&third);
}

static void test_reap_stays_within_its_region(void **state)
{
    struct test *test = *state;
    char keys[ROWS][SQLOCK_KEY_SIZE];

    claim_rows_that_end(test, keys, ROWS);
    (void)snprintf(region, sizeof region, "no such region");
    assert_int_equal(reap(test, 0), 0);
}

/* A row whose token lies ahead of the clock is kept: without the row, a claim
 * would get that token again. */
static void test_reap_keeps_young_tokens(void **state)
{
    struct test *test = *state;
    char keys[2][SQLOCK_KEY_SIZE];

    claim_rows_that_end(test, keys, 2);
    session_run(&test->a, "UPDATE %s SET FENCE = %lld WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted,
                (long long)(now_us(&test->a) + 3600 * SECOND_US), keys[0]);
    assert_int_equal(reap(test, 0), 1);
    assert_int_equal(list(test, "", 100), 1);
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_KEY), keys[0]);
}

static void release_row(struct test *test, const char *key)
{
    struct lk_arguments arguments = arguments_of(test, key, 0);

    statement_run(&test->a, test, SQLOCK_SQL_RELEASE, &arguments);
    assert_int_equal(test->a.result.affected, 1);
}

/* A released row is over, although its lease would have lasted longer. */
static void test_reap_removes_released_rows(void **state)
{
    struct test *test = *state;
    char keys[2][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, 2, LONG_US);
    release_row(test, keys[0]);
    assert_int_equal(reap(test, 0),
                     test->layout == SQLOCK_LAYOUT_SQLOCK ? 1 : 0);
    assert_int_equal(list(test, "", 100), 1);
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_KEY), keys[1]);
}

/* The retention counts from the release, even if the token is older. */
static void test_reap_keeps_released_rows_for_the_retention(void **state)
{
    struct test *test = *state;
    char keys[1][SQLOCK_KEY_SIZE];

    claim_rows(test, keys, 1, LONG_US);
    session_run(&test->a, "UPDATE %s SET FENCE = 1 WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, keys[0]);
    release_row(test, keys[0]);
    assert_int_equal(reap(test, LONG_US), 0);
    assert_int_equal(reap(test, 0), 1);
}

void add_reap_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    ADD(list_has_all_rows);
    ADD(list_is_read_in_pages);
    ADD(list_is_of_one_moment);
    ADD(parts_of_a_reap_lie_side_by_side);
    ADD(reap_leaves_live_leases);
    ADD(reap_keeps_for_the_retention);
    if (subject.database->bit != ON_SQLITE) /* SQLite locks no single rows */
        ADD(reap_passes_over_locked_rows);
    ADD(reap_stays_within_its_region);
    ADD(reap_removes_released_rows);
    if (subject.layout == SQLOCK_LAYOUT_SQLOCK) {
        ADD(reap_keeps_released_rows_for_the_retention);
        ADD(reap_keeps_young_tokens);
    }
#undef ADD
}
