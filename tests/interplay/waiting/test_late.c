/*
 * test_late.c - holders that act after their leases are over: they do not
 * change the lease of the next holder
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"

/* TTL of leases that are to run out. */
#define TTL_MS (600 * SLOWNESS)

/* --- nested acquires --- */

struct scene {
    sqlock_registry *tapped;
    sqlock_lock *locks[2];
    char key[SQLOCK_KEY_SIZE]; /* of locks[1], whose claims are disturbed */
    struct contender next;
    atomic_int code; /* result of these claims; 0: send them */
    atomic_uint times;
};

/* Obtain two locks in a registry with a tap.  `name` gets the name of the
 * second. */
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

/* The registry, which is the owner, holds locks[0].  One thread acquires both
 * locks, and its claim of locks[1] is in doubt.  Another thread releases
 * locks[0], so that the first thread then claims both.  The statements that
 * resolve the claim in doubt must not release the lease of locks[1]. */
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
    /* Between two attempts the acquire of locks[0] is not counted. */
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

/* --- a holder that was late, and holds the next lease --- */

/* Obtain a lock whose key is greater than that of `before`, because locks are
 * entered in the order of their keys.  `name` gets its name. */
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

/* Return the number of sessions at the server. */
static int64_t count_sessions(struct fixture *f)
{
    return sql_integer(&f->sql, f->database->bit == ON_POSTGRES
                                    ? "SELECT count(*) FROM pg_stat_activity "
                                      "WHERE backend_type = 'client backend'"
                                    : "SELECT count(*) FROM "
                                      "information_schema.PROCESSLIST");
}

/* A lease that was waited for keeps the queue lock.  When the lease is over, an
 * acquire of two locks sets it aside, but has to wait for the second lock, and
 * claims neither: the queue lock is given up all the same. */
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

    lock_take_and_give(holder); /* MySQL: an insert takes no queue lock */
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
    TEST_ON(test_a_doubt_does_not_end_the_claim_of_both, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_lease_set_aside_in_vain_gives_up_its_place, ON_SERVERS,
            IN_SQLOCK),
};

const struct topic topic_late = TOPIC(tests);
