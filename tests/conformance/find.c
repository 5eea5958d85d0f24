/*
 * find.c - locks found without a limit, however many there are
 */
#include "conformance.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sqlock/doctor.h"
#include "support/around.h"

/* A driver around the real one that notes how many rows the longest answer has.
 * A statement has a time limit, so the length of an answer must not grow with
 * the table. */
static struct around noted;
static size_t longest;
/* All rows of the region are changed after the next answer, so that they may
 * move to other pages; NULL: they are not. */
static struct fixture *changed;
static const char *changed_region;

static int noted_execute(void *connection, const sqlock_statement *statement,
                         const sqlock_value *parameters, size_t count,
                         int64_t deadline_ns, sqlock_result *result,
                         sqlock_error *err)
{
    int rc = noted.real->execute(connection, statement, parameters, count,
                                 deadline_ns, result, err);

    if (rc == 0 && result->rows > longest)
        longest = result->rows;
    if (changed != NULL && rc == 0 && result->rows > 1) {
        (void)sql_run(&changed->sql,
                      "UPDATE %s SET CLIENT_ID = 'other' WHERE REGION = '%s'",
                      changed->table, changed_region);
        changed = NULL;
    }
    return rc;
}

static void note_answers(struct fixture *f)
{
    if (!around_make(&noted, f, "noted"))
        return;
    noted.driver.execute = noted_execute;
    around_register(&noted);
}

static void check_same(const sqlock_info *one, const sqlock_info *other)
{
    assert_string_equal(one->key, other->key);
    assert_string_equal(one->region, other->region);
    assert_true(one->acquired_at_us == other->acquired_at_us);
}

/* Without a limit, rows are read in pages and sorted by the library.  In each
 * order they come as with a limit, where the database sorts them, although the
 * rows are changed behind the first page. */
TEST(test_all_locks_are_found_in_pages)
{
    sqlock_options how = fixture_options(f);
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_registry *registry;
    char region[64];
    char url[1024];
    int order;

    note_answers(f);
    (void)snprintf(region, sizeof region, "region-%u", f->serial);
    how.region = region;
    registry = fixture_registry_at(f, around_url(url, &noted, f), &how);
    fixture_put_many(f, region);
    for (order = SQLOCK_SORT_NAME; order <= SQLOCK_SORT_TOKEN; order++) {
        sqlock_info *sorted;
        sqlock_info *rows;
        size_t count;
        size_t i;

        options.sort = (sqlock_sort)order;
        options.limit = 2 * FIXTURE_MANY;
        assert_ok(sqlock_find(registry, &options, &sorted, &count, &f->err));
        assert_int_equal(count, FIXTURE_MANY);
        options.limit = 0;
        longest = 0;
        changed = f;
        changed_region = region;
        assert_ok(sqlock_find(registry, &options, &rows, &count, &f->err));
        assert_int_equal(count, FIXTURE_MANY);
        for (i = 0; i < count; i++)
            check_same(&rows[i], &sorted[i]);
        assert_null(changed);
        assert_true(longest > 0);
        assert_true(longest < FIXTURE_MANY);
        sqlock_info_free(rows, count);
        sqlock_info_free(sorted, count);
    }
    registry_end(registry);
    fixture_delete_region(f, region);
}

/* A stranger has written the keys, which have more bytes than ours. */
TEST_ON(test_pages_of_long_keys_list_each_row_once, ON_SQLITE, IN_SQLOCK)
{
    sqlock_options how = fixture_options(f);
    sqlock_registry *registry;
    sqlock_info *rows;
    char region[64];
    size_t count;

    (void)snprintf(region, sizeof region, "long-%u", f->serial);
    how.region = region;
    registry = fixture_registry(f, &how);
    fixture_put_many(f, region);
    (void)sql_run(&f->sql,
                  "UPDATE %s SET LOCK_KEY = LOCK_KEY || "
                  "replace('................', '.', '\u00fc') "
                  "WHERE REGION = '%s'",
                  f->table, region);
    assert_ok(sqlock_find(registry, NULL, &rows, &count, &f->err));
    assert_int_equal(count, FIXTURE_MANY);
    sqlock_info_free(rows, count);
    registry_end(registry);
    fixture_delete_region(f, region);
}

