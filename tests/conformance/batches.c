/*
 * batches.c - more locks in one call than have time in one statement are sent
 * in parts
 *
 * The tap stands for a database that is slow: it ends a statement as the
 * server's time limit does, and the real limit is far away, so nothing depends
 * on how fast the machine is.
 */
#include "conformance.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lease/batch.h"
#include "sqlock/many.h"
#include "support/tap.h"

/* Three parts, of which the last is smaller. */
#define COUNT (2 * LK_BATCH_MAX + LK_BATCH_MAX / 2)
#define LAST_PART (COUNT - 2 * LK_BATCH_MAX)

struct crowd {
    sqlock_registry *registry;
    sqlock_lock *locks[COUNT];
    int results[COUNT];
};

static void crowd_open(struct crowd *crowd, struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    char name[96];

    options.statement_timeout_ms = PATIENCE_MS;
    crowd->registry = fixture_tapped(f, &options);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "%s-%zu", f->name, i);
        crowd->locks[i] = lock_obtain(crowd->registry, name);
        crowd->results[i] = 1;
    }
}

static void crowd_close(struct crowd *crowd)
{
    tap_reset();
    for (size_t i = 0; i < COUNT; i++)
        lock_drop(crowd->locks[i]);
    registry_end(crowd->registry);
}

static size_t count_of(const struct crowd *crowd, int rc)
{
    size_t count = 0;

    for (size_t i = 0; i < COUNT; i++)
        count += crowd->results[i] == rc;
    return count;
}

static size_t count_held(const struct crowd *crowd)
{
    size_t count = 0;

    for (size_t i = 0; i < COUNT; i++)
        count += sqlock_is_held(crowd->locks[i]);
    return count;
}

static bool is_claim(const struct tap_event *event)
{
    return event->call == TAP_EXECUTE && tap_leases(event) > 1 &&
           strncmp(event->text, "INSERT", 6) == 0;
}

/* --- too large --- */

/* The database has no time for more than a thousand leases in a statement. */
static int end_the_large(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && tap_leases(event) > LK_BATCH_MAX
               ? SQLOCK_ECANCELED
               : 0;
}

static void test_what_is_too_large_for_a_statement_is_cut(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;

    crowd_open(&crowd, f);
    tap_hooks(end_the_large, NULL, NULL);
    assert_ok(sqlock_acquire_many(crowd.locks, COUNT, 0, NULL, crowd.results,
                                  &f->err));
    assert_int_equal(count_of(&crowd, 0), COUNT);
    assert_int_equal(count_held(&crowd), COUNT);
    assert_ok(sqlock_renew_many(crowd.locks, COUNT, crowd.results, &f->err));
    assert_int_equal(count_of(&crowd, 0), COUNT);
    assert_ok(sqlock_release_many(crowd.locks, COUNT, crowd.results, &f->err));
    assert_int_equal(count_of(&crowd, 0), COUNT);
    assert_true(fixture_is_free(f, sqlock_name(crowd.locks[0])));
    assert_true(fixture_is_free(f, sqlock_name(crowd.locks[COUNT - 1])));
    crowd_close(&crowd);
}

/* Return the lock whose key is the last, or with a sign of -1 the first. */
static sqlock_lock *at_end(const struct crowd *crowd, int sign)
{
    sqlock_lock *end = crowd->locks[0];

    for (size_t i = 1; i < COUNT; i++) {
        int order = strcmp(sqlock_key(crowd->locks[i]), sqlock_key(end));

        if ((sign > 0 && order > 0) || (sign < 0 && order < 0))
            end = crowd->locks[i];
    }
    return end;
}

/* One of the last part is held: none is taken. */
static void test_a_lock_of_a_later_part_is_busy(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    sqlock_lock *last, *theirs;

    crowd_open(&crowd, f);
    last = at_end(&crowd, 1);
    theirs = lock_obtain(f->b, sqlock_name(last));
    lock_take(theirs, 0);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire_many(crowd.locks, COUNT, 0, NULL,
                                                   NULL, &f->err));
    assert_int_equal(count_held(&crowd), 0);
    for (size_t i = 0; i < COUNT; i += LK_BATCH_MAX / 2)
        assert_true(crowd.locks[i] == last ||
                    fixture_is_free(f, sqlock_name(crowd.locks[i])));
    lock_end(theirs);
    crowd_close(&crowd);
}

/* --- which lock it is --- */

