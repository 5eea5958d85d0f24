/*
 * release.c - releases that are not carried out, or whose answer is lost: the
 * result says no more than the row shows, and the row is freed in the
 * background (F38, F42)
 */
#include "renewer.h"

#include <pthread.h>

#include "base/clock.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

#define MANY 3

/* Statement timeout: how long a refused release is tried again. */
#define STATEMENT_MS (300 * SLOWNESS)

/* ------------------------------------------------ releases that go wrong -- */

struct trouble {
    const char *texts[3]; /* texts of the statements that are hit */
    int before;           /* result instead of sending one; 0: it is sent */
    int after;            /* result instead of success; 0: the true one */
    atomic_int times;     /* how many more statements are hit */
    const char *refused;  /* text of a statement refused to `thread`, or NULL */
    pthread_t thread;
};

/* Return trouble that hits the next `times` statements by which the registry
 * releases locks. */
static struct trouble trouble_of(sqlock_registry *registry, int before,
                                 int after, int times)
{
    struct trouble trouble = {.before = before, .after = after};

    trouble.texts[0] = census_text(registry, SQLOCK_SQL_RELEASE);
    trouble.texts[1] = census_text(registry, SQLOCK_SQL_RELEASE_MANY);
    trouble.texts[2] = census_text(registry, SQLOCK_SQL_RELEASE_NOTIFY);
    atomic_store(&trouble.times, times);
    return trouble;
}

static bool is_hit(struct trouble *trouble, const struct tap_event *event)
{
    bool concerned = false;

    for (size_t i = 0; i < 3; i++)
        concerned = concerned ||
                    (event->text != NULL && event->text == trouble->texts[i]);
    return concerned && atomic_fetch_sub(&trouble->times, 1) > 0;
}

static int trouble_before(void *context, const struct tap_event *event)
{
    struct trouble *trouble = context;

    if (trouble->refused != NULL && event->text == trouble->refused &&
        pthread_equal(trouble->thread, pthread_self()))
        return SQLOCK_EACCESS;
    return trouble->before != 0 && is_hit(trouble, event) ? trouble->before : 0;
}

static int trouble_after(void *context, const struct tap_event *event, int rc)
{
    struct trouble *trouble = context;

    return rc == 0 && trouble->after != 0 && is_hit(trouble, event)
               ? trouble->after
               : rc;
}

static void test_an_expired_release_whose_answer_is_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct trouble trouble = trouble_of(registry, 0, SQLOCK_EUNCERTAIN, 1);

    lock_take(lock, TTL_MS / 4);
    assert_becomes_true(!sqlock_is_held(lock), PATIENCE_MS);
    tap_hooks(trouble_before, trouble_after, &trouble);
    /* On Spring's layouts the row is gone; who deleted it is not known. */
    assert_code(f->layout == SQLOCK_LAYOUT_SQLOCK ? SQLOCK_EEXPIRED
                                                  : SQLOCK_EUNCERTAIN,
                sqlock_release(lock, &f->err), &f->err);
    assert_true(atomic_load(&trouble.times) <= 0);
    assert_int_equal(sqlock_hold_count(lock), 0);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_release_that_could_not_be_sent_is_sent_later(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, STATEMENT_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct trouble trouble =
        trouble_of(registry, SQLOCK_EUNREACHABLE, 0, INT32_MAX);
    int64_t until;

    lock_take(lock, LONG_TTL_MS);
    tap_hooks(trouble_before, trouble_after, &trouble);
    assert_fails(SQLOCK_EUNREACHABLE, sqlock_release(lock, &f->err));
    assert_int_equal(sqlock_hold_count(lock), 0);
    until = check_deadline_ns(STATEMENT_MS);
    while (check_pause(until))
        assert_false(fixture_is_free(f, f->name));
    atomic_store(&trouble.times, 0);
    expect_freed(f, f->name);
    lock_take(lock, LONG_TTL_MS);
    lock_end(lock);
    registry_end(registry);
}

static void test_many_releases_that_could_not_be_sent(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, STATEMENT_MS);
    struct trouble trouble =
        trouble_of(registry, SQLOCK_EUNREACHABLE, 0, INT32_MAX);
    sqlock_lock *locks[MANY];
    int results[MANY];
    char name[96];

    for (size_t i = 0; i < MANY; i++) {
        locks[i] = nth_lock(f, registry, i);
        lock_take(locks[i], LONG_TTL_MS);
    }
    tap_hooks(trouble_before, trouble_after, &trouble);
    assert_fails(SQLOCK_EUNREACHABLE,
                 sqlock_release_many(locks, MANY, results, &f->err));
    atomic_store(&trouble.times, 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(results[i], SQLOCK_EUNREACHABLE);
        expect_freed(f, nth_name(f, name, i));
    }
    registry_end(registry);
}

/* Another session has the row locked for longer than the release may take. */
static void test_a_release_of_a_row_that_is_locked(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, STATEMENT_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct sql sql;
    int rc;

    lock_take(lock, LONG_TTL_MS);
    fixture_lock_row(f, &sql, lock);
    rc = sqlock_release(lock, &f->err);
    assert_code_of(SQLOCK_EBUSY, SQLOCK_EUNCERTAIN, rc, &f->err);
    fixture_unlock_row(&sql);
    expect_freed(f, f->name);
    lock_drop(lock);
    registry_end(registry);
}

