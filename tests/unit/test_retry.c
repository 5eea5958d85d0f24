/*
 * test_retry.c - the loop for attempts that are repeated: classes of results,
 * pauses, number of attempts, and deadline
 */
#include "support/test.h"

#include "base/clock.h"
#include "base/retry.h"
#include "db/driver.h"

#define DRAWS 400
#define ALL 0xffffu

static const struct lk_retry_policy growing = {
    .first_us = 1000,
    .longest_us = 50000,
    .classes = LK_RETRY_CONFLICT,
};

/* Return the class of a code after which a policy may admit another attempt; 0:
 * the code ends every loop. */
static unsigned class_of(int rc)
{
    static const struct {
        int rc;
        unsigned class;
    } codes[] = {
        {SQLOCK_ERETRY, LK_RETRY_CONFLICT},
        {SQLOCK_EBUSY, LK_RETRY_BUSY},
        {SQLOCK_ETIMEDOUT, LK_RETRY_BUSY},
        {SQLOCK_ECONFLICT, LK_RETRY_VERSION},
        {SQLOCK_ERESOURCE, LK_RETRY_FULL},
        {SQLOCK_EUNREACHABLE, LK_RETRY_UNREACHABLE},
        {SQLOCK_EUNCERTAIN, LK_RETRY_UNCERTAIN},
        {SQLOCK_EREADONLY, LK_RETRY_STANDBY},
        {SQLOCK_ELOST, LK_RETRY_UNSENT},
        {SQLOCK_ECANCELED, LK_RETRY_UNSENT},
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].rc == rc)
            return codes[i].class;
    return 0;
}

TEST(test_a_class_admits_its_codes_and_no_other)
{
    for (int rc = -64; rc <= 64; rc++) {
        for (unsigned class = 1; class <= ALL; class <<= 1)
            if (lk_retry_admits(class, rc) != (class_of(rc) == class))
                fail_msg("%d is judged wrong by class %#x", rc, class);
        assert_false(lk_retry_admits(0, rc));
        assert_int_equal(lk_retry_admits(ALL, rc), class_of(rc) != 0);
    }
}

/* Assert that the pauses after so many failures lie between half of the length
 * and all of it, and come near both bounds. */
static void expect_pause(const struct lk_retry_policy *policy,
                         uint32_t failures, int64_t length_us)
{
    int64_t length_ns = length_us * LK_NS_PER_US;
    int64_t least = INT64_MAX;
    int64_t most = 0;

    for (int i = 0; i < DRAWS; i++) {
        int64_t pause_ns = lk_retry_pause_ns(policy, failures);

        if (pause_ns < least)
            least = pause_ns;
        if (pause_ns > most)
            most = pause_ns;
    }
    if (least < length_ns / 2 || most > length_ns ||
        least > length_ns / 16 * 9 || most < length_ns / 16 * 15)
        fail_msg("after %u failures %lld to %lld us, not %lld to %lld",
                 (unsigned)failures, (long long)(least / LK_NS_PER_US),
                 (long long)(most / LK_NS_PER_US), (long long)(length_us / 2),
                 (long long)length_us);
}

TEST(test_pauses_double_to_the_longest)
{
    static const int64_t lengths_us[] = {1000,  2000,  4000,  8000, 16000,
                                         32000, 50000, 50000, 50000};

    for (uint32_t i = 0; i < sizeof lengths_us / sizeof *lengths_us; i++)
        expect_pause(&growing, i + 1, lengths_us[i]);
    expect_pause(&growing, UINT32_MAX, 50000);
}

TEST(test_a_longest_below_the_first_holds)
{
    const struct lk_retry_policy flat = {.first_us = 1000, .longest_us = 400};

    expect_pause(&flat, 1, 400);
    expect_pause(&flat, 2, 400);
}

TEST(test_a_pause_without_bound_does_not_overflow)
{
    const struct lk_retry_policy endless = {
        .first_us = 10000,
        .longest_us = LK_NEVER / LK_NS_PER_US,
    };

    expect_pause(&endless, 10, INT64_C(10000) << 9);
    for (uint32_t failures = 1; failures < 100; failures++)
        assert_true(lk_retry_pause_ns(&endless, failures) > 0);
}

