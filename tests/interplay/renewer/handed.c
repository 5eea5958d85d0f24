/*
 * handed.c - a hand-off whose answer is lost: the next thread's lease counts
 * from when the hand-off was first sent, and is given back if it is over when
 * the answer comes
 */
#include "renewer.h"

#include "base/clock.h"
#include "locks/registry.h"
#include "support/tap.h"
#include "support/workers.h"

#define STEP_MS (1000 * SLOWNESS)

/* Context of the hooks: the answer to the first hand-off statement is lost, and
 * the second is sent after a pause. */
struct lost_answer {
    const char *hand_off;
    uint32_t pause_ms;
    atomic_uint sends;
    _Atomic int64_t first_sent_ns;
};

static int delay_second(void *context, const struct tap_event *event)
{
    struct lost_answer *lost = context;
    unsigned number;

    if (event->text != lost->hand_off)
        return 0;
    number = atomic_fetch_add(&lost->sends, 1) + 1;
    if (number == 1)
        atomic_store(&lost->first_sent_ns, lk_boottime_ns());
    if (number == 2)
        for (int64_t until = check_deadline_ns(lost->pause_ms);
             check_pause(until);)
            ;
    return 0;
}

static int lose_first(void *context, const struct tap_event *event, int rc)
{
    struct lost_answer *lost = context;

    return rc == 0 && event->text == lost->hand_off &&
                   atomic_load(&lost->sends) == 1
               ? SQLOCK_EUNCERTAIN
               : rc;
}

/* The thread that the lock is handed off to. */
struct successor {
    sqlock_lock *lock;
    int64_t deadline_ns;   /* of the lease that it gets */
    int64_t renewed_ns;    /* deadline after a renewal for 2 * LONG_TTL_MS */
    int64_t renewed_at_ns; /* when that renewal had returned */
};

static int succeed(struct worker *worker)
{
    struct successor *self = worker->context;

    worker_expect(worker, 0,
                  lock_try(self->lock, PATIENCE_MS, 0, &worker->err));
    self->deadline_ns = lock_deadline(self->lock);
    worker_expect(worker, 0,
                  sqlock_renew(self->lock, 2 * LONG_TTL_MS, &worker->err));
    self->renewed_ns = lock_deadline(self->lock);
    self->renewed_at_ns = lk_boottime_ns();
    worker_expect(worker, 0, sqlock_release(self->lock, &worker->err));
    return 0;
}

/* Open a registry with that margin, and hand its lock off to a thread that
 * waits, under the hooks above. */
static void hand_off(struct fixture *f, struct lost_answer *lost,
                     struct successor *next, uint32_t margin_ms)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct worker worker;
    sqlock_lock *lock;

    options.ttl_ms = LONG_TTL_MS;
    options.margin_ms = margin_ms;
    options.statement_timeout_ms = PATIENCE_MS;
    registry = fixture_tapped(f, &options);
    lost->hand_off = census_text(registry, SQLOCK_SQL_HAND_OFF);
    tap_hooks(delay_second, lose_first, lost);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    next->lock = lock_obtain(registry, f->name);
    worker_start(&worker, succeed, next);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    lock_give(lock);
    worker_join(&worker);
    assert_true(atomic_load(&lost->sends) >= 2);
    tap_hooks(NULL, NULL, NULL);
    lock_drop(next->lock);
    lock_drop(lock);
    registry_end(registry);
}

/* The lease counts from the first statement, because that may be the one that
 * was carried out.  A statement without an answer may still be carried out
 * after a renewal, so no renewal lasts longer than the hand-off's TTL. */
static void test_a_lost_hand_off_counts_from_its_first_statement(void **state)
{
    struct lost_answer lost = {.pause_ms = STEP_MS};
    struct successor next = {.lock = NULL};

    hand_off(*state, &lost, &next, STEP_MS / 10);
    assert_int_equal(atomic_load(&lost.sends), 2);
    assert_true(next.deadline_ns <=
                atomic_load(&lost.first_sent_ns) + LONG_TTL_MS * LK_NS_PER_MS);
    assert_true(next.renewed_ns <=
                next.renewed_at_ns + LONG_TTL_MS * LK_NS_PER_MS);
}

/* The margin leaves the new lease STEP_MS, but the answer comes later.  So the
 * lease is given back, and the next thread claims the lock; otherwise the row
 * would stay taken for LONG_TTL_MS, longer than the next thread waits. */
static void
test_a_hand_off_that_is_over_when_answered_is_given_back(void **state)
{
    struct lost_answer lost = {.pause_ms = STEP_MS + STEP_MS / 10};
    struct successor next = {.lock = NULL};

    hand_off(*state, &lost, &next, LONG_TTL_MS - STEP_MS);
}

static const struct test tests[] = {
    TEST_ON(test_a_lost_hand_off_counts_from_its_first_statement, ON_ALL,
            IN_ALL),
    TEST_ON(test_a_hand_off_that_is_over_when_answered_is_given_back, ON_ALL,
            IN_ALL),
};
const struct topic topic_handed = TOPIC(tests);
