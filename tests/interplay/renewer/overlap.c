/*
 * overlap.c - renewals of one lease at the same time: in whatever order the
 * database carries them out and the answers come, the holder's deadline is
 * before the row's end
 *
 * A barrier holds one renewal up, before it is sent or after it was answered,
 * while others overtake it.  The TTLs are so long that the renewer renews only
 * when a test makes that due, and that no lease ends during its test.
 */
#include "renewer.h"

#include <string.h>

#include "locks/registry.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

#define LONG_MS (40000 * SLOWNESS)
#define SHORT_MS (LONG_MS / 2)

/* Assert that the holder's remaining time is shorter than the row's. */
static void expect_truth(struct fixture *f, sqlock_lock *lock)
{
    int64_t now_us = sql_now_us(&f->sql);
    int64_t told_us = 1000 * sqlock_remaining_ms(lock);

    assert_less(0, told_us);
    assert_less(told_us, fixture_row(f, f->name).expires_us - now_us);
}

/* ---------------------------------------------------------------- the scene */

struct scene {
    sqlock_registry *tapped;
    sqlock_lock *lock;
    sqlock_lock *beside; /* held, too; renewed together with it */
    struct barrier traffic;
    struct worker worker;
    uint32_t ttl_ms; /* TTL of the worker's renewal */
};

/* Open a registry that owns its locks, take the lock with auto_renew for that
 * TTL, and take the lock `beside`. */
static void open_scene(struct fixture *f, struct scene *scene, uint32_t ttl_ms)
{
    sqlock_options options = fixture_options(f);

    memset(scene, 0, sizeof *scene);
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    scene->tapped = fixture_tapped(f, &options);
    scene->lock = lock_obtain(scene->tapped, f->name);
    take_renewed(scene->lock, ttl_ms, NULL);
    scene->beside = nth_lock(f, scene->tapped, 1);
    lock_take(scene->beside, LONG_TTL_MS);
}

/* Let the held-up renewal go on, wait until no renewal is under way, check the
 * holder's remaining time, and free what open_scene() has opened. */
static void close_scene(struct fixture *f, struct scene *scene)
{
    atomic_store(&scene->traffic.may_go, true);
    if (scene->worker.body != NULL)
        worker_join(&scene->worker);
    assert_becomes_true(is_alone(scene->lock), PATIENCE_MS);
    expect_truth(f, scene->lock);
    lock_end(scene->beside);
    lock_end(scene->lock);
    registry_end(scene->tapped);
}

static int renew_once(struct worker *worker)
{
    struct scene *scene = worker->context;

    worker_expect(worker, 0,
                  sqlock_renew(scene->lock, scene->ttl_ms, &worker->err));
    return 0;
}

static int renew_many_once(struct worker *worker)
{
    struct scene *scene = worker->context;
    sqlock_lock *both[] = {scene->lock, scene->beside};

    worker_expect(worker, 0, sqlock_renew_many(both, 2, NULL, &worker->err));
    return 0;
}

/* Start a worker that renews the lock, and wait until its renewal is held up:
 * before it is sent, or with is_after when it was answered. */
static void renew_beside(struct scene *scene, int (*body)(struct worker *),
                         uint32_t ttl_ms, bool is_after)
{
    scene->ttl_ms = ttl_ms;
    barrier_begin(&scene->traffic, scene->tapped,
                  body == renew_once ? SQLOCK_SQL_RENEW : SQLOCK_SQL_RENEW_MANY,
                  is_after);
    worker_start(&scene->worker, body, scene);
    assert_becomes_true(atomic_load(&scene->traffic.is_up), PATIENCE_MS);
}

static void renew(struct fixture *f, struct scene *scene, uint32_t ttl_ms)
{
    assert_ok(sqlock_renew(scene->lock, ttl_ms, &f->err));
}

/* ---------------------------------------------------------------- the tests */

/* A renewal of the renewer is carried out, but its answer is held up while the
 * application renews for a shorter time: the late answer does not make the
 * deadline later again. */
static void test_the_renewers_answer_comes_last(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    barrier_begin(&scene.traffic, scene.tapped, SQLOCK_SQL_RENEW_MANY, true);
    (void)make_due(scene.lock);
    assert_becomes_true(atomic_load(&scene.traffic.is_up), PATIENCE_MS);
    renew(f, &scene, SHORT_MS);
    expect_truth(f, scene.lock);
    close_scene(f, &scene);
}

