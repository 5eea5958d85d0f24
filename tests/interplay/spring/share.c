/*
 * share.c - the share of the turns that services get
 *
 * The lines that the test prints are the table in src/lock/README.md.
 */
#include "spring.h"

/* Return the share of two services beside four workers, in percent. */
static unsigned measure(struct fixture *f, const struct pace *pace)
{
    struct contest contest;
    unsigned share;

    fixture_next(f);
    contest_start(&contest, f, stage_service(f, 0), stage_service(f, 1),
                  1000000, pace);
    contest_count(&contest, check_scale(600, 1500));
    contest_end(&contest, true);
    share = contest.theirs * 100 / (contest.theirs + contest.ours);
    print_message("think %u ms, idle %u ms: services %u of %u turns, %u %%\n",
                  pace->think_ms, pace->idle_ms, contest.theirs,
                  contest.theirs + contest.ours, share);
    return share;
}

/* It is a third; the test allows for a machine on which either side is slow.
 * Neither gets next to nothing, nor nearly all. */
static void test_services_get_a_share_by_head(void **state)
{
    static const struct pace paces[] = {
        {.idle_ms = 10, .think_ms = 0},  {.idle_ms = 100, .think_ms = 3},
        {.idle_ms = 1, .think_ms = 0},   {.idle_ms = 100, .think_ms = 0},
        {.idle_ms = 1, .think_ms = 3},   {.idle_ms = 10, .think_ms = 3},
        {.idle_ms = 1, .think_ms = 50},  {.idle_ms = 10, .think_ms = 50},
        {.idle_ms = 100, .think_ms = 50}};
    size_t count = check_scale(2, sizeof paces / sizeof paces[0]);

    for (size_t i = 0; i < count; i++)
        assert_in_range(measure(*state, &paces[i]), 5, 66);
}

static const struct test tests[] = {
    TEST_ON(test_services_get_a_share_by_head, ON_ALL, IN_SQLOCK),
};

const struct topic topic_share = TOPIC(tests);