/* Three regions have the same keys, so a page may end between two rows of one
 * key.  No row is lost, and those of a key are in the order of their regions.
 * Names that transactions lock are no locks. */
TEST(test_pages_of_all_regions_lose_no_row)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;
    char regions[3][64];
    sqlock_info *rows;
    size_t found[3] = {0};
    size_t count;
    size_t i;

    for (i = 0; i < 3; i++) {
        (void)snprintf(regions[i], sizeof regions[i], "page-%u-%zu%s",
                       f->serial, i, i < 2 ? "" : "#tx");
        fixture_put_many(f, regions[i]);
    }
    options.all_regions = true;
    assert_ok(sqlock_find(f->a, &options, &rows, &count, &f->err));
    for (i = 0; i < count; i++) {
        for (size_t j = 0; j < 3; j++)
            found[j] += strcmp(rows[i].region, regions[j]) == 0;
        if (i > 0 && strcmp(rows[i - 1].key, rows[i].key) == 0)
            assert_true(strcmp(rows[i - 1].region, rows[i].region) < 0);
    }
    sqlock_info_free(rows, count);
    for (i = 0; i < 3; i++) {
        assert_int_equal(found[i], i < 2 ? FIXTURE_MANY : 0);
        fixture_delete_region(f, regions[i]);
    }
}

/* Return row i of a list whose rows have that size. */
static const void *row_at(const void *rows, size_t size, size_t i)
{
    return (const char *)rows + i * size;
}

/* A program that was compiled when sqlock_info had fewer members reads each row
 * of a list, not only the first. */
TEST(test_rows_are_as_large_as_the_callers_header_has_them)
{
    const size_t size = offsetof(sqlock_info, waiter_names);
    sqlock_registry *registry = fixture_in_region(f, f->name);
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_info *rows, *now;
    size_t count;

    fixture_put_many(f, f->name);
    options.free_too = true;
    assert_ok(list_all(registry, &now, &count, &f->err));
    assert_int_equal(count, FIXTURE_MANY);
    assert_ok(
        sqlock_find_sized(registry, &options, &rows, &count, size, &f->err));
    assert_int_equal(count, FIXTURE_MANY);
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(row_at(rows, size, i), &now[i], sizeof now[i].key);
    sqlock_info_free(rows, count);
    sqlock_info_free(now, count);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_find_sized(registry, &options, &rows, &count,
                                   sizeof *rows + 1, &f->err));
    assert_null(rows);
    /* Such a row would have an id without an end, or half of its name. */
    for (size_t small = 0; small < sizeof *rows; small++) {
        if (small < offsetof(sqlock_info, token) || small % sizeof(void *) != 0)
            assert_fails(SQLOCK_EINVAL,
                         sqlock_find_sized(registry, &options, &rows, &count,
                                           small, &f->err));
    }
    registry_end(registry);
    fixture_delete_region(f, f->name);
}

/* The same of the other lists. */
TEST(test_checks_are_as_large_as_a_callers_header_has_them)
{
    sqlock_options options = fixture_options(f);
    const size_t size = offsetof(sqlock_check, advice);
    sqlock_check *old, *now;
    size_t old_count, count;

    assert_ok(sqlock_diagnose(f->url, &options, &now, &count, &f->err));
    assert_ok(sqlock_diagnose_sized(f->url, &options, &old, &old_count, size,
                                    &f->err));
    assert_int_equal(count, old_count);
    assert_true(count > 2);
    for (size_t i = 0; i < count; i++) {
        const char *check;

        memcpy(&check, row_at(old, size, i), sizeof check);
        assert_string_equal(check, now[i].check);
    }
    sqlock_checks_free(old, old_count);
    sqlock_checks_free(now, count);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_diagnose_sized(f->url, &options, &old, &old_count,
                                       sizeof *old + 1, &f->err));
    assert_null(old);
}
