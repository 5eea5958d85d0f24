/*
 * test_handoff.c - hand-offs from thread to thread of one registry, in one
 * statement
 */
#include "suite.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

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

/* Check that the next thread gets the lock and releases it; then close the
 * stage. */
static void finish_stage(struct stage *stage)
{
    contender_finish(&stage->next);
    close_stage(stage);
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

/* Another client takes the row while the holder has a waiter in its process:
 * the release reports the loss and hands nothing off, and the waiter gets the
 * lock when the row is free. */
static void test_a_lost_lease_is_not_handed_over(void **state)
{
    struct fixture *f = *state;
    struct stage stage;

    open_stage(&stage, f, 0);
    sql_run(&f->sql,
            "UPDATE %s SET CLIENT_ID = '00000000-0000-4000-8000-000000000001' "
            "WHERE CLIENT_ID IS NOT NULL",
            f->table);
    assert_fails(SQLOCK_ELOST, sqlock_release(stage.lock, &f->err));
    sql_run(&f->sql, "DELETE FROM %s", f->table); /* that client is done */
    finish_stage(&stage);
}

static void test_a_lease_that_is_over_is_not_handed_over(void **state)
{
    struct fixture *f = *state;
    struct stage stage;
    int rc;

    open_stage(&stage, f, 100);
    assert_becomes_true(!sqlock_is_held(stage.lock), PATIENCE_MS);
    rc = sqlock_release(stage.lock, &f->err); /* ELOST: the waiter has it */
    assert_code_of(SQLOCK_EEXPIRED, SQLOCK_ELOST, rc, &f->err);
    finish_stage(&stage);
}

static int lose_first_answer(void *context, const struct tap_event *event,
                             int rc)
{
    (void)context;
    return event->call == TAP_EXECUTE && event->number == 1 ? SQLOCK_EUNCERTAIN
                                                            : rc;
}

/* The hand-off is carried out, but its answer is lost.  The same statement
 * changes nothing when it is sent again; the row then shows that the waiter has
 * the lease. */
static void test_F38_a_handoff_without_answer_is_found_out(void **state)
{
    struct fixture *f = *state;
    struct stage stage;
    struct row row;

    open_stage(&stage, f, 0);
    tap_hooks(NULL, lose_first_answer, NULL);
    assert_ok(sqlock_release(stage.lock, &f->err));
    contender_await(&stage.next);
    row = fixture_row(f, f->name);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_int_equal(row.fence, stage.next.token);
    assert_less(0, stage.next.token);
    tap_hooks(NULL, NULL, NULL);
    contender_end(&stage.next, 0);
    row = fixture_row(f, f->name);
    assert_true(!row.exists || row.client[0] == '\0');
    close_stage(&stage);
}

static int refuse_first(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && event->number == 1
               ? SQLOCK_EUNREACHABLE
               : 0;
}

static void test_F38_a_handoff_that_was_not_sent_is_sent_again(void **state)
{
    struct fixture *f = *state;
    struct stage stage;

    open_stage(&stage, f, 0);
    tap_hooks(refuse_first, NULL, NULL);
    assert_ok(sqlock_release(stage.lock, &f->err));
    finish_stage(&stage);
}

static int never_answer_handoff(void *context, const struct tap_event *event,
                                int rc)
{
    const char *client = context;

    if (event->call == TAP_EXECUTE && event->count > 4)
        for (size_t i = 0; i < event->count; i++)
            if (event->parameters[i].type == SQLOCK_TEXT &&
                strcmp(event->parameters[i].text, client) == 0)
                return SQLOCK_EUNCERTAIN;
    return rc;
}

/* All answers to the hand-off are lost, while the statement is carried out.
 * The release returns 0 if it finds out by the row that the waiter has the
 * lease, or else EUNCERTAIN; the waiter gets the lock in both cases. */
static void test_F38_a_handoff_never_answered_strands_nobody(void **state)
{
    struct fixture *f = *state;
    struct stage stage;
    struct row row;
    int rc;

    open_stage(&stage, f, 0);
    row = fixture_row(f, f->name);
    tap_hooks(NULL, never_answer_handoff, row.client);
    rc = sqlock_release(stage.lock, &f->err);
    assert_code_of(0, SQLOCK_EUNCERTAIN, rc, &f->err);
    contender_await(&stage.next);
    tap_hooks(NULL, NULL, NULL);
    contender_end(&stage.next, 0);
    close_stage(&stage);
}

static atomic_int told;

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    (void)context;
    (void)lock;
    told = code;
}

/* The waiter gets the options it asked for: its TTL, renewal, on_lost. */
static void test_a_handoff_is_on_the_next_ones_terms(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct contender next = {.options = &options};
    struct row row;

    options.ttl_ms = 4000;
    options.auto_renew = true;
    options.on_lost = on_lost;
    told = 0;
    lock_take(lock, 0);
    contender_queue(&next, lock, SQLOCK_FOREVER);
    lock_give(lock);
    contender_await(&next);
    assert_less(next.remaining_ms, 4001);
    row = fixture_row(f, f->name);
    assert_becomes_true(fixture_row(f, f->name).expires_us > row.expires_us,
                        PATIENCE_MS); /* renewed */
    sql_run(&f->sql, "DELETE FROM %s", f->table);
    assert_becomes_true(told == SQLOCK_ELOST, PATIENCE_MS);
    contender_end(&next, SQLOCK_ELOST);
    lock_drop(lock);
}

static void test_owned_by_the_registry_a_waiter_of_the_turn_counts(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct contender next = {0};

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    contender_start(&next, lock, SQLOCK_FOREVER); /* nests: the same owner */
    contender_await(&next);
    assert_int_equal(sqlock_hold_count(lock), 2);
    lock_give(lock);
    contender_end(&next, 0);
    assert_int_equal(sqlock_hold_count(lock), 0);
    lock_drop(lock);
    registry_end(registry);
}

#define QUEUE_FIRST 6

static void test_a_crowd_of_threads_is_served_one_by_one(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct turns turns = {.each = check_scale(60, 2000)};
    struct party parties[QUEUE_FIRST];
    struct workers workers;

    for (size_t i = 0; i < QUEUE_FIRST; i++)
        parties[i] = (struct party){.lock = lock, .turns = &turns};
    workers_start(&workers, QUEUE_FIRST, take_turns, parties);
    workers_join(&workers);
    assert_int_equal(atomic_load(&turns.taken), QUEUE_FIRST * turns.each);
    lock_drop(lock);
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
    TEST_ON(test_a_lost_lease_is_not_handed_over, ON_ALL, IN_ALL),
    TEST(test_a_lease_that_is_over_is_not_handed_over),
    TEST_ON(test_F38_a_handoff_without_answer_is_found_out, ON_SERVERS, IN_ALL),
    TEST_ON(test_F38_a_handoff_that_was_not_sent_is_sent_again, ON_ALL,
            IN_SQLOCK),
    TEST_ON(test_F38_a_handoff_never_answered_strands_nobody, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_a_handoff_is_on_the_next_ones_terms),
    TEST(test_owned_by_the_registry_a_waiter_of_the_turn_counts),
    TEST(test_a_crowd_of_threads_is_served_one_by_one),
    TEST_ON(test_a_handoff_that_reached_nothing_is_an_outage, ON_ALL, IN_ALL),
};

const struct topic topic_handoff = TOPIC(tests);