/* Assert that the call failed because of that lock, as its text says. */
static void assert_tells_of(sqlock_lock *lock, const sqlock_error *err)
{
    size_t length = strlen(sqlock_name(lock));

    assert_true(strncmp(err->message, sqlock_name(lock), length) == 0 &&
                err->message[length] == ':');
    assert_contains(err->message, "lock");
}

static void test_the_lock_that_is_in_the_way_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options shorter = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *locks[3], *theirs;
    sqlock_registry *registry;
    char name[96];
    int results[3];
    int64_t until;

    options.ttl_ms = 60000;
    registry = fixture_registry(f, &options);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s-told-%zu", f->name, i);
        locks[i] = lock_obtain(registry, name);
    }
    theirs = lock_obtain(f->b, sqlock_name(locks[1]));
    lock_take(theirs, 0);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_acquire_many(locks, 3, 0, NULL, results, &f->err));
    assert_tells_of(locks[1], &f->err);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(locks, 3, 50, NULL, results, &f->err));
    assert_tells_of(locks[1], &f->err);
    lock_end(theirs);

    lock_take(locks[1], 0);
    shorter.ttl_ms = 30000;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_acquire_many(locks, 3, 0, &shorter, results, &f->err));
    assert_tells_of(locks[1], &f->err);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sqlock_hold_count(locks[i]), i == 1 ? 1 : 0);
    assert_ok(sqlock_release(locks[1], &f->err));

    shorter.ttl_ms = 200 * SLOWNESS;
    until = check_deadline_ns(PATIENCE_MS);
    while (sqlock_acquire(locks[2], 0, &shorter, &f->err) != 0) {
        assert_code(SQLOCK_ETIMEDOUT, f->err.code, &f->err);
        assert_true(check_pause(until));
    }
    assert_becomes_true(!sqlock_is_held(locks[2]), PATIENCE_MS);
    assert_fails(SQLOCK_EEXPIRED,
                 sqlock_acquire_many(locks, 3, 0, NULL, results, &f->err));
    assert_tells_of(locks[2], &f->err);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(locks[2], &f->err));
    for (size_t i = 0; i < 3; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

/* Of a lock with the longest name, the message has room for the cause. */
static void test_a_long_name_leaves_room_for_the_cause(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[2], *theirs;
    char name[10001] = "";

    memset(name, 'x', sizeof name - 1);
    memcpy(name, f->name, strlen(f->name));
    locks[0] = lock_obtain(f->a, name);
    locks[1] = lock_obtain(f->a, f->name);
    theirs = lock_obtain(f->b, name);
    lock_take(theirs, 0);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err));
    assert_int_equal(strncmp(f->err.message, name, 100), 0);
    assert_contains(f->err.message, "x: the lock is held");
    lock_end(theirs);
    lock_drop(locks[0]);
    lock_drop(locks[1]);
}

/* Each statement that changes a row loses its answer. */
static int lose_answers(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && strncmp(event->text, "SELECT", 6) != 0
               ? SQLOCK_EUNCERTAIN
               : 0;
}

static void hear_doubt(void *context, const sqlock_event *event)
{
    char *heard = context;

    if (event->kind == SQLOCK_EVENT_IN_DOUBT && event->lock != NULL)
        (void)snprintf(heard, 512, "%s|%s", event->lock, event->text);
}

/* An event about a lock whose release is in doubt names the lock, too. */
static void test_a_doubt_is_told_with_the_name(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    char heard[512] = "";
    char words[160];

    options.on_event = hear_doubt;
    options.event_context = heard;
    options.event_level = SQLOCK_LEVEL_WARNING;
    options.statement_timeout_ms = 300 * SLOWNESS;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    tap_hooks(lose_answers, NULL, NULL);
    assert_true(sqlock_release(lock, &f->err) < 0);
    tap_reset();
    assert_int_equal(strncmp(heard, f->name, strlen(f->name)), 0);
    (void)snprintf(words, sizeof words, "the lock %s was freed", f->name);
    assert_contains(heard, words);
    lock_drop(lock);
    registry_end(registry);
}

/* Each claim times out, as where the table is locked. */
static int end_claims(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && strncmp(event->text, "SELECT", 6) != 0
               ? SQLOCK_ECANCELED
               : 0;
}

/* A statement about several that times out is not told of one of them; but of
 * the one that is waited for. */
