/*
 * check.h - assertions that print the library's error, and waits for a
 * condition
 *
 * For the main thread of a test only: a worker thread reports through
 * workers.h, because cmocka cannot fail a test from another thread.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "sqlock.h"
#include "sqlock/admin.h"

/* Read all rows of the registry's region. */
static inline int list_all(sqlock_registry *registry, sqlock_info **rows,
                           size_t *count, sqlock_error *err)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;

    options.free_too = true;
    return sqlock_find(registry, &options, rows, count, err);
}

/* Factor for time limits: a sanitizer makes everything slower. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWNESS 3
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOWNESS 3
#endif
#endif
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

/* Whether a child may open a registry: under the thread sanitizer, that of a
 * process with threads cannot start a thread. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_MAY_OPEN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_MAY_OPEN 0
#endif
#endif
#ifndef CHILD_MAY_OPEN
#define CHILD_MAY_OPEN 1
#endif

/* Longer than any wait should take on a busy machine. */
#define PATIENCE_MS 30000

/* After this time a test is taken to hang, even on a busy machine. */
#define TEST_SECONDS 400

/* Assert that rc is 0. */
#define assert_lock_ok(rc, err) check_code(0, (rc), (err), __FILE__, __LINE__)

/* Assert that rc is that code, and that the error says so in one clear line. */
#define assert_code(expected, rc, err)                                         \
    check_code((expected), (rc), (err), __FILE__, __LINE__)

/* Assert that rc is one of two codes. */
#define assert_code_of(one, other, rc, err)                                    \
    check_code_of((one), (other), (rc), (err), __FILE__, __LINE__)

/* Assert that smaller < larger, both int64_t. */
#define assert_less(smaller, larger)                                           \
    check_less((smaller), (larger), #smaller, #larger, __FILE__, __LINE__)

/* Assert that needle occurs in haystack; or that it does not. */
#define assert_contains(haystack, needle)                                      \
    check_contains((haystack), (needle), true, __FILE__, __LINE__)
#define assert_lacks(haystack, needle)                                         \
    check_contains((haystack), (needle), false, __FILE__, __LINE__)

/* Check a condition again and again, until it holds or the time is over. */
#define wait_until(condition, timeout_ms)                                      \
    __extension__({                                                            \
        int64_t wait_until_end_ = check_deadline_ns(timeout_ms);               \
        bool wait_until_met_ = (condition);                                    \
        while (!wait_until_met_ && check_pause(wait_until_end_))               \
            wait_until_met_ = (condition);                                     \
        wait_until_met_;                                                       \
    })

#define assert_becomes_true(condition, timeout_ms)                             \
    do {                                                                       \
        if (!wait_until((condition), (timeout_ms))) {                          \
            print_error("did not come true: %s\n", #condition);                \
            _fail(__FILE__, __LINE__);                                         \
        }                                                                      \
    } while (0)

void check_code(int expected, int rc, const sqlock_error *err, const char *file,
                int line);
void check_code_of(int one, int other, int rc, const sqlock_error *err,
                   const char *file, int line);
void check_less(int64_t smaller, int64_t larger, const char *smaller_text,
                const char *larger_text, const char *file, int line);
void check_contains(const char *haystack, const char *needle, bool wanted,
                    const char *file, int line);

/* Return CLOCK_MONOTONIC plus that many ms. */
int64_t check_deadline_ns(int64_t timeout_ms);

/* For a test that works through a table: set the name of the present row, and
 * NULL after the last row.  check_row_end() prints the name after a failure. */
void check_row(const char *name);

/* Print the name of the row in which a test has failed, and forget it.  Call it
 * after each test. */
void check_row_end(void);

/* Sleep for 2 ms and return true; or return false if the deadline has
 * passed. */
bool check_pause(int64_t deadline_ns);

/* Sleep for that many ms. */
void check_sleep(int64_t ms);

/* Return whether a message is one line: not empty, and without control
 * characters. */
bool check_one_line(const char *message);

/* Return the number of entries of a directory, such as /proc/self/task or
 * /proc/self/fd, with "." and ".."; fail the test if it cannot be read. */
size_t check_entries(const char *path);

/* Have this process killed when the parent ends; exit if the parent has ended
 * already.  Call it in a child, right after fork() or exec. */
void check_end_with(pid_t parent);

/* Return how often a test repeats something: `test` normally, `campaign` under
 * SQLOCK_SCALE=campaign. */
unsigned check_scale(unsigned test, unsigned campaign);

/* Skip the running test, or fail it under SKIPS_FAIL=1. */
#define skip_or_fail(...)                                                      \
    do {                                                                       \
        print_message("skipped: " __VA_ARGS__);                                \
        print_message("\n");                                                   \
        if (check_skips_fail())                                                \
            _fail(__FILE__, __LINE__);                                         \
        skip();                                                                \
    } while (0)
bool check_skips_fail(void);

#endif
