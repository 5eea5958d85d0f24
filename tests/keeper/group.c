/*
 * group.c - the writes of a process to a file that has one writer: those that
 * gather behind one are committed together, and nobody waits for the file on
 * behalf of the others
 */
#include "keeper.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/tap.h"
#include "support/workers.h"

#define CROWD 8
#define TAKEN 3 /* the number of the lock that somebody else has */
/* A statement that waits for the file gives up after a second. */
#define PATIENT_NS (900 * LK_NS_PER_MS)

struct gathering {
    struct fixture *f;
    struct workers workers;
    sqlock_lock *locks[CROWD];
    int results[CROWD];
    int64_t tokens[CROWD];
    atomic_uint begun;  /* statements */
    bool takes_file;    /* once the first one is done */
    atomic_bool may_go; /* the second one */
    int64_t began_ns;   /* the transaction for it, */
    int64_t gave_up_ns; /* which came to nothing */
    atomic_int first;   /* the threads that ran them */
    atomic_int second;
};

static unsigned parked(const struct gathering *g)
{
    unsigned count = 0;

    for (unsigned i = 0; i < g->workers.count; i++)
        count += worker_is_parked(&g->workers.one[i]) ? 1 : 0;
    return count;
}

/* The first statement is held up until all others have queued up behind it. */
static int hold_up(void *context, const struct tap_event *event)
{
    struct gathering *g = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->call == TAP_BEGIN)
        g->began_ns = sqlock_monotonic_ns();
    if (event->call != TAP_EXECUTE)
        return 0;
    switch (atomic_fetch_add(&g->begun, 1)) {
    case 0:
        atomic_store(&g->first, gettid());
        while (parked(g) + 1 < g->workers.count && check_pause(until))
            ;
        break;
    case 1:
        atomic_store(&g->second, gettid());
        while (g->takes_file && !atomic_load(&g->may_go) && check_pause(until))
            ;
        break;
    default:
        break;
    }
    return 0;
}

static int take_file(void *context, const struct tap_event *event, int rc)
{
    struct gathering *g = context;

    if (event->call == TAP_BEGIN)
        g->gave_up_ns = sqlock_monotonic_ns();
    if (g->takes_file && event->call == TAP_EXECUTE &&
        atomic_load(&g->begun) == 1)
        (void)sql_begin(&g->f->sql);
    return rc;
}

static int take_own(struct worker *worker)
{
    struct gathering *g = worker->context;

    g->results[worker->index] =
        lock_try(g->locks[worker->index], 0, 0, &worker->err);
    g->tokens[worker->index] = sqlock_token(g->locks[worker->index]);
    return 0;
}

static sqlock_registry *gather(struct gathering *g, struct fixture *f,
                               unsigned count, bool takes_file)
{
    sqlock_options options = keeper_options(f);
    sqlock_registry *tapped = fixture_tapped(f, &options);

    memset(g, 0, sizeof *g);
    g->f = f;
    g->takes_file = takes_file;
    for (size_t i = 0; i < count; i++)
        g->locks[i] = keep_lock(f, tapped, i);
    tap_reset();
    tap_hooks(hold_up, take_file, g);
    workers_start(&g->workers, count, take_own, g);
    return tapped;
}

static void test_writes_that_gather_are_committed_together(void **state)
{
    struct fixture *f = *state;
    struct gathering g;
    char name[96];
    sqlock_lock *other = lock_obtain(f->b, keep_name(f, name, TAKEN));
    sqlock_registry *tapped;

    lock_take(other, 0);
    tapped = gather(&g, f, CROWD, false);
    workers_join(&g.workers);
    /* One alone, all the others in one transaction. */
    assert_int_equal(tap_count(TAP_BEGIN), 1);
    assert_int_equal(tap_count(TAP_COMMIT), 1);
    assert_int_equal(tap_count(TAP_ROLLBACK), 0);
    /* Each has an outcome of its own. */
    for (unsigned i = 0; i < CROWD; i++) {
        assert_int_equal(g.results[i], i == TAKEN ? SQLOCK_EBUSY : 0);
        assert_true(fixture_row(f, keep_name(f, name, i)).fence ==
                    (i == TAKEN ? sqlock_token(other) : g.tokens[i]));
    }
    tap_reset();
    lock_give(other);
    lock_drop(other);
    registry_end(tapped);
}

/* The one whose statement is done is not held up by what keeps the file from
 * the next: that one waits for itself. */
static void test_nobody_waits_for_the_file_for_another(void **state)
{
    struct fixture *f = *state;
    struct gathering g;
    sqlock_registry *tapped = gather(&g, f, 2, true);

    assert_becomes_true(atomic_load(&g.second) != 0, PATIENCE_MS);
    assert_true(atomic_load(&g.second) != atomic_load(&g.first));
    assert_less(g.gave_up_ns - g.began_ns, PATIENT_NS);
    assert_int_equal(sql_rollback(&f->sql), 0);
    atomic_store(&g.may_go, true);
    workers_join(&g.workers);
    assert_int_equal(g.results[0], 0);
    assert_int_equal(g.results[1], 0);
    assert_int_equal(tap_count(TAP_COMMIT), 0);
    tap_reset();
    registry_end(tapped);
}

static const struct test tests[] = {
    TEST_ON(test_writes_that_gather_are_committed_together, ON_SQLITE,
            IN_SQLOCK),
    TEST_ON(test_nobody_waits_for_the_file_for_another, ON_SQLITE, IN_SQLOCK),
};
const struct topic topic_group = TOPIC(tests);
