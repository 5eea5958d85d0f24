/*
 * test_handoff.c - hand-offs from thread to thread of one registry, in one
 * statement
 */
#include "suite.h"

#include <string.h>

#include "locks/registry.h"
#include "support/tap.h"

struct stage {
    sqlock_registry *tapped;
    sqlock_lock *lock;
    struct contender next;
};

/* Acquire the lock in this thread, and have another thread wait for it in the
 * FIFO.  Calls are counted from here on. */
static void open_stage(struct stage *stage, struct fixture *f, uint32_t ttl_ms)
{
    memset(stage, 0, sizeof *stage);
    stage->tapped = fixture_tapped(f, NULL);
    stage->lock = lock_obtain(stage->tapped, f->name);
    lock_take(stage->lock, ttl_ms);
    contender_queue(&stage->next, stage->lock, SQLOCK_FOREVER);
    tap_reset();
}

static void close_stage(struct stage *stage)
{
    lock_drop(stage->lock);
    registry_end(stage->tapped);
}

static void test_a_handoff_is_one_statement(void **state)
{
    struct fixture *f = *state;
    struct stage stage;
    struct row before;
    struct row after;
    int64_t token;

    open_stage(&stage, f, 0);
    before = fixture_row(f, f->name);
    token = sqlock_token(stage.lock);
    assert_ok(sqlock_release(stage.lock, &f->err));
    contender_await(&stage.next);
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    after = fixture_row(f, f->name);
    assert_true(after.exists);
    assert_string_not_equal(after.client, "");
    assert_string_not_equal(after.client, before.client);
    assert_less(before.fence - 1, after.fence);
    if (f->layout != SQLOCK_LAYOUT_SPRING6)
        assert_less(token, stage.next.token);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_int_equal(after.fence, stage.next.token);
    assert_less(0, stage.next.remaining_ms);
    assert_false(sqlock_is_held(stage.lock)); /* not by this thread */
    contender_end(&stage.next, 0);
    close_stage(&stage);
}

static void test_handoffs_in_a_row_have_a_limit(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct contender queue[4];
    sqlock_registry *tapped;
    sqlock_lock *lock;

    options.handoff_limit = 2;
    tapped = fixture_tapped(f, &options);
    lock = lock_obtain(tapped, f->name);
    memset(queue, 0, sizeof queue);
    lock_take(lock, 0);
    for (size_t i = 0; i < 4; i++)
        contender_queue(&queue[i], lock, SQLOCK_FOREVER);
    tap_reset();
    lock_give(lock);
    contender_finish(&queue[0]);
    contender_await(&queue[1]);
    assert_int_equal(tap_count(TAP_EXECUTE), 2);
    tap_reset();
    contender_end(&queue[1], 0);
    contender_await(&queue[2]);
    assert_true(tap_count(TAP_EXECUTE) >= 2); /* a release and a claim */
    tap_reset();
    contender_end(&queue[2], 0);
    contender_await(&queue[3]);
    assert_int_equal(tap_count(TAP_EXECUTE), 1);
    contender_end(&queue[3], 0);
    lock_drop(lock);
    registry_end(tapped);
}

static int reach_nothing(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE ? SQLOCK_EUNREACHABLE : 0;
}

/* In an outage a hand-off returns the code of the outage, by which a release of
 * many locks knows that it is to hand off no other lease: each hand-off would
 * wait for the database until its deadline. */
static void test_a_handoff_that_reached_nothing_is_an_outage(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct lk_lease next = {.ttl_ms = 1000};
    struct lk_entry *entry;
    sqlock_lock *lock;

    options.statement_timeout_ms = 500;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    entry = lock->entry;
    next.key = entry->key;
    tap_hooks(reach_nothing, NULL, NULL);
    assert_int_equal(lk_lease_hand_off(entry->store, &entry->lease, &next),
                     SQLOCK_EUNREACHABLE);
    tap_reset();
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_a_handoff_is_one_statement, ON_ALL, IN_ALL),
    TEST(test_handoffs_in_a_row_have_a_limit),
    TEST_ON(test_a_handoff_that_reached_nothing_is_an_outage, ON_ALL, IN_ALL),
};

const struct topic topic_handoff = TOPIC(tests);
