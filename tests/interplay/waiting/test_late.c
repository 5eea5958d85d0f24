/*
 * test_late.c - what holders do whose leases are another's by now: it does not
 * change the lease of that one
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"

/* Of leases that are to run out. */
#define TTL_MS (600 * SLOWNESS)

/* --- counting once more --- */

struct scene {
    sqlock_registry *tapped;
    sqlock_lock *locks[2];
    char key[SQLOCK_KEY_SIZE]; /* of the lock whose claim is late */
    struct contender next;
    atomic_int code; /* what claims of it get; 0: they are sent */
    atomic_uint times;
};

/* Two locks of a registry with a tap. */
static void open_scene(struct scene *scene, struct fixture *f,
                       const sqlock_options *options, char name[96])
{
    memset(scene, 0, sizeof *scene);
    scene->tapped = fixture_tapped(f, options);
    (void)snprintf(name, 96, "%s, another", f->name);
    scene->locks[0] = lock_obtain(scene->tapped, f->name);
    scene->locks[1] = lock_obtain(scene->tapped, name);
    (void)snprintf(scene->key, sizeof scene->key, "%s",
                   sqlock_key(scene->locks[1]));
}

static void close_scene(struct scene *scene)
{
    tap_reset();
    lock_drop(scene->locks[0]);
    lock_drop(scene->locks[1]);
    registry_end(scene->tapped);
}

static bool names(const struct tap_event *event, const char *key)
{
    for (size_t i = 0; i < event->count; i++)
        if (event->parameters[i].type == SQLOCK_TEXT &&
            strcmp(event->parameters[i].text, key) == 0)
            return true;
    return false;
}

/* The claim is refused when the other lock has got its next holder. */
static int refuse_late(void *context, const struct tap_event *event)
{
    struct scene *scene = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->call != TAP_EXECUTE || !names(event, scene->key))
        return 0;
    (void)atomic_fetch_add(&scene->times, 1);
    while (atomic_load(&scene->next.rc) == 1 && check_pause(until))
        ;
    return SQLOCK_EBUSY;
}

static int acquire_twice_and_stay(struct worker *worker)
{
    struct contender *self = worker->context;
    sqlock_lock *lock = self->lock;
    int rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &worker->err);

    worker_expect(worker, 0, rc);
    worker_expect(worker, 0, sqlock_acquire(lock, 0, NULL, &worker->err));
    atomic_store(&self->rc, rc);
    while (!atomic_load(&self->may_release))
        (void)check_pause(INT64_MAX);
    worker_expect(worker, 2, (int)sqlock_hold_count(lock));
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    if (!sqlock_is_held(lock))
        return worker_fail(worker, "it was released once, and acquired twice");
    worker_expect(worker, 0, sqlock_release(lock, &worker->err));
    return 0;
}

/* A lock that is held, and one more: while the claim of that one is on its way,
 * the lease of the first runs out, and another thread gets it.  The count that
 * is undone is that of the old lease. */
static void test_a_count_that_is_undone_is_not_the_next_holders(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct scene scene;
    sqlock_lock **locks = scene.locks;
    char name[96];
    int rc;

    options.statement_timeout_ms = PATIENCE_MS;
    open_scene(&scene, f, &options, name);
    lock_take(locks[0], TTL_MS);
    scene.next.lock = locks[0];
    atomic_store(&scene.next.rc, 1);
    worker_start(&scene.next.worker, acquire_twice_and_stay, &scene.next);
    tap_hooks(refuse_late, NULL, &scene);
    rc = sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err);
    assert_true(rc < 0);
    assert_true(atomic_load(&scene.times) > 0);
    assert_int_equal(atomic_load(&scene.next.rc), 0);
    assert_int_equal(sqlock_hold_count(locks[0]), 1);
    atomic_store(&scene.next.may_release, true);
    worker_join(&scene.next.worker);
    assert_true(sqlock_release(locks[0], &f->err) < 0);
    assert_int_equal(sqlock_hold_count(locks[0]), 0);
    close_scene(&scene);
}

/* --- a claim in doubt --- */

static int answer_with_code(void *context, const struct tap_event *event)
{
    struct scene *scene = context;
    int code = atomic_load(&scene->code);

    if (event->call != TAP_EXECUTE || code == 0 || !names(event, scene->key))
        return 0;
    (void)atomic_fetch_add(&scene->times, 1);
    return code;
}

