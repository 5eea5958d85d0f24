/*
 * test_hosts.c - which of a list's failures is the result
 */
#include "support/test.h"

#include "base/clock.h"
#include "base/error.h"
#include "drivers/hosts.h"

#define HOSTS 3

/* The result of each host, until when it had time, and how many were tried. */
struct answers {
    int codes[HOSTS];
    int64_t deadlines_ns[HOSTS];
    size_t tried;
};

static int answer(void *context, size_t index, int64_t deadline_ns,
                  sqlock_error *err)
{
    struct answers *answers = context;
    int rc = answers->codes[index];

    answers->deadlines_ns[index] = deadline_ns;
    answers->tried++;
    return rc < 0 ? lk_error(err, rc, "host %zu", index) : 0;
}

TEST(test_a_failure_that_may_end_is_the_result)
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
        {{SQLOCK_ECANCELED, 0}, 0, 2},
        {{SQLOCK_EINVAL, SQLOCK_ECANCELED, SQLOCK_ECANCELED}, SQLOCK_EINVAL, 3},
        {{SQLOCK_ECANCELED, SQLOCK_EUNREACHABLE, SQLOCK_ECANCELED},
         SQLOCK_EUNREACHABLE,
         3},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answers answers = {.tried = 0};
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

TEST(test_each_host_has_its_share_of_the_time)
{
    struct answers answers = {
        .codes = {SQLOCK_EUNREACHABLE, SQLOCK_EUNREACHABLE}};
    int64_t third_ns = 100000 * LK_NS_PER_MS;
    int64_t end_ns = sqlock_monotonic_ns() + 3 * third_ns;
    sqlock_error err = {0};

    assert_int_equal(lk_hosts_try(HOSTS, end_ns, answer, &answers, &err), 0);
    assert_true(answers.deadlines_ns[0] < end_ns - third_ns);
    assert_true(answers.deadlines_ns[1] > answers.deadlines_ns[0]);
    assert_true(answers.deadlines_ns[1] < end_ns);
    assert_true(answers.deadlines_ns[2] == end_ns);
}

/* It may have lost the server, so the next host is asked. */
TEST(test_a_library_that_gives_up_refuses_nothing)
{
    static const struct {
        int rc;
        const char *sqlstate;
        bool is_refused;
    } rows[] = {
        {SQLOCK_EACCESS, "28000", true},       {SQLOCK_ESCHEMA, "42000", true},
        {SQLOCK_EACCESS, "HY000", false},      {SQLOCK_EACCESS, "", false},
        {SQLOCK_EUNREACHABLE, "28000", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sqlock_error err = {0};

        (void)sqlock_error_set(&err, rows[i].rc, 0, rows[i].sqlstate, "no");
        check_row(rows[i].sqlstate);
        assert_int_equal(lk_hosts_is_refused(rows[i].rc, &err),
                         rows[i].is_refused);
    }
    check_row(NULL);
}

/* No host is tried without time: the one that has used it up says why. */
TEST(test_hosts_without_time_are_not_tried)
{
    struct answers answers = {.codes = {SQLOCK_EREADONLY, 0}};
    sqlock_error err = {0};

    assert_int_equal(
        lk_hosts_try(HOSTS, sqlock_monotonic_ns(), answer, &answers, &err),
        SQLOCK_EREADONLY);
    assert_int_equal(answers.tried, 1);
}
