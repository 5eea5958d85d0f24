/*
 * statements.c - what is sent to the database: one statement for an acquire,
 * one for a release, none for a nested acquire; and the outcome of a statement
 * whose answer is lost
 *
 * Statements are counted at the driver, by the tap (tap.h).
 */
#include "conformance.h"

#include <string.h>

#include "support/tap.h"

static void expect_sent(uint64_t expected)
{
    if (tap_sent() != expected) {
        tap_print();
        fail_msg("%llu statements were sent, not %llu",
                 (unsigned long long)tap_sent(), (unsigned long long)expected);
    }
}

/* Open a registry through the tap, and use a lock once, so that the connection
 * is open and its statements are prepared.  Reset the counts. */
static sqlock_registry *warm(struct fixture *f)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, "warm");

    lock_take_and_give(lock);
    lock_drop(lock);
    tap_reset();
    return registry;
}

static void test_one_statement_each_and_none_nested(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int round;

    for (round = 0; round < 3; round++) {
        tap_reset();
        lock_take(lock, 0);
        expect_sent(1);
        lock_take(lock, 0);
        (void)sqlock_is_held(lock);
        (void)sqlock_remaining_ms(lock);
        (void)sqlock_hold_count(lock);
        (void)sqlock_token(lock);
        lock_give(lock);
        expect_sent(1);
        lock_renew(lock, 0);
        expect_sent(2);
        lock_give(lock);
        expect_sent(3);
        assert_int_equal(tap_count(TAP_BEGIN), 0);
        assert_int_equal(tap_count(TAP_COMMIT), 0);
    }
    assert_int_equal(tap_count(TAP_OPEN), 0);
    registry_end(registry);
}

/* A connection that has prepared no statement yet needs no more. */
static void test_one_statement_each_on_a_fresh_registry(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    expect_sent(0);
    lock_take(lock, 0);
    expect_sent(1);
    lock_give(lock);
    expect_sent(2);
    registry_end(registry);
    expect_sent(2);
}

static void test_a_busy_try_costs_two_statements_at_most(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *theirs = lock_obtain(f->a, f->name);

    lock_take(theirs, 0);
    assert_busy(lock);
    assert_in_range(tap_sent(), 1, 2);
    lock_give(theirs);
    lock_drop(theirs);
    registry_end(registry);
}

/* Let the lease of `theirs` expire, and take it over with `lock`: one
 * statement. */
static void check_takeover(struct fixture *f, sqlock_lock *lock,
                           sqlock_lock *theirs)
{
    lock_take(theirs, 100);
    fixture_await_expiry(f, f->name);
    tap_reset();
    lock_take(lock, 0);
    expect_sent(1);
    lock_give(lock);
    assert_fails(SQLOCK_ELOST, sqlock_release(theirs, &f->err));
}

static void test_taking_over_costs_one_statement(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *theirs = lock_obtain(f->a, f->name);

    check_takeover(f, lock_obtain(registry, f->name), theirs);
    lock_drop(theirs);
    registry_end(registry);
}

/* A row that this process left free may be held by another owner, or be
 * deleted. */
static void test_a_row_left_free_is_not_taken_for_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *theirs = lock_obtain(f->a, f->name);
    int64_t token;

    lock_take_and_give(lock);
    lock_take(theirs, 0);
    token = sqlock_token(theirs);
    tap_reset();
    assert_busy(lock);
    assert_in_range(tap_sent(), 1, 2);
    assert_true(sqlock_is_held(theirs));
    lock_give(theirs);
    lock_take(lock, 0);
    assert_true(sqlock_token(lock) > token);
    lock_give(lock);
    check_takeover(f, lock, theirs);
    /* On Spring's layouts the release has deleted the row already. */
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE LOCK_KEY = '%s'", f->table,
                  sqlock_key(lock));
    tap_reset();
    lock_take(lock, 0);
    assert_in_range(tap_sent(), 1, 2);
    assert_true(fixture_row(f, f->name).exists);
    lock_give(lock);
    lock_drop(theirs);
    registry_end(registry);
}

/* --- answers that are lost --- */

struct loss {
    uint64_t until; /* statements up to this number lose their answer */
    /* parameters of the first three that have the length of a CLIENT_ID and are
     * not the key */
    char client[3][SQLOCK_KEY_SIZE];
};

static void note_client(struct loss *loss, const struct tap_event *event,
                        const char *key)
{
    size_t i;

    if (event->number > 3)
        return;
    for (i = 0; i < event->count; i++) {
        const sqlock_value *value = &event->parameters[i];

        if (value->type == SQLOCK_TEXT && value->length == 36 &&
            strcmp(value->text, key) != 0)
            memcpy(loss->client[event->number - 1], value->text,
                   SQLOCK_KEY_SIZE);
    }
}

static char current_key[SQLOCK_KEY_SIZE];

static int lose_answer(void *context, const struct tap_event *event, int rc)
{
    struct loss *loss = context;

    if (event->call != TAP_EXECUTE)
        return rc;
    note_client(loss, event, current_key);
    return rc == 0 && event->number <= loss->until ? SQLOCK_EUNCERTAIN : rc;
}

