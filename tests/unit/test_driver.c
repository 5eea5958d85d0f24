/*
 * test_driver.c - registering drivers: one that is incomplete, or whose name or
 * scheme is taken, is refused
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/driver.h"

/* A dialect must have the statements before CLAIM_MANY; it may leave out the
 * others. */
#define REQUIRED_KINDS ((size_t)SQLOCK_SQL_CLAIM_MANY)

/* Return a complete driver with the name "copy" and these schemes, for a test
 * to change. */
static sqlock_driver copy(const char *schemes)
{
    sqlock_driver driver = *lk_drivers[0];

    driver.name = "copy";
    driver.schemes = schemes;
    return driver;
}

static void expect_refused(const sqlock_driver *driver, int expected)
{
    sqlock_error err = {0};
    int rc = sqlock_driver_register(driver, &err);

    assert_code(expected, rc, &err);
}

static void test_a_driver_without_a_function_is_refused(void **state)
{
    sqlock_driver driver;

    (void)state;
#define WITHOUT(member)                                                        \
    do {                                                                       \
        driver = copy("hole");                                                 \
        driver.member = NULL;                                                  \
        expect_refused(&driver, SQLOCK_EINVAL);                                \
    } while (0)
    WITHOUT(name);
    WITHOUT(schemes);
    WITHOUT(dialect);
    WITHOUT(client);
    WITHOUT(check_url);
    WITHOUT(open);
    WITHOUT(close);
    WITHOUT(is_alive);
    WITHOUT(execute);
    WITHOUT(begin);
    WITHOUT(commit);
    WITHOUT(rollback);
    WITHOUT(abort);
    WITHOUT(native);
    WITHOUT(describe);
#undef WITHOUT
    driver = copy("hole");
    driver.size = 0;
    expect_refused(&driver, SQLOCK_EINVAL);
    driver = copy("hole");
    driver.connection_bytes = 0;
    expect_refused(&driver, SQLOCK_EINVAL);
    expect_refused(NULL, SQLOCK_EINVAL);
}

static void test_a_driver_without_a_statement_is_refused(void **state)
{
    /* static, as a driver that is registered by mistake must stay valid */
    static sqlock_driver driver;
    static sqlock_dialect dialect;

    (void)state;
    for (size_t kind = 0; kind < REQUIRED_KINDS; kind++) {
        driver = copy("hole");
        dialect = *driver.dialect;
        dialect.statements[kind].text = "";
        driver.dialect = &dialect;
        expect_refused(&driver, SQLOCK_EINVAL);
    }
    /* A statement that only one layout has is missing in the others. */
    driver = copy("hole");
    dialect = *driver.dialect;
    dialect.statements[SQLOCK_SQL_RENEW].layouts = 1 << SQLOCK_LAYOUT_SQLOCK;
    driver.dialect = &dialect;
    expect_refused(&driver, SQLOCK_EINVAL);
}

static void test_a_driver_with_an_unknown_fragment_is_refused(void **state)
{
    static sqlock_driver driver;
    static sqlock_dialect dialect;

    (void)state;
    driver = copy("hole");
    dialect = *driver.dialect;
    dialect.fragments = NULL; /* so `now` is missing */
    driver.dialect = &dialect;
    expect_refused(&driver, SQLOCK_EINVAL);
    dialect = *lk_drivers[0]->dialect;
    dialect.statements[SQLOCK_SQL_CLAIM_MANY].text = "SELECT {nwo}";
    expect_refused(&driver, SQLOCK_EINVAL);
}