TEST(test_failures_grow_the_pause_until_it_is_reset)
{
    struct lk_retry retry;
    int64_t before_ns;

    lk_retry_begin(&retry, &growing, LK_NEVER);
    for (uint32_t i = 1; i <= 7; i++) {
        assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
        assert_int_equal(retry.failures, i);
    }
    before_ns = sqlock_monotonic_ns();
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
    assert_true(retry.resume_ns >= before_ns + 25 * LK_NS_PER_MS);
    assert_true(retry.resume_ns <= sqlock_monotonic_ns() + 50 * LK_NS_PER_MS);
    lk_retry_reset(&retry);
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
    assert_int_equal(retry.failures, 1);
    assert_true(retry.resume_ns <= sqlock_monotonic_ns() + LK_NS_PER_MS);
}

TEST(test_other_results_end_the_loop_and_count_nothing)
{
    struct lk_retry retry;

    lk_retry_begin(&retry, &growing, LK_NEVER);
    assert_false(lk_retry_decide(&retry, 0));
    assert_false(lk_retry_decide(&retry, SQLOCK_EBUSY));
    assert_int_equal(retry.failures, 0);
    retry.policy.classes |= LK_RETRY_BUSY; /* now EBUSY is admitted */
    assert_true(lk_retry_decide(&retry, SQLOCK_EBUSY));
    assert_int_equal(retry.failures, 1);
}

TEST(test_attempts_are_counted)
{
    struct lk_retry_policy policy = growing;
    struct lk_retry retry;

    policy.attempts = 3;
    lk_retry_begin(&retry, &policy, LK_NEVER);
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));  /* a second */
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));  /* a third */
    assert_false(lk_retry_decide(&retry, SQLOCK_ERETRY)); /* no fourth */
    policy.attempts = 1;
    lk_retry_begin(&retry, &policy, LK_NEVER);
    assert_false(lk_retry_decide(&retry, SQLOCK_ERETRY));
}

/* Pauses of at least 30 s: no delay of a busy machine is as long. */
static const struct lk_retry_policy slow = {
    .first_us = 60000000,
    .longest_us = 60000000,
    .classes = LK_RETRY_CONFLICT,
};

TEST(test_no_pause_reaches_the_deadline)
{
    struct lk_retry retry;

    lk_retry_begin(&retry, &slow, sqlock_monotonic_ns() + 25000 * LK_NS_PER_MS);
    assert_false(lk_retry_decide(&retry, SQLOCK_ERETRY));
    retry.deadline_ns = sqlock_monotonic_ns() + 120000 * LK_NS_PER_MS;
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
    assert_true(retry.resume_ns < retry.deadline_ns);
}

TEST(test_a_last_attempt_is_made_at_the_deadline)
{
    struct lk_retry_policy policy = slow;
    struct lk_retry retry;

    policy.last = LK_RETRY_AT_DEADLINE;
    lk_retry_begin(&retry, &policy,
                   sqlock_monotonic_ns() + 25000 * LK_NS_PER_MS);
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
    assert_true(retry.resume_ns == retry.deadline_ns);
    retry.deadline_ns = sqlock_monotonic_ns();
    assert_false(lk_retry_decide(&retry, SQLOCK_ERETRY));
    retry.deadline_ns = LK_NEVER;
    assert_true(lk_retry_decide(&retry, SQLOCK_ERETRY));
    assert_true(retry.resume_ns < sqlock_monotonic_ns() + 60001 * LK_NS_PER_MS);
}

TEST(test_the_loop_sleeps_until_the_next_attempt)
{
    struct lk_retry retry;
    int64_t begun_ns = sqlock_monotonic_ns();
    int64_t deadline_ns = lk_after_ms(begun_ns, 100);
    unsigned attempts = 1;

    lk_retry_begin(&retry, &growing, deadline_ns);
    while (lk_retry_goes_on(&retry, SQLOCK_ERETRY)) {
        assert_true(sqlock_monotonic_ns() >= retry.resume_ns);
        attempts++;
    }
    /* The pauses are at least 0.5, 1, 2, 4, 8, 16, 25 and 25 ms long: no more
     * of them fit into 100 ms. */
    assert_true(attempts <= 9);
    assert_true(retry.failures == attempts);
}