static void lose(struct loss *loss, const sqlock_lock *lock, uint64_t until)
{
    memset(loss, 0, sizeof *loss);
    loss->until = until;
    memcpy(current_key, sqlock_key(lock), sizeof current_key);
    tap_reset();
    tap_hooks(NULL, lose_answer, loss);
}

/* A claim takes effect, and its answer is lost.  It is sent again with the same
 * CLIENT_ID, and is granted the row that has this CLIENT_ID already. */
static void check_claim_sent_again(struct fixture *f, sqlock_lock *lock)
{
    sqlock_lock *other = lock_obtain(f->a, f->name);
    struct loss loss;

    lose(&loss, lock, 1);
    lock_take(lock, 0);
    expect_sent(2);
    assert_string_equal(loss.client[0], loss.client[1]);
    assert_string_equal(fixture_row(f, f->name).client, loss.client[0]);
    assert_true(sqlock_is_held(lock));
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_true(fixture_row(f, f->name).fence == sqlock_token(lock));
    tap_reset();
    assert_busy(other);
    lock_drop(other);
}

static void test_a_claim_without_an_answer_is_sent_again(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    check_claim_sent_again(f, lock);
    lock_give(lock);
    registry_end(registry);
}

/* The outcome is the same where this process has left the row free. */
static void test_a_taken_row_without_an_answer_is_claimed_again(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    lock_give(lock);
    check_claim_sent_again(f, lock);
    assert_true(sqlock_token(lock) > token);
    lock_give(lock);
    registry_end(registry);
}

static void test_a_claim_that_stays_unknown_is_uncertain(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *other = lock_obtain(f->a, f->name);
    struct loss loss;

    /* A call in vain lasts so long; statements that are sent need some time. */
    options.statement_timeout_ms = 2500;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    lose(&loss, lock, UINT64_MAX);
    assert_fails(SQLOCK_EUNCERTAIN, lock_try(lock, 0, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    assert_int_equal(sqlock_hold_count(lock), 0);
    tap_reset();
    /* the claim has its row, which is freed in the background */
    assert_ok(lock_try(other, PATIENCE_MS, 0, &f->err));
    lock_give(other);
    lock_take_and_give(lock);
    lock_drop(other);
    registry_end(registry);
}

static void test_a_release_without_an_answer_is_found_out(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->a, f->name);
    struct loss loss;

    lock_take(lock, 0);
    lose(&loss, lock, 1);
    lock_give(lock);
    tap_reset();
    lock_take_and_give(other);
    lock_drop(other);
    registry_end(registry);
}

static void test_a_renewal_without_an_answer_is_sent_again(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = warm(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct loss loss;

    lock_take(lock, 5000);
    lose(&loss, lock, 1);
    lock_renew(lock, LONG_TTL_MS);
    assert_true(sqlock_remaining_ms(lock) > 5000);
    tap_reset();
    lock_give(lock);
    registry_end(registry);
}

static int never_sent(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE || event->call == TAP_BEGIN ||
                   event->call == TAP_OPEN
               ? SQLOCK_EUNREACHABLE
               : 0;
}

/* Open a registry in which a call in vain lasts so long; statements that are
 * sent need some time. */
static sqlock_registry *open_brief(struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    options.statement_timeout_ms = 2500;
    return fixture_tapped(f, &options);
}

/* Neither a connection nor a statement gets through.  Since nothing was sent,
 * the code is EUNREACHABLE, not EUNCERTAIN. */
static void test_a_database_out_of_reach_is_unreachable(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = open_brief(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    tap_hooks(never_sent, NULL, NULL);
    assert_fails(SQLOCK_EUNREACHABLE, lock_try(lock, 0, 0, &f->err));
    assert_fails(SQLOCK_EUNREACHABLE, lock_try(lock, 50, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    tap_reset();
    assert_false(fixture_row(f, f->name).exists);
    registry_end(registry);
}

static void test_a_holder_out_of_reach_has_its_old_deadline(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = open_brief(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t left;

    lock_take(lock, 0);
    left = sqlock_remaining_ms(lock);
    tap_hooks(never_sent, NULL, NULL);
    assert_fails(SQLOCK_EUNREACHABLE, sqlock_renew(lock, 0, &f->err));
    assert_true(sqlock_is_held(lock));
    assert_true(sqlock_remaining_ms(lock) <= left);
    assert_fails(SQLOCK_EUNREACHABLE, sqlock_release(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);
    tap_reset();
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_one_statement_each_and_none_nested),
    TEST(test_one_statement_each_on_a_fresh_registry),
    TEST(test_a_busy_try_costs_two_statements_at_most),
    TEST(test_taking_over_costs_one_statement),
    TEST(test_a_row_left_free_is_not_taken_for_granted),
    TEST(test_a_claim_without_an_answer_is_sent_again),
    TEST(test_a_taken_row_without_an_answer_is_claimed_again),
    TEST(test_a_claim_that_stays_unknown_is_uncertain),
    TEST(test_a_release_without_an_answer_is_found_out),
    TEST(test_a_renewal_without_an_answer_is_sent_again),
    TEST(test_a_database_out_of_reach_is_unreachable),
    TEST(test_a_holder_out_of_reach_has_its_old_deadline),
};
const struct topic topic_statements = TOPIC(tests);
