/*
 * batches.c - which lock an error or an event of a call for several is about;
 * scenes/parts.scene has how more are sent than have time in one statement
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/event.h"
#include "sqlock/many.h"
#include "support/tap.h"

/* Assert that the call failed because of that lock, as its text says. */
static void assert_tells_of(sqlock_lock *lock, const sqlock_error *err)
{
    size_t length = strlen(sqlock_name(lock));

    assert_true(strncmp(err->message, sqlock_name(lock), length) == 0 &&
                err->message[length] == ':');
    assert_contains(err->message, "lock");
}

/* Of a lock with the longest name, the message has room for the cause. */
TEST(test_a_long_name_leaves_room_for_the_cause)
{
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
TEST(test_a_doubt_is_told_with_the_name)
{
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
TEST(test_statements_that_time_out_are_told_of_their_lock)
{
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