/* A worker's longer renewal is carried out, but its answer is held up while the
 * renewer shortens the row again, renewing it for the old TTL.  The late answer
 * does not make the deadline later than the row's end; the renewer's next
 * renewal makes both later. */
static void test_a_longer_renewal_is_answered_after_the_renewers(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, SHORT_MS);
    renew_beside(&scene, renew_once, LONG_MS, true);
    renew_now(scene.lock);
    expect_truth(f, scene.lock);
    atomic_store(&scene.traffic.may_go, true);
    worker_join(&scene.worker);
    scene.worker.body = NULL;
    expect_truth(f, scene.lock);
    assert_becomes_true(sqlock_remaining_ms(scene.lock) > SHORT_MS,
                        PATIENCE_MS);
    close_scene(f, &scene);
}

static void test_one_of_many_is_answered_after_a_shorter_one(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    renew_beside(&scene, renew_many_once, 0, true);
    renew(f, &scene, SHORT_MS);
    expect_truth(f, scene.lock);
    close_scene(f, &scene);
}

static void test_two_threads_renew_one_lease(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    renew_beside(&scene, renew_once, LONG_MS + 1, true);
    renew(f, &scene, SHORT_MS);
    expect_truth(f, scene.lock);
    close_scene(f, &scene);
}

/* A worker's shorter renewal is carried out, but its answer is held up: other
 * threads, which own the lock as well, see the shorter time already. */
static void test_a_shorter_renewal_that_has_no_answer_yet(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    renew_beside(&scene, renew_once, SHORT_MS, true);
    expect_truth(f, scene.lock);
    close_scene(f, &scene);
}

/* A worker's shorter renewal is held up before it is sent.  It may still
 * arrive, so longer renewals that overtake it do not make the deadline
 * later. */
static void test_a_shorter_renewal_that_has_not_arrived_yet(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    renew_beside(&scene, renew_once, SHORT_MS, false);
    renew_now(scene.lock);
    assert_less(sqlock_remaining_ms(scene.lock), SHORT_MS);
    renew(f, &scene, LONG_MS);
    assert_less(sqlock_remaining_ms(scene.lock), SHORT_MS);
    close_scene(f, &scene);
}

static int refuse(void *context, const struct tap_event *event)
{
    struct barrier *traffic = context;

    return event->text == traffic->text ? SQLOCK_EDATABASE : 0;
}

/* The database refuses a shorter renewal, so the lease stays as it was.  The
 * lease is one without auto_renew: the refused renewal, until it is answered,
 * would limit a renewal of the renewer at the same time. */
static void test_a_shorter_renewal_that_is_refused(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    lock_give(scene.lock);
    lock_take(scene.lock, LONG_MS);
    scene.traffic.text = census_text(scene.tapped, SQLOCK_SQL_RENEW);
    tap_hooks(refuse, NULL, &scene.traffic);
    assert_fails(SQLOCK_EDATABASE, sqlock_renew(scene.lock, SHORT_MS, &f->err));
    assert_less(SHORT_MS, sqlock_remaining_ms(scene.lock));
    close_scene(f, &scene);
}

/* Take the lock again for SHORT_MS without auto_renew, and renew both locks in
 * one call while another session has the row of `locked` locked; fail the test
 * unless the call returns the expected code. */
static void renew_beside_a_locked_row(struct fixture *f, struct scene *scene,
                                      const sqlock_lock *locked, int expected)
{
    sqlock_lock *both[] = {scene->lock, scene->beside};
    struct sql sql;

    lock_give(scene->lock);
    lock_take(scene->lock, SHORT_MS);
    fixture_lock_row(f, &sql, locked);
    assert_fails(expected, sqlock_renew_many(both, 2, NULL, &f->err));
    fixture_unlock_row(&sql);
}

static int lose_first(void *context, const struct tap_event *event, int rc)
{
    struct barrier *traffic = context;

    return event->text == traffic->text &&
                   !atomic_exchange(&traffic->is_up, true)
               ? SQLOCK_EUNCERTAIN
               : rc;
}