static void test_statements_that_time_out_are_told_of_their_lock(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[3], *first;
    sqlock_registry *registry;
    char name[96];

    registry = fixture_tapped(f, NULL);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s-late-%zu", f->name, i);
        locks[i] = lock_obtain(registry, name);
    }
    first = locks[0];
    for (size_t i = 1; i < 3; i++)
        if (strcmp(sqlock_key(locks[i]), sqlock_key(first)) < 0)
            first = locks[i];
    tap_hooks(end_claims, NULL, NULL);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(locks, 3, 0, NULL, NULL, &f->err));
    assert_timed_out(&f->err);
    for (size_t i = 0; i < 3; i++)
        assert_lacks(f->err.message, sqlock_name(locks[i]));
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(locks, 3, 50, NULL, NULL, &f->err));
    assert_tells_of(first, &f->err);
    tap_reset();
    for (size_t i = 0; i < 3; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

/* --- a part that fails --- */

/* This happens to the second claim of a part, and to those up to the last. */
struct second {
    atomic_uint claims; /* calls come from several threads */
    unsigned last;
    int before, after;
};

static int at_second(struct second *second, const struct tap_event *event,
                     int rc)
{
    return is_claim(event) && second->claims >= 2 &&
                   second->claims <= second->last
               ? rc
               : 0;
}

static int before_second(void *context, const struct tap_event *event)
{
    struct second *second = context;

    second->claims += is_claim(event);
    return at_second(second, event, second->before);
}

static int after_second(void *context, const struct tap_event *event, int rc)
{
    struct second *second = context;
    int lost = at_second(second, event, second->after);

    return lost != 0 ? lost : rc;
}

/* One of the first part is held: the others are not taken from anybody, not
 * even for a moment. */
static void test_nothing_is_claimed_behind_a_part_that_is_busy(void **state)
{
    struct fixture *f = *state;
    struct second claims = {0};
    static struct crowd crowd;
    sqlock_lock *theirs;

    crowd_open(&crowd, f);
    theirs = lock_obtain(f->b, sqlock_name(at_end(&crowd, -1)));
    lock_take(theirs, 0);
    tap_hooks(before_second, NULL, &claims);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire_many(crowd.locks, COUNT, 0, NULL,
                                                   crowd.results, &f->err));
    assert_int_equal(claims.claims, 1);
    assert_int_equal(count_of(&crowd, SQLOCK_EBUSY), COUNT);
    assert_int_equal(count_held(&crowd), 0);
    lock_end(theirs);
    crowd_close(&crowd);
}

/* It is halved three times; then those before it are given back, and those
 * behind it are not sent. */
static void test_a_part_that_times_out_fails_the_claim(void **state)
{
    struct fixture *f = *state;
    struct second second = {.last = UINT_MAX, .before = SQLOCK_ECANCELED};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    tap_hooks(before_second, NULL, &second);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(crowd.locks, COUNT, 0, NULL, crowd.results,
                                     &f->err));
    assert_timed_out(&f->err);
    assert_int_equal(second.claims, 1 + 4);
    assert_int_equal(count_of(&crowd, 0), 0);
    assert_int_equal(count_held(&crowd), 0);
    for (size_t i = 0; i < COUNT; i += LK_BATCH_MAX / 4)
        assert_true(fixture_is_free(f, sqlock_name(crowd.locks[i])));
    crowd_close(&crowd);
}

/* Its halves are sent, and then parts of that size. */
static void test_a_part_that_times_out_is_cut(void **state)
{
    struct fixture *f = *state;
    struct second second = {.last = 2, .before = SQLOCK_ECANCELED};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    tap_hooks(before_second, NULL, &second);
    assert_ok(sqlock_acquire_many(crowd.locks, COUNT, 0, NULL, crowd.results,
                                  &f->err));
    assert_int_equal(second.claims, 1 + 1 + 2 + 1);
    assert_int_equal(count_of(&crowd, 0), COUNT);
    assert_int_equal(count_held(&crowd), COUNT);
    assert_ok(sqlock_renew_many(crowd.locks, COUNT, NULL, &f->err));
    assert_ok(sqlock_release_many(crowd.locks, COUNT, NULL, &f->err));
    crowd_close(&crowd);
}

static void test_a_wait_goes_on_after_a_part_that_timed_out(void **state)
{
    struct fixture *f = *state;
    struct second second = {.last = 5, .before = SQLOCK_ECANCELED};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    tap_hooks(before_second, NULL, &second);
    assert_ok(sqlock_acquire_many(crowd.locks, COUNT, PATIENCE_MS, NULL, NULL,
                                  &f->err));
    assert_int_equal(count_held(&crowd), COUNT);
    assert_ok(sqlock_release_many(crowd.locks, COUNT, NULL, &f->err));
    crowd_close(&crowd);
}