static void test_a_scheme_that_is_taken_is_refused(void **state)
{
    sqlock_driver driver;
    char schemes[128];
    size_t i;

    (void)state;
    for (i = 0; lk_drivers[i] != NULL; i++) {
        driver = copy(lk_drivers[i]->schemes);
        expect_refused(&driver, SQLOCK_ECONFLICT);
        (void)snprintf(schemes, sizeof schemes, "unheard-of|%s",
                       lk_drivers[i]->schemes);
        driver = copy(schemes);
        expect_refused(&driver, SQLOCK_ECONFLICT);
    }
    /* no scheme of the refused driver may be registered */
    assert_int_not_equal(sqlock_schema_check("unheard-of:x", NULL, NULL, NULL),
                         0);
    {
        const sqlock_driver *found;

        assert_int_equal(lk_driver_find(&found, "unheard-of:x", NULL),
                         SQLOCK_ENOTSUP);
    }
}

static void test_a_name_that_is_taken_is_refused(void **state)
{
    static sqlock_driver driver;

    (void)state;
    for (size_t i = 0; lk_drivers[i] != NULL; i++) {
        driver = copy("unheard-of");
        driver.name = lk_drivers[i]->name;
        expect_refused(&driver, SQLOCK_ECONFLICT);
    }
}

static void test_a_whole_driver_is_taken_once(void **state)
{
    static sqlock_driver driver;
    const sqlock_driver *found;
    sqlock_error err = {0};
    size_t last = 0;
    int rc;

    (void)state;
    driver = copy("unit-copy|unit.copy+2");
    rc = sqlock_driver_register(&driver, &err);
    assert_lock_ok(rc, &err);
    assert_int_equal(lk_driver_find(&found, "unit-copy:", NULL), 0);
    assert_ptr_equal(found, &driver);
    assert_int_equal(lk_driver_find(&found, "unit.copy+2://h/d", NULL), 0);
    assert_ptr_equal(found, &driver);
    expect_refused(&driver, SQLOCK_ECONFLICT);
    while (sqlock_driver_info(last + 1) != NULL)
        last++;
    assert_int_equal(strncmp(sqlock_driver_info(last), "copy (", 6), 0);
}

static void test_driver_info_lists_what_is_compiled_in(void **state)
{
    size_t i;

    (void)state;
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

/* Register drivers until the list is full.  Return 0 if the last one is listed.
 * Call it in a child, since no other driver can be registered afterwards. */
static int fill_the_list(void)
{
    static sqlock_driver drivers[64];
    static char names[64][16];
    size_t count = 0;
    size_t last = 0;

    do {
        (void)snprintf(names[count], sizeof *names, "full-%zu", count);
        drivers[count] = copy(names[count]);
        drivers[count].name = names[count];
    } while (sqlock_driver_register(&drivers[count], NULL) == 0 &&
             ++count < 64);
    while (sqlock_driver_info(last + 1) != NULL)
        last++;
    if (count == 0 || count == 64)
        return 2;
    return strncmp(sqlock_driver_info(last), names[count - 1],
                   strlen(names[count - 1])) == 0
               ? 0
               : 1;
}

static void test_driver_info_lists_all_that_are_registered(void **state)
{
    pid_t child = fork();
    int status = -1;

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(fill_the_list());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_a_url_finds_its_driver_by_scheme(void **state)
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
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sqlock_driver *found = lk_drivers[0];
        sqlock_error err = {0};
        int rc = lk_driver_find(&found, rows[i].url, &err);

        assert_code(rows[i].expected, rc, &err);
        assert_null(found);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_driver_without_a_function_is_refused),
    cmocka_unit_test(test_a_driver_without_a_statement_is_refused),
    cmocka_unit_test(test_a_driver_with_an_unknown_fragment_is_refused),
    cmocka_unit_test(test_a_scheme_that_is_taken_is_refused),
    cmocka_unit_test(test_a_name_that_is_taken_is_refused),
    cmocka_unit_test(test_a_whole_driver_is_taken_once),
    cmocka_unit_test(test_driver_info_lists_what_is_compiled_in),
    cmocka_unit_test(test_driver_info_lists_all_that_are_registered),
    cmocka_unit_test(test_a_url_finds_its_driver_by_scheme),
};
const struct suite suite_driver = SUITE("drivers", tests);