/* A renewal passes the locked row over, and the answer to the reading that
 * follows is lost.  A reading changes nothing, so the next renewal is not
 * limited by it. */
static void test_a_lost_reading_limits_no_renewal(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    scene.traffic.text = census_text(scene.tapped, SQLOCK_SQL_READ);
    tap_hooks(NULL, lose_first, &scene.traffic);
    renew_beside_a_locked_row(f, &scene, scene.lock, SQLOCK_EBUSY);
    assert_true(atomic_load(&scene.traffic.is_up));
    renew(f, &scene, LONG_MS);
    assert_less(SHORT_MS, sqlock_remaining_ms(scene.lock));
    close_scene(f, &scene);
}

/* On MySQL, when one of the rows is locked, the others are renewed in a
 * transaction.  Its commit gets no answer and may still be carried out, so it
 * limits the next renewal. */
static void test_a_commit_without_an_answer_limits_renewals(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    tap_hooks(NULL, tap_lose_commit, NULL);
    renew_beside_a_locked_row(f, &scene, scene.beside, SQLOCK_EUNCERTAIN);
    assert_true(tap_count(TAP_COMMIT) > 0);
    tap_hooks(NULL, NULL, NULL);
    renew(f, &scene, LONG_MS);
    assert_less(sqlock_remaining_ms(scene.lock), SHORT_MS);
    close_scene(f, &scene);
}

/* A shorter renewal is held up while its lease is released, and the lock
 * acquired again.  It cannot reach the new lease, which it does not limit. */
static void test_a_renewal_of_an_earlier_lease_limits_none(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    lock_give(scene.lock);
    lock_take(scene.lock, LONG_MS);
    renew_beside(&scene, renew_once, SHORT_MS, true);
    lock_give(scene.lock);
    lock_take(scene.lock, LONG_MS);
    assert_less(SHORT_MS, sqlock_remaining_ms(scene.lock));
    renew(f, &scene, LONG_MS);
    assert_less(SHORT_MS, sqlock_remaining_ms(scene.lock));
    atomic_store(&scene.traffic.may_go, true);
    worker_join(&scene.worker);
    scene.worker.body = NULL;
    /* the memory of that renewal is gone */
    renew(f, &scene, LONG_MS);
    assert_less(SHORT_MS, sqlock_remaining_ms(scene.lock));
    close_scene(f, &scene);
}

/* The answer to a shorter renewal is lost, and its repetition is answered.  The
 * first copy may still arrive, so it limits a longer renewal after that. */
static void test_an_unanswered_shorter_renewal_limits_a_longer_one(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(f, &scene, LONG_MS);
    lock_give(scene.lock);
    lock_take(scene.lock, LONG_MS);
    scene.traffic.text = census_text(scene.tapped, SQLOCK_SQL_RENEW);
    tap_hooks(NULL, lose_first, &scene.traffic);
    renew(f, &scene, SHORT_MS);
    assert_true(atomic_load(&scene.traffic.is_up));
    tap_hooks(NULL, NULL, NULL);
    renew(f, &scene, LONG_MS);
    assert_less(sqlock_remaining_ms(scene.lock), SHORT_MS);
    close_scene(f, &scene);
}

/* On SQLite the writes of a registry are run one after the other, so no renewal
 * overtakes another one that is held up. */
static const struct test tests[] = {
    TEST_ON(test_the_renewers_answer_comes_last, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_a_longer_renewal_is_answered_after_the_renewers, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_one_of_many_is_answered_after_a_shorter_one, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_two_threads_renew_one_lease, ON_SERVERS, IN_SQLOCK),
    TEST(test_a_shorter_renewal_that_has_no_answer_yet),
    TEST_ON(test_a_shorter_renewal_that_has_not_arrived_yet, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_a_shorter_renewal_that_is_refused),
    TEST_ON(test_a_lost_reading_limits_no_renewal, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_a_commit_without_an_answer_limits_renewals, ON_MYSQL,
            IN_SQLOCK),
    TEST_ON(test_a_renewal_of_an_earlier_lease_limits_none, ON_SERVERS,
            IN_SQLOCK),
    TEST(test_an_unanswered_shorter_renewal_limits_a_longer_one),
};
const struct topic topic_overlap = TOPIC(tests);
