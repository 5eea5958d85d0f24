/*
 * test_library.c - client libraries that are loaded when they are needed, and
 * those that are not there
 *
 * Libraries of every system stand for the databases'.
 */
#include "support/test.h"

#include "drivers/library.h"

static double (*cosine)(double);
static int (*nowhere)(void);

static const struct lk_library_function functions[] = {
    {"cos", (void *)&cosine},
    {"sqlock_no_such_function", (void *)&nowhere},
};

static struct lk_library library(const char *soname, size_t count)
{
    return (struct lk_library){.soname = soname,
                               .package = "the-package",
                               .copies = "libm.so.*",
                               .functions = functions,
                               .count = count};
}

TEST(test_functions_are_found_once_loaded)
{
    struct lk_library math = library("libm.so.6", 1);
    sqlock_error err = {0};

    cosine = NULL;
    assert_lock_ok(lk_library_load(&math, &err), &err);
    assert_true(cosine(0) > 0.99);
    cosine = NULL; /* not looked for again */
    assert_lock_ok(lk_library_load(&math, &err), &err);
    assert_null(cosine);
    assert_lock_ok(lk_library_adopt(&math, &err), &err);
}

/* Each time anew: it may have been installed meanwhile. */
TEST(test_a_missing_library_is_one_clear_line)
{
    struct lk_library missing = library("libsqlock-none.so.9", 1);
    sqlock_error err = {0};

    for (int i = 0; i < 2; i++) {
        assert_code(SQLOCK_ENOTSUP, lk_library_load(&missing, &err), &err);
        assert_contains(err.message, "libsqlock-none.so.9");
        assert_contains(err.message, "install the-package");
        assert_true(check_one_line(err.message));
    }
    assert_code(SQLOCK_ENOTSUP, lk_library_adopt(&missing, &err), &err);
    missing.soname = "libm.so.6";
    assert_lock_ok(lk_library_load(&missing, &err), &err);
}

TEST(test_a_library_that_is_too_old_is_refused)
{
    struct lk_library old = library("libm.so.6", 2);
    sqlock_error err = {0};

    assert_code(SQLOCK_ENOTSUP, lk_library_load(&old, &err), &err);
    assert_contains(err.message, "sqlock_no_such_function");
    assert_contains(err.message, "the-package");
    assert_code(SQLOCK_ENOTSUP, lk_library_load(&old, NULL), &err);
}

/* With a second one nobody knows whose connection is to be adopted. */
TEST(test_two_libraries_of_one_database_adopt_nothing)
{
    struct lk_library math = library("libm.so.6", 1);
    sqlock_error err = {0};

    math.copies = "libm.so.*|libc.so.*";
    assert_lock_ok(lk_library_load(&math, &err), &err);
    assert_code(SQLOCK_ENOTSUP, lk_library_adopt(&math, &err), &err);
    assert_contains(err.message, "libm.so.6");
    assert_contains(err.message, "libc.so.6");
}