/* The claims of the part are sent again, with their own CLIENT_IDs. */
static void test_a_part_without_an_answer_is_sent_again(void **state)
{
    struct fixture *f = *state;
    struct second second = {.last = 2, .after = SQLOCK_EUNCERTAIN};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    tap_hooks(before_second, after_second, &second);
    assert_ok(sqlock_acquire_many(crowd.locks, COUNT, 0, NULL, crowd.results,
                                  &f->err));
    assert_int_equal(second.claims, 4);
    assert_int_equal(count_held(&crowd), COUNT);
    assert_ok(sqlock_renew_many(crowd.locks, COUNT, NULL, &f->err));
    assert_ok(sqlock_release_many(crowd.locks, COUNT, NULL, &f->err));
    crowd_close(&crowd);
}

/* The last part as a whole; with `all` also what follows. */
struct last {
    bool all;
    atomic_bool has_begun; /* calls come from several threads */
};

static int end_the_last(void *context, const struct tap_event *event)
{
    struct last *last = context;
    bool is_last = event->call == TAP_EXECUTE && tap_leases(event) == LAST_PART;

    if (is_last)
        last->has_begun = true;
    return is_last ||
                   (event->call == TAP_EXECUTE && last->all && last->has_begun)
               ? SQLOCK_ECANCELED
               : 0;
}

/* The leases are renewed and released in halves. */
static void test_renewals_and_releases_that_time_out_are_cut(void **state)
{
    struct fixture *f = *state;
    struct last last = {.all = false};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    assert_ok(
        sqlock_acquire_many(crowd.locks, LAST_PART, 0, NULL, NULL, &f->err));
    tap_hooks(end_the_last, NULL, &last);
    assert_ok(
        sqlock_renew_many(crowd.locks, LAST_PART, crowd.results, &f->err));
    assert_true(last.has_begun);
    assert_int_equal(count_of(&crowd, 0), LAST_PART);
    last.has_begun = false;
    assert_ok(
        sqlock_release_many(crowd.locks, LAST_PART, crowd.results, &f->err));
    assert_true(last.has_begun);
    assert_int_equal(count_of(&crowd, 0), LAST_PART);
    assert_true(fixture_is_free(f, sqlock_name(crowd.locks[0])));
    crowd_close(&crowd);
}

/* The other parts are renewed and released; what is not released is freed in
 * the background. */
static void test_a_part_that_times_out_fails_alone(void **state)
{
    struct fixture *f = *state;
    struct last last = {.all = true};
    static struct crowd crowd;

    crowd_open(&crowd, f);
    assert_ok(sqlock_acquire_many(crowd.locks, COUNT, 0, NULL, NULL, &f->err));
    tap_hooks(end_the_last, NULL, &last);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_renew_many(crowd.locks, COUNT, crowd.results, &f->err));
    assert_timed_out(&f->err);
    assert_int_equal(count_of(&crowd, 0), COUNT - LAST_PART);
    assert_int_equal(count_of(&crowd, SQLOCK_EBUSY), LAST_PART);
    assert_int_equal(count_held(&crowd), COUNT);
    last.has_begun = false;
    assert_fails(SQLOCK_EBUSY, sqlock_release_many(crowd.locks, COUNT,
                                                   crowd.results, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_timed_out(&f->err);
    assert_int_equal(count_of(&crowd, 0), COUNT - LAST_PART);
    assert_int_equal(count_of(&crowd, SQLOCK_EBUSY), LAST_PART);
    for (size_t i = 0; i < COUNT; i++)
        if (crowd.results[i] != 0 && i % 100 == 0)
            assert_becomes_true(fixture_is_free(f, sqlock_name(crowd.locks[i])),
                                PATIENCE_MS);
    crowd_close(&crowd);
}

static const struct test tests[] = {
    TEST(test_what_is_too_large_for_a_statement_is_cut),
    TEST(test_a_lock_of_a_later_part_is_busy),
    TEST(test_nothing_is_claimed_behind_a_part_that_is_busy),
    TEST(test_the_lock_that_is_in_the_way_is_told),
    TEST(test_a_long_name_leaves_room_for_the_cause),
    TEST(test_a_doubt_is_told_with_the_name),
    TEST(test_statements_that_time_out_are_told_of_their_lock),
    TEST(test_a_part_that_times_out_fails_the_claim),
    TEST(test_a_part_that_times_out_is_cut),
    TEST(test_a_wait_goes_on_after_a_part_that_timed_out),
    TEST(test_a_part_without_an_answer_is_sent_again),
    TEST(test_a_part_that_times_out_fails_alone),
    TEST(test_renewals_and_releases_that_time_out_are_cut),
};
const struct topic topic_batches = TOPIC(tests);
