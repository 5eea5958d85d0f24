/*
 * test_crew.c - threads that work for each other: each piece of work is done
 * once, nobody is forgotten, and no more lead than there are places
 */
#include "support/test.h"

#include <sched.h>

#include "base/clock.h"
#include "base/crew.h"
#include "support/workers.h"

#define THREADS 12
#define ROUNDS 300
#define MOST 4 /* in one round beside the leader */

struct work {
    struct lk_crew_member member; /* the first */
    unsigned kind;
    unsigned done;
};

static struct lk_crew crew;
static atomic_uint leaders;
static atomic_uint most_leaders;
static atomic_uint done;
static atomic_uint left;

static bool is_of_kind(const struct lk_crew_member *leader,
                       const struct lk_crew_member *other)
{
    return ((const struct work *)leader)->kind ==
           ((const struct work *)other)->kind;
}

/* Do the work of all that go with it.  Return whether all are of its kind. */
static bool lead(struct work *own)
{
    unsigned now = atomic_fetch_add(&leaders, 1) + 1;
    bool are_alike = true;

    if (now > atomic_load(&most_leaders))
        atomic_store(&most_leaders, now);
    (void)sched_yield(); /* let others gather */
    are_alike = lk_crew_gather(&crew, &own->member, MOST, is_of_kind) <= MOST;
    for (struct lk_crew_member *at = &own->member; at != NULL; at = at->next) {
        struct work *work = (struct work *)at;

        are_alike = are_alike && work->kind == own->kind;
        work->done++;
        atomic_fetch_add(&done, 1);
    }
    atomic_fetch_sub(&leaders, 1);
    lk_crew_pass_on(&crew);
    lk_crew_dismiss(&own->member);
    return are_alike;
}

/* Join with two kinds of work, now and then with hardly any time. */
static int run(struct worker *worker)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct work work = {.kind = (worker->index + i) % 2};
        int64_t until_ns = i % 7 == 0 ? sqlock_monotonic_ns() + 1000 : LK_NEVER;
        bool has_waited;
        enum lk_crew_state state = lk_crew_join(&crew, &work.member, until_ns,
                                                50 * LK_NS_PER_US, &has_waited);

        if (state == LK_CREW_LEADS && !lead(&work))
            return worker_fail(worker, "others were gathered");
        lk_crew_leave(&crew, &work.member);
        if (state == LK_CREW_WAITS || (state == LK_CREW_DONE && !has_waited))
            return worker_fail(worker, "it did not wait");
        if (work.done != (state == LK_CREW_LEFT ? 0 : 1))
            return worker_fail(worker, "done %u times in state %d", work.done,
                               (int)state);
        atomic_fetch_add(&left, state == LK_CREW_LEFT);
    }
    return 0;
}

static void work_in(uint32_t places, uint32_t crowd)
{
    struct workers workers;

    atomic_store(&most_leaders, 0);
    atomic_store(&done, 0);
    atomic_store(&left, 0);
    lk_crew_init(&crew, places, crowd);
    workers_start(&workers, THREADS, run, NULL);
    workers_join(&workers);
    assert_int_equal(atomic_load(&done) + atomic_load(&left), THREADS * ROUNDS);
    assert_in_range(atomic_load(&most_leaders), 1, places);
    assert_null(crew.first);
    assert_null(crew.last);
    assert_int_equal(crew.leaders, 0);
    assert_int_equal(crew.members, 0);
    lk_crew_clear(&crew);
}

TEST(test_each_work_is_done_once)
{
    work_in(1, 0);
    work_in(1, 1);
    work_in(4, 0);
    work_in(4, 4);
    work_in(4, 2);
}

/* A member that comes during a round is in the next one. */
TEST(test_rounds_are_counted_from_the_one_it_came_in)
{
    struct work works[3];
    bool has_waited;

    lk_crew_init(&crew, 1, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            lk_crew_join(&crew, &works[i].member, 0, 0, &has_waited),
            i == 1 ? LK_CREW_LEFT : LK_CREW_LEADS);
        assert_int_equal(has_waited, i == 1);
        assert_int_equal(works[i].member.came_in, i / 2);
        if (i == 1)
            lk_crew_pass_on(&crew);
        if (i > 0)
            lk_crew_leave(&crew, &works[i].member);
    }
    assert_int_equal(crew.rounds, 2);
    lk_crew_pass_on(&crew);
    lk_crew_leave(&crew, &works[0].member);
    lk_crew_clear(&crew);
}

/* In a crowd a place stays free until somebody has waited for long enough: so
 * leaders that hang stop nobody. */
TEST(test_a_crowd_leaves_places_to_the_impatient)
{
    struct work works[4];
    bool has_waited;

    lk_crew_init(&crew, 3, 2);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(lk_crew_join(&crew, &works[i].member,
                                      i == 2 ? 0 : LK_NEVER, 1, &has_waited),
                         i == 2 ? LK_CREW_LEFT : LK_CREW_LEADS);
        assert_int_equal(has_waited, i >= 2);
        if (i == 2)
            lk_crew_leave(&crew, &works[i].member);
    }
    assert_int_equal(crew.leaders, 3);
    for (size_t i = 0; i < 4; i++)
        if (i != 2) {
            lk_crew_pass_on(&crew);
            lk_crew_leave(&crew, &works[i].member);
        }
    assert_int_equal(crew.leaders, 0);
    lk_crew_clear(&crew);
}
