/*
 * test_hosts.c - which of a list's failures is the result
 */
#include "unit.h"

#include "base/clock.h"
#include "base/error.h"
#include "drivers/hosts.h"

#define HOSTS 3

/* The result of each host, and how many were tried. */
struct answers {
    int codes[HOSTS];
    size_t tried;
};

static int answer(void *context, size_t index, int64_t deadline_ns,
                  sqlock_error *err)
{
    struct answers *answers = context;
    int rc = answers->codes[index];

    assert_true(deadline_ns > 0);
    answers->tried++;
    return rc < 0 ? lk_error(err, rc, "host %zu", index) : 0;
}

static void test_a_failure_that_may_end_is_the_result(void **state)
{
    static const struct {
        int codes[HOSTS];
        int result;
        size_t tried;
    } rows[] = {
        {{0}, 0, 1},
        {{SQLOCK_EUNREACHABLE, 0}, 0, 2},
        {{SQLOCK_EINVAL, SQLOCK_EREADONLY, SQLOCK_EINVAL}, SQLOCK_EREADONLY, 3},
        {{SQLOCK_EINVAL, SQLOCK_EUNREACHABLE, SQLOCK_EINVAL},
         SQLOCK_EUNREACHABLE,
         3},
        {{SQLOCK_EINVAL, SQLOCK_EINVAL, SQLOCK_ERESOURCE}, SQLOCK_ERESOURCE, 3},
        {{SQLOCK_EINVAL, SQLOCK_EINVAL, SQLOCK_EINVAL}, SQLOCK_EINVAL, 3},
        {{SQLOCK_EUNREACHABLE, SQLOCK_ENOMEM, 0}, SQLOCK_ENOMEM, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answers answers = {{0}, 0};
        sqlock_error err = {0};

        for (size_t host = 0; host < HOSTS; host++)
            answers.codes[host] = rows[i].codes[host];
        check_row(rows[i].codes[0] == 0 ? "at once" : "of three");
        assert_int_equal(lk_hosts_try(HOSTS, sqlock_monotonic_ns() + 1000000000,
                                      answer, &answers, &err),
                         rows[i].result);
        assert_int_equal(answers.tried, rows[i].tried);
    }
    check_row(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_failure_that_may_end_is_the_result),
};
const struct suite suite_hosts = SUITE("hosts", tests);