static int acquire_both(struct worker *worker)
{
    struct contender *self = worker->context;

    worker_expect(worker, 0,
                  sqlock_acquire_many(self->many, 2, SQLOCK_FOREVER, NULL, NULL,
                                      &worker->err));
    atomic_store(&self->rc, 0);
    return 0;
}

/* A claim of one lock beside a held one is in doubt, and the held one is
 * released by another thread of its owner, the registry: both are claimed then,
 * and what is done about the doubt does not release the lease. */
static void test_a_doubt_does_not_end_the_claim_of_both(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct scene scene;
    sqlock_lock **locks = scene.locks;
    sqlock_lock *beside;
    char name[96];
    int rc;

    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    open_scene(&scene, f, &options, name);
    beside = lock_obtain(f->b, name);
    lock_take(locks[0], 0);
    atomic_store(&scene.code, SQLOCK_EUNCERTAIN);
    tap_hooks(answer_with_code, NULL, &scene);
    scene.next.many = locks;
    atomic_store(&scene.next.rc, 1);
    worker_start(&scene.next.worker, acquire_both, &scene.next);
    /* Between two attempts it has not counted the held one. */
    assert_becomes_true(atomic_load(&scene.times) > 1 &&
                            sqlock_hold_count(locks[0]) == 1,
                        PATIENCE_MS);
    lock_give(locks[0]);
    atomic_store(&scene.code, 0);
    worker_join(&scene.next.worker);
    assert_true(sqlock_is_held(locks[1]));
    /* Time enough for the statements that free a claim in doubt. */
    rc = lock_try(beside, 500 * SLOWNESS, 0, &f->err);
    assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
    assert_ok(sqlock_renew(locks[1], 0, &f->err));
    lock_give(locks[0]);
    lock_give(locks[1]);
    lock_drop(beside);
    close_scene(&scene);
}

/* --- renewals --- */

struct call {
    atomic_uint times;
    atomic_bool may_return;
};

static void linger(void *context, sqlock_lock *lock, int code)
{
    struct call *call = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    (void)lock;
    (void)code;
    (void)atomic_fetch_add(&call->times, 1);
    while (!atomic_load(&call->may_return) && check_pause(until))
        ;
}

/* The second of three is granted the lock while the first one is told of its
 * loss, and does not come to begin with it before its own lease is over: the
 * third one's is renewed all the same. */
static void test_renewals_go_on_after_a_late_holder_comes_back(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct call call = {0};
    sqlock_acquire_options first = SQLOCK_ACQUIRE_INIT;
    sqlock_acquire_options second = SQLOCK_ACQUIRE_INIT;
    sqlock_acquire_options third = SQLOCK_ACQUIRE_INIT;
    struct contender two = {.options = &second};
    struct contender three = {.options = &third};
    int64_t expires_us;

    first.ttl_ms = TTL_MS;
    first.on_lost = linger;
    first.lost_context = &call;
    second.ttl_ms = TTL_MS;
    third.ttl_ms = 4000 * SLOWNESS;
    third.auto_renew = true;
    assert_ok(sqlock_acquire(lock, 0, &first, &f->err));
    contender_queue(&two, lock, SQLOCK_FOREVER);
    contender_queue(&three, lock, SQLOCK_FOREVER);
    assert_becomes_true(atomic_load(&call.times) > 0, PATIENCE_MS);
    contender_await(&three);
    atomic_store(&call.may_return, true);
    contender_await(&two);
    expires_us = fixture_row(f, f->name).expires_us;
    assert_becomes_true(fixture_row(f, f->name).expires_us > expires_us,
                        8000 * SLOWNESS);
    expires_us = fixture_row(f, f->name).expires_us;
    assert_becomes_true(fixture_row(f, f->name).expires_us > expires_us,
                        8000 * SLOWNESS);
    contender_end(&two, SQLOCK_ELOST);
    contender_end(&three, 0);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

struct slow_call {
    atomic_bool is_inside;
    atomic_bool has_ended;
};

static void take_time(void *context, sqlock_lock *lock, int code)
{
    struct slow_call *call = context;
    int64_t until = check_deadline_ns(300);

    (void)lock;
    (void)code;
    atomic_store(&call->is_inside, true);
    while (check_pause(until))
        ;
    atomic_store(&call->has_ended, true);
}

/* Data of on_lost may be freed after finishing a request has failed. */
static void test_finishing_waits_for_on_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct slow_call call = {0};
    sqlock_request *request = NULL;

    options.ttl_ms = 300;
    options.on_lost = take_time;
    options.lost_context = &call;
    assert_ok(sqlock_request_acquire(&request, lock, SQLOCK_FOREVER, &options,
                                     0, &f->err));
    assert_becomes_true(atomic_load(&call.is_inside), PATIENCE_MS);
    assert_fails(SQLOCK_EEXPIRED, sqlock_request_finish(request, &f->err));
    assert_true(atomic_load(&call.has_ended));
    lock_drop(lock);
}

