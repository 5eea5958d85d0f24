/*
 * test_table.c - names of tables: a prefix that does not make an identifier is
 * refused
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "db/drivers.h"
#include "db/table.h"

static const char *const schemes[] = {"postgresql:", "mysql:", "sqlite:"};
#define SCHEMES (sizeof schemes / sizeof *schemes)

/* Return the dialect of a scheme's driver; NULL: it is not compiled in. */
static const sqlock_dialect *dialect_of(const char *scheme)
{
    const sqlock_driver *driver;

    if (lk_driver_find(&driver, scheme, NULL) < 0)
        return NULL;
    return driver->dialect;
}

static int schema_text(char **text, const char *scheme, const char *prefix,
                       sqlock_layout layout, sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = prefix;
    return sqlock_schema_text(text, scheme, &options, layout, err);
}

TEST(test_F78_prefixes_with_sql_in_them_are_refused)
{
    static const char *const bad[] = {
        "x;DROP TABLE y;--",
        "x y",
        "x\"",
        "x`",
        "x'",
        "x/*",
        "x--",
        "1x",
        "x\n",
        "x\t",
        "x\\",
        "x(",
        "x)",
        "x=1",
        "a.b.c",
        ".x",
        "a..b",
        "x-y",
        "x,y",
        "x%s",
        "x%n",
        "{table}",
        "$1",
        "?",
        "x\x01",
        "x\xff",
        "\xc3\xa9",
        "x@y",
        "x#",
        "x\xe2\x80\x8b",
        "[x]",
        "x]",
        "a.1x",
        "1a.x",
        "a .x",
        "a. x",
        " ",
        "x ",
        "\"x\".\"y\"",
        "\".x",
        "x;",
        "a.x;",
    };
    size_t i;
    size_t k;

    for (k = 0; k < SCHEMES; k++) {
        if (dialect_of(schemes[k]) == NULL)
            continue;
        for (i = 0; i < sizeof bad / sizeof *bad; i++) {
            sqlock_error err = {0};
            char *text;
            int rc = schema_text(&text, schemes[k], bad[i],
                                 SQLOCK_LAYOUT_SQLOCK, &err);

            if (rc == 0)
                fail_msg("\"%s\" was accepted: %s", bad[i], text);
            assert_code(SQLOCK_EINVAL, rc, &err);
            assert_null(text);
        }
    }
}

/* A name made from an accepted prefix has only letters, digits, '_' and '.',
 * and is quoted: nothing else of a prefix gets into a statement. */
TEST(test_F78_statements_differ_in_the_name_only)
{
    static const char *const good[] = {"INT_",  "x",   "_",       "A1_b2",
                                       "app.I", "s._", "select_", "T9"};
    size_t i;
    size_t k;

    for (k = 0; k < SCHEMES; k++) {
        const sqlock_dialect *dialect = dialect_of(schemes[k]);

        for (i = 0; dialect != NULL && i < sizeof good / sizeof *good; i++) {
            struct lk_table table;
            sqlock_error err = {0};
            int rc = lk_table_from_prefix(&table, good[i], dialect, &err);
            size_t dots = strchr(good[i], '.') != NULL ? 1 : 0;

            assert_lock_ok(rc, &err);
            assert_int_equal(table.quoted[0], dialect->quote);
            assert_int_equal(strspn(table.plain, "abcdefghijklmnopqrstuvwxyz"
                                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                 "0123456789_."),
                             strlen(table.plain));
            assert_int_equal(strlen(table.quoted),
                             strlen(good[i]) + 4 + 2 + 2 * dots);
            if (dialect->folds_to_lower)
                assert_null(
                    strpbrk(table.quoted, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
            else
                assert_non_null(strstr(table.quoted, "LOCK"));
        }
    }
}

static void check_length(const sqlock_dialect *dialect, size_t length,
                         int expected)
{
    struct lk_table table;
    sqlock_error err = {0};
    char prefix[300];
    int rc;

    memset(prefix, 'p', length);
    prefix[length] = '\0';
    rc = lk_table_from_prefix(&table, prefix, dialect, &err);
    assert_code(expected, rc, &err);
    if (rc == 0)
        assert_int_equal(strlen(table.name), length + 4);
}

/* PostgreSQL truncates a name of more than 63 bytes without an error; MySQL
 * refuses a name of more than 64 characters. */
TEST(test_F78_names_longer_than_the_database_allows_are_refused)
{
    static const size_t limits[SCHEMES] = {63, 64, 0};
    size_t k;

    for (k = 0; k < SCHEMES; k++) {
        const sqlock_dialect *dialect = dialect_of(schemes[k]);

        if (dialect == NULL)
            continue;
        if (limits[k] != 0)
            assert_int_equal(dialect->identifier_max, limits[k]);
        if (dialect->identifier_max > 255)
            continue;
        check_length(dialect, dialect->identifier_max - 4, 0);
        check_length(dialect, dialect->identifier_max - 3, SQLOCK_EINVAL);
        check_length(dialect, 290, SQLOCK_EINVAL);
    }
}

TEST(test_a_schema_name_that_is_too_long_is_refused)
{
    size_t k;

    for (k = 0; k < SCHEMES; k++) {
        const sqlock_dialect *dialect = dialect_of(schemes[k]);
        struct lk_table table;
        sqlock_error err = {0};
        char prefix[300];
        int rc;

        if (dialect == NULL)
            continue;
        memset(prefix, 's', 260);
        (void)snprintf(prefix + 260, sizeof prefix - 260, ".INT_");
        rc = lk_table_from_prefix(&table, prefix, dialect, &err);
        assert_code(SQLOCK_EINVAL, rc, &err);
        assert_contains(err.message, "has 260 bytes");
    }
}

TEST(test_schema_text_is_for_that_prefix_and_layout)
{
    size_t k;
    int layout;

    for (k = 0; k < SCHEMES; k++) {
        if (dialect_of(schemes[k]) == NULL)
            continue;
        for (layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
            sqlock_error err = {0};
            char *text;
            int rc = schema_text(&text, schemes[k], "Shop7_",
                                 (sqlock_layout)layout, &err);

            assert_lock_ok(rc, &err);
            assert_contains(text, "CREATE TABLE");
            assert_contains(text, "Shop7_LOCK");
            assert_lacks(text, "INT_LOCK ");
            assert_contains(text, "CREATED_DATE");
            check_contains(text, "EXPIRED_AFTER ",
                           layout != SQLOCK_LAYOUT_SPRING6, __FILE__, __LINE__);
            check_contains(text, "FENCE ", layout == SQLOCK_LAYOUT_SQLOCK,
                           __FILE__, __LINE__);
            sqlock_free(text);
        }
    }
}

TEST(test_schema_text_refuses_what_it_does_not_know)
{
    sqlock_error err = {0};
    char *text = (char *)1;
    int rc = schema_text(&text, "oracle:", "INT_", SQLOCK_LAYOUT_SQLOCK, &err);

    assert_code(SQLOCK_ENOTSUP, rc, &err);
    assert_null(text);
    rc = schema_text(&text, "no scheme", "INT_", SQLOCK_LAYOUT_SQLOCK, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_null(text);
    rc = schema_text(&text, "sqlite:", "INT_", (sqlock_layout)3, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    rc = schema_text(&text, "sqlite:", "INT_", (sqlock_layout)-1, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_null(text);
}
