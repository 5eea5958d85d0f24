/*
 * test.h - the tests of a program, each of which adds itself where it is
 * defined:
 *
 *     TEST(test_a_held_lock_is_busy)
 *     {
 *         ... f is its fixture; NULL: the program has none
 *     }
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include "check.h"

struct fixture;

/* Which suite of a program runs a test. */
enum test_set { SET_USUAL, SET_CLOCK, SET_LIMPING };

struct test {
    const char *name;
    void (*body)(struct fixture *fixture);
    unsigned rounds;    /* so often in a campaign, each with a new lock name */
    unsigned databases; /* ON_...; 0: all */
    unsigned layouts;   /* IN_...; 0: the suite's */
    bool stops_server;  /* no other test may use the server meanwhile */
    bool locks_rows;    /* skipped where row locks are refused (Galera) */
    const void *data;   /* fixture->data while it runs; or NULL */
    enum test_set set;
    /* called before and after it in a program without fixtures; or NULL */
    void (*open)(void);
    void (*close)(void);
    /* where it is defined */
    const char *file;
    unsigned line;
    struct test *next;
};

/* Tests that name nothing of the above, their databases and layouts, ... */
#define TEST(name_) TEST_WITH(name_, .rounds = 0)
#define TEST_ON(name_, databases_, layouts_)                                   \
    TEST_WITH(name_, .databases = (databases_), .layouts = (layouts_))
#define TEST_STOPPING(name_, databases_) TEST_STOPPING_IN(name_, databases_, 0)
#define TEST_STOPPING_IN(name_, databases_, layouts_)                          \
    TEST_WITH(name_, .databases = (databases_), .layouts = (layouts_),         \
              .stops_server = true)
#define TEST_OF_ROWS(name_, databases_, layouts_)                              \
    TEST_WITH(name_, .databases = (databases_), .layouts = (layouts_),         \
              .locks_rows = true)
#define TEST_IN_ROUNDS(name_, databases_, rounds_)                             \
    TEST_WITH(name_, .databases = (databases_), .rounds = (rounds_))

/* ... and any members. */
#define TEST_WITH(name_, ...)                                                  \
    static void name_(struct fixture *f);                                      \
    __attribute__((constructor)) static void name_##_is_added(void)            \
    {                                                                          \
        static struct test test = {.name = #name_,                             \
                                   .body = name_,                              \
                                   .file = __FILE__,                           \
                                   .line = __LINE__,                           \
                                   __VA_ARGS__};                               \
                                                                               \
        tests_add(&test);                                                      \
    }                                                                          \
    static void name_(struct fixture *f __attribute__((unused)))

/* Add a test, behind those of files and lines before its own. */
void tests_add(struct test *test);

/* Return the first one, which leads to the others; NULL: there is none. */
const struct test *tests_first(void);

#endif
