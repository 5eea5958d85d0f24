/*
 * test_driver.c - the list of drivers: each has all statements, and is found
 * by its schemes
 */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/drivers.h"
#include "db/statement.h"
#include "sqlock/operator.h"

/* Statements about many locks, and those after them, may be missing. */
#define REQUIRED_KINDS ((int)SQLOCK_SQL_CLAIM_MANY)

/* Tickets are in a column of sqlock's own layout. */
static bool is_required(int layout, int kind)
{
    bool is_of_tickets = kind == SQLOCK_SQL_ENQUEUE ||
                         kind == SQLOCK_SQL_LEAVE ||
                         kind == SQLOCK_SQL_CLAIM_UNQUEUED ||
                         kind == SQLOCK_SQL_CLAIM_RESERVED ||
                         kind == SQLOCK_SQL_RELEASE_UNQUEUED;

    return kind < REQUIRED_KINDS &&
           (layout == SQLOCK_LAYOUT_SQLOCK || !is_of_tickets);
}

TEST(test_a_driver_has_all_statements)
{
    static const struct lk_name names[] = {{NULL, NULL}};

    for (size_t i = 0; lk_drivers[i] != NULL; i++)
        for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++)
            for (int kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
                struct lk_statement statement;
                int rc = lk_statement_of_kind(
                    &statement, lk_drivers[i]->dialect, (sqlock_layout)layout,
                    (sqlock_statement_kind)kind, names, 0);

                if (rc != SQLOCK_ENOTSUP || is_required(layout, kind))
                    assert_int_equal(rc, 0);
                lk_statement_clear(&statement);
            }
}

TEST(test_a_scheme_is_of_one_driver)
{
    const sqlock_driver *found;

    for (size_t i = 0; lk_drivers[i] != NULL; i++) {
        char *schemes = strdup(lk_drivers[i]->schemes);
        char *rest = NULL;
        const char *scheme;

        assert_non_null(schemes);
        for (scheme = strtok_r(schemes, "|", &rest); scheme != NULL;
             scheme = strtok_r(NULL, "|", &rest)) {
            char url[64];

            (void)snprintf(url, sizeof url, "%s://h/d", scheme);
            assert_int_equal(lk_driver_find(&found, url, NULL), 0);
            assert_ptr_equal(found, lk_drivers[i]);
        }
        free(schemes);
    }
}

TEST(test_an_added_driver_is_found_and_listed)
{
    static sqlock_driver driver;
    const sqlock_driver *found;
    size_t last = 0;

    driver = *lk_drivers[0];
    driver.name = "copy";
    driver.schemes = "unit-copy|unit.copy+2";
    assert_true(lk_driver_add(&driver));
    assert_int_equal(lk_driver_find(&found, "unit-copy:", NULL), 0);
    assert_ptr_equal(found, &driver);
    assert_int_equal(lk_driver_find(&found, "unit.copy+2://h/d", NULL), 0);
    assert_ptr_equal(found, &driver);
    while (sqlock_driver_info(last + 1) != NULL)
        last++;
    assert_int_equal(strncmp(sqlock_driver_info(last), "copy (", 6), 0);
}

TEST(test_driver_info_lists_what_is_compiled_in)
{
    size_t i;

    for (i = 0; lk_drivers[i] != NULL; i++) {
        const char *info = sqlock_driver_info(i);
        char expected[64];

        assert_non_null(info);
        assert_true(check_one_line(info));
        (void)snprintf(expected, sizeof expected, "%s (", lk_drivers[i]->name);
        assert_int_equal(strncmp(info, expected, strlen(expected)), 0);
        assert_int_equal(info[strlen(info) - 1], ')');
        assert_ptr_equal(info, sqlock_driver_info(i));
    }
    assert_null(sqlock_driver_info(1000));
    assert_null(sqlock_driver_info((size_t)-1));
}

TEST(test_a_url_finds_its_driver_by_scheme)
{
    static const struct {
        const char *url;
        int expected;
    } rows[] = {
        {"oracle://h/d", SQLOCK_ENOTSUP},
        {"postgres", SQLOCK_EINVAL},
        {"", SQLOCK_EINVAL},
        {":", SQLOCK_EINVAL},
        {"://h", SQLOCK_EINVAL},
        {"/var/db", SQLOCK_EINVAL},
        {"my sql://h", SQLOCK_EINVAL},
        {"sqlit:x", SQLOCK_ENOTSUP},
        {"sqlitee:x", SQLOCK_ENOTSUP},
        {"\xff:x", SQLOCK_EINVAL},
        {"x\x1b:y", SQLOCK_EINVAL},
#ifdef SQLOCK_WITH_POSTGRES
        {"postgresql://h/d?durability=slow", SQLOCK_EINVAL},
        {"postgresql://h/d?durability=", SQLOCK_EINVAL},
#endif
#ifdef SQLOCK_WITH_MYSQL
        {"mysql://h/d?durability=fast", SQLOCK_EINVAL},
#endif
#ifdef SQLOCK_WITH_SQLITE
        {"sqlite:x?durability=full", SQLOCK_EINVAL},
#endif
    };
    size_t i;

    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sqlock_driver *found = lk_drivers[0];
        sqlock_error err = {0};
        int rc = lk_driver_find(&found, rows[i].url, &err);

        assert_code(rows[i].expected, rc, &err);
        assert_null(found);
    }
}