/* ------------------------------------------------ over a waiting session -- */

struct waiting {
    sqlock_lock *lock;
    atomic_bool has_it;
    atomic_bool may_release;
    atomic_int released;
};

static int wait_and_release(struct worker *worker)
{
    struct waiting *waiting = worker->context;

    worker_expect(
        worker, 0,
        lock_try(waiting->lock, PATIENCE_MS, LONG_TTL_MS, &worker->err));
    atomic_store(&waiting->has_it, true);
    while (!atomic_load(&waiting->may_release))
        (void)check_pause(INT64_MAX);
    atomic_store(&waiting->released,
                 sqlock_release(waiting->lock, &worker->err));
    return 0;
}

/* A worker waits for the lock in the database's queue, and releases the lock on
 * the session that waited.  The first try of this release fails with that code,
 * and the second succeeds. */
static void check_retried(struct fixture *f, int code)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *held = lock_obtain(f->b, f->name);
    struct waiting waiting = {.lock = lock_obtain(registry, f->name)};
    struct trouble trouble = trouble_of(registry, code, 0, 1);
    struct worker worker;

    lock_take(held, LONG_TTL_MS);
    worker_start(&worker, wait_and_release, &waiting);
    /* Give the worker time to claim the row once, and to wait. */
    assert_becomes_true(tap_sent() > 0, PATIENCE_MS);
    (void)wait_until(false, 300 * SLOWNESS);
    lock_give(held);
    assert_becomes_true(atomic_load(&waiting.has_it), PATIENCE_MS);
    tap_hooks(trouble_before, trouble_after, &trouble);
    atomic_store(&waiting.may_release, true);
    worker_join(&worker);
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&waiting.released), 0);
    assert_true(atomic_load(&trouble.times) <= 0);
    assert_true(fixture_is_free(f, f->name));
    lock_drop(held);
    registry_end(registry);
}

static void test_a_release_over_a_waiting_session_is_tried_again(void **state)
{
    struct fixture *f = *state;

    check_retried(f, SQLOCK_ERETRY);
    fixture_next(f);
    check_retried(f, SQLOCK_EBUSY);
}

/* ------------------------------------ releases that the row tells about -- */

/* A lease expires, another holder takes and gives back the lock, and then the
 * answer to the release of the lease is lost.  The row is free, as the release
 * would have left it, but with the other holder's token (on Spring's layouts it
 * is gone): the result must not be EEXPIRED, which says that nobody else had
 * the lock. */
static void test_a_lost_release_behind_another_holder_is_uncertain(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    struct trouble trouble = trouble_of(registry, 0, SQLOCK_EUNCERTAIN, 1);

    lock_take(lock, TTL_MS / 4);
    assert_ok(lock_try(theirs, PATIENCE_MS, LONG_TTL_MS, &f->err));
    lock_give(theirs);
    tap_hooks(trouble_before, trouble_after, &trouble);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_release(lock, &f->err));
    assert_true(atomic_load(&trouble.times) <= 0);
    tap_hooks(NULL, NULL, NULL);
    lock_drop(theirs);
    lock_drop(lock);
    registry_end(registry);
}

/* The hand-off is carried out, but its answer is lost and the row cannot be
 * read.  The release that follows finds the next waiter's lease in the row
 * instead of its own: that is no loss, so the result is EUNCERTAIN. */
static void test_a_release_behind_a_lost_hand_off_is_no_loss(void **state)
{
    struct fixture *f = *state;
    struct trouble trouble = {
        .after = SQLOCK_EUNCERTAIN,
        .times = INT32_MAX,
        .thread = pthread_self(),
    };
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *next;
    struct worker worker;

    registry = registry_within(f, STATEMENT_MS);
    lock = lock_obtain(registry, f->name);
    next = lock_obtain(registry, f->name);
    trouble.texts[0] = census_text(registry, SQLOCK_SQL_HAND_OFF);
    trouble.refused = census_text(registry, SQLOCK_SQL_READ);
    lock_take(lock, LONG_TTL_MS);
    worker_start(&worker, take_and_give, next);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    tap_hooks(trouble_before, trouble_after, &trouble);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_release(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
    worker_join(&worker);
    lock_drop(next);
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_an_expired_release_whose_answer_is_lost, ON_ALL, IN_ALL),
    TEST_ON(test_a_release_that_could_not_be_sent_is_sent_later, ON_ALL,
            IN_ALL),
    TEST_ON(test_many_releases_that_could_not_be_sent, ON_ALL, IN_ALL),
    TEST_ON(test_a_release_of_a_row_that_is_locked, ON_SERVERS, IN_ALL),
    TEST_ON(test_a_release_over_a_waiting_session_is_tried_again, ON_SERVERS,
            IN_ALL),
    TEST_ON(test_a_lost_release_behind_another_holder_is_uncertain, ON_ALL,
            IN_ALL),
    TEST_ON(test_a_release_behind_a_lost_hand_off_is_no_loss, ON_ALL, IN_ALL),
};
const struct topic topic_release = TOPIC(tests);
