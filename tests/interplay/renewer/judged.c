/*
 * judged.c - releases that are judged by the row they find, because no answer
 * says what they have done: none is told as more than the row shows
 */
#include "renewer.h"

#include <pthread.h>

#include "support/tap.h"
#include "support/workers.h"

#define STATEMENT_MS (500 * SLOWNESS)

/* Statements whose answers are lost, and one that is refused to a thread. */
struct silence {
    const char *unanswered[2];
    atomic_int times; /* how many more answers are lost */
    const char *refused;
    pthread_t thread;
};

static int refuse_to_thread(void *context, const struct tap_event *event)
{
    const struct silence *silence = context;

    return silence->refused != NULL && event->text == silence->refused &&
                   pthread_equal(silence->thread, pthread_self())
               ? SQLOCK_EACCESS
               : 0;
}

static int lose_answer(void *context, const struct tap_event *event, int rc)
{
    struct silence *silence = context;
    bool is_concerned =
        event->text != NULL && (event->text == silence->unanswered[0] ||
                                event->text == silence->unanswered[1]);

    return rc == 0 && is_concerned && atomic_fetch_sub(&silence->times, 1) > 0
               ? SQLOCK_EUNCERTAIN
               : rc;
}

static void begin_silence(struct silence *silence, int times)
{
    atomic_store(&silence->times, times);
    silence->thread = pthread_self();
    tap_hooks(refuse_to_thread, lose_answer, silence);
}

/* The row is free, as this release would have left it, but with the token of
 * somebody else: it must not say that nobody has had the lock. */
static void test_a_lost_release_behind_another_holder_is_uncertain(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    struct silence silence = {
        .unanswered = {census_text(registry, SQLOCK_SQL_RELEASE),
                       census_text(registry, SQLOCK_SQL_RELEASE_NOTIFY)}};

    lock_take(lock, TTL_MS / 4);
    assert_ok(lock_try(theirs, PATIENCE_MS, LONG_TTL_MS, &f->err));
    lock_give(theirs);
    begin_silence(&silence, 1);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_release(lock, &f->err));
    assert_true(atomic_load(&silence.times) <= 0);
    tap_hooks(NULL, NULL, NULL);
    lock_drop(theirs);
    lock_drop(lock);
    registry_end(registry);
}

static int take_and_give(struct worker *worker)
{
    sqlock_lock *lock = worker->context;

    worker_expect(worker, 0,
                  lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &worker->err));
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

/* The row has the successor's lease, by a hand-off that nobody has confirmed:
 * the release that follows finds its own gone, which is no loss. */
static void test_a_release_behind_a_lost_hand_off_is_no_loss(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct silence silence = {.unanswered = {NULL}};
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *next;
    struct worker worker;

    options.statement_timeout_ms = STATEMENT_MS;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    next = lock_obtain(registry, f->name);
    silence.unanswered[0] = census_text(registry, SQLOCK_SQL_HAND_OFF);
    silence.refused = census_text(registry, SQLOCK_SQL_READ);
    lock_take(lock, LONG_TTL_MS);
    worker_start(&worker, take_and_give, next);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    begin_silence(&silence, INT32_MAX);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_release(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
    worker_join(&worker);
    lock_drop(next);
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_a_lost_release_behind_another_holder_is_uncertain, ON_ALL,
            IN_ALL),
    TEST_ON(test_a_release_behind_a_lost_hand_off_is_no_loss, ON_ALL, IN_ALL),
};
const struct topic topic_judged = TOPIC(tests);