/* --- a holder that was late, and holds the next lease --- */

static void test_a_holder_that_was_late_renews_its_next_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *request = NULL;
    int rc;

    lock_take(lock, TTL_MS);
    rc = sqlock_request_acquire(&request, lock, PATIENCE_MS, NULL, 0, &f->err);
    assert_lock_ok(rc, &f->err);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_ok(sqlock_request_finish(request, &f->err));
    assert_true(sqlock_is_held(lock));
    assert_ok(sqlock_renew(lock, 0, &f->err));
    lock_give(lock);
    assert_false(sqlock_is_held(lock));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* Obtain a lock whose key is greater than that one's, for locks are entered in
 * order of their keys. */
static sqlock_lock *obtain_after(sqlock_registry *registry,
                                 const sqlock_lock *before, char name[96])
{
    for (int i = 0;; i++) {
        sqlock_lock *lock;

        (void)snprintf(name, 96, "%s, %d", sqlock_name(before), i);
        lock = lock_obtain(registry, name);
        if (strcmp(sqlock_key(lock), sqlock_key(before)) > 0)
            return lock;
        lock_drop(lock);
    }
}

/* Number of sessions at the server. */
static int64_t count_sessions(struct fixture *f)
{
    return sql_integer(&f->sql, f->database->bit == ON_POSTGRES
                                    ? "SELECT count(*) FROM pg_stat_activity "
                                      "WHERE backend_type = 'client backend'"
                                    : "SELECT count(*) FROM "
                                      "information_schema.PROCESSLIST");
}

/* A lease that was waited for keeps its place in the database's queue.  A call
 * for two locks sets the lease aside, once it is over, but has to wait for the
 * other lock, and claims neither: the place is given up all the same. */
static void test_a_lease_set_aside_in_vain_gives_up_its_place(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options brief = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *holder = lock_obtain(f->b, f->name);
    sqlock_request *request = NULL;
    sqlock_registry *registry;
    sqlock_lock *late;
    sqlock_lock *taken;
    sqlock_lock *both[2];
    int64_t before;
    char name[96];

    lock_take_and_give(holder); /* MySQL: the first one is not in the queue */
    lock_take(holder, 0);
    before = count_sessions(f);
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_registry(f, &options);
    late = lock_obtain(registry, f->name);
    taken = obtain_after(registry, late, name);
    both[0] = lock_obtain(registry, f->name);
    both[1] = lock_obtain(registry, name);
    lock_take(taken, 0);
    brief.ttl_ms = TTL_MS;
    assert_ok(sqlock_request_acquire(&request, late, PATIENCE_MS, &brief, 0,
                                     &f->err));
    assert_becomes_true(queue_is_waited_at(f), PATIENCE_MS);
    lock_give(holder);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_becomes_true(!sqlock_is_held(late), PATIENCE_MS);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(both, 2, 100, NULL, NULL, &f->err));
    assert_true(sqlock_request_finish(request, &f->err) < 0);
    lock_give(taken);
    registry_end(registry);
    assert_becomes_true(count_sessions(f) <= before, PATIENCE_MS);
    lock_drop(holder);
}

static const struct test tests[] = {
    TEST_ON(test_a_count_that_is_undone_is_not_the_next_holders, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_a_doubt_does_not_end_the_claim_of_both, ON_ALL, IN_SQLOCK),
    TEST_ON(test_renewals_go_on_after_a_late_holder_comes_back, ON_ALL,
            IN_SQLOCK),
    TEST(test_finishing_waits_for_on_lost),
    TEST(test_a_holder_that_was_late_renews_its_next_lease),
    TEST_ON(test_a_lease_set_aside_in_vain_gives_up_its_place, ON_SERVERS,
            IN_SQLOCK),
};

const struct topic topic_late = TOPIC(tests);
