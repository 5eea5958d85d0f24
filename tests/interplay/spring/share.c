/*
 * share.c - the share of the turns that services get, from the first second on
 *
 * The lines that the test prints are the table in src/lock/README.md.  Without
 * Java, threads act as the services.
 */
#include <stdlib.h>

#include "spring.h"

static struct service *service_of(struct fixture *f, unsigned number)
{
    return getenv("SQLOCK_TEST_SPRING") != NULL ? stage_service(f, number)
                                                : NULL;
}

static const char *const kinds[] = {
    [CONTEST_ALONE] = "alone",     [CONTEST_FRESH] = "fresh handles",
    [CONTEST_FIVE] = "5 keys",     [CONTEST_READERS] = "readers",
    [CONTEST_PERMITS] = "permits", [CONTEST_MANY] = "many",
};

/* Let two services and four workers go on for so long. */
static void measure(struct fixture *f, struct contest *contest,
                    const struct pace *pace, unsigned ms)
{
    unsigned all;

    fixture_next(f);
    contest_start(contest, f, service_of(f, 0), service_of(f, 1), 1000000,
                  pace);
    check_sleep(ms);
    contest_end(contest, true);
    all = contest->theirs + contest->ours;
    print_message("%s, think %u ms, idle %u ms: services %u %%, %u turns/s, "
                  "first after %lld, %lld ms, longest wait %lld ms\n",
                  kinds[pace->kind], pace->think_ms, pace->idle_ms,
                  contest->theirs * 100 / (all > 0 ? all : 1), all * 1000 / ms,
                  (long long)contest->first_ms[0],
                  (long long)contest->first_ms[1],
                  (long long)contest->longest_ms);
}

static const struct pace paces[] = {
    {.idle_ms = 100, .think_ms = 3}, {.idle_ms = 10, .think_ms = 0},
    {.idle_ms = 100, .think_ms = 0}, {.idle_ms = 1, .think_ms = 0},
    {.idle_ms = 1, .think_ms = 3},   {.idle_ms = 10, .think_ms = 3},
    {.idle_ms = 10, .think_ms = 50}, {.idle_ms = 100, .think_ms = 50}};
#define PACES (sizeof paces / sizeof paces[0])

#define CONTEST_MS 10000

/* Return whether both services were soon let in, had a fair share, and never
 * waited for long. */
static bool is_fair(const struct contest *contest)
{
    unsigned all = contest->theirs + contest->ours;

    for (unsigned k = 0; k < CONTEST_SERVICES; k++)
        if (contest->first_ms[k] > CONTEST_MS)
            return false;
    return contest->theirs * 5 >= all && contest->theirs * 2 <= all &&
           contest->longest_ms < 3000;
}

static void check_kind(struct fixture *f, enum contest_kind kind)
{
    unsigned count = check_scale(1, PACES);
    unsigned unfair = 0;

    for (unsigned i = 0; i < count; i++) {
        struct pace pace = paces[i];
        struct contest contest;

        pace.kind = kind;
        measure(f, &contest, &pace, CONTEST_MS);
        unfair += !is_fair(&contest);
    }
    if (f->layout == SQLOCK_LAYOUT_SQLOCK) /* the others are to compare with */
        assert_int_equal(unfair, 0);
}

TEST_ON(test_services_get_a_share_of_a_lock, ON_ALL, IN_SQLOCK | IN_SPRING7)
{
    check_kind(f, CONTEST_ALONE);
}

TEST_ON(test_services_get_a_share_beside_fresh_handles, ON_ALL, IN_SQLOCK)
{
    check_kind(f, CONTEST_FRESH);
}

TEST_ON(test_services_get_a_share_of_five_locks, ON_ALL, IN_SQLOCK | IN_SPRING7)
{
    check_kind(f, CONTEST_FIVE);
}

TEST_ON(test_services_get_a_share_beside_readers, ON_SERVERS, IN_SQLOCK)
{
    check_kind(f, CONTEST_READERS);
}

TEST_ON(test_services_get_a_share_beside_permits, ON_SERVERS, IN_SQLOCK)
{
    check_kind(f, CONTEST_PERMITS);
}

TEST_ON(test_services_get_a_share_beside_calls_for_many, ON_ALL,
        IN_SQLOCK | IN_SPRING7)
{
    check_kind(f, CONTEST_MANY);
}
