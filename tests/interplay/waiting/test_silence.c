/*
 * test_silence.c - the network loses all that is sent (silence) while a
 * registry waits in the database's queue, or has the queue lock of a lease
 * (F42)
 *
 * The client library has no short time limit for calls on these connections:
 * without a limit of our own, each would last for most of an hour.
 */
#include "suite.h"

#include <string.h>

#include "support/proxy.h"

/* The time limit of a statement.  The tests wait until it is over, in silence,
 * which takes no longer on a busy machine. */
#define STATEMENT_MS (500 * SLOWNESS)
#define LONG_MS 3600000

struct scene {
    struct fixture *f;
    struct proxy *proxy;
    sqlock_registry *registry; /* through the proxy */
    sqlock_lock *lock;
    sqlock_lock *held; /* handle of f->a, which holds the same lock */
    sqlock_acquire_options hasty;
    struct contender next;
};

static void open_scene(struct scene *scene, struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    char url[1024];

    memset(scene, 0, sizeof *scene);
    scene->f = f;
    scene->proxy = proxy_open(f->database, f->url);
    assert_non_null(scene->proxy);
    options.statement_timeout_ms = STATEMENT_MS;
    options.connect_timeout_ms = 2 * STATEMENT_MS;
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.poll_ms = LONG_MS; /* no polling: only the queue */
    (void)proxy_url(scene->proxy, url, f->url);
    /* A busy machine may miss these deadlines once or twice. */
    assert_becomes_true(
        sqlock_registry_open(&scene->registry, url, &options, &f->err) == 0,
        PATIENCE_MS);
    scene->lock = lock_obtain(scene->registry, f->name);
    scene->held = lock_obtain(f->a, f->name);
    lock_take(scene->held, 0);
}

static void close_scene(struct scene *scene)
{
    proxy_heal(scene->proxy);
    if (scene->registry != NULL) {
        lock_drop(scene->lock);
        registry_end(scene->registry);
    }
    lock_drop(scene->held);
    proxy_close(scene->proxy);
}

/* When the next statement with that text is sent, stop it and everything after
 * it. */
static void fall_silent_at(struct scene *scene, const char *text)
{
    const struct proxy_plan plan = {.point = PROXY_BEFORE,
                                    .act = PROXY_BLACKHOLE,
                                    .nth = 1,
                                    .containing = text};

    proxy_arm(scene->proxy, &plan);
}

static bool is_over(const struct scene *scene)
{
    return atomic_load(&scene->next.rc) <= 0;
}

static void start(struct scene *scene)
{
    scene->hasty = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    scene->hasty.fail_fast = true; /* end with the first error */
    scene->next.options = &scene->hasty;
    contender_start(&scene->next, scene->lock, SQLOCK_FOREVER);
}

/* Check that the contender's acquire ends, with the code of an outage. */
static void expect_outage(struct scene *scene)
{
    assert_becomes_true(is_over(scene), PATIENCE_MS);
    worker_join(&scene->next.worker);
    assert_code_of(SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE,
                   atomic_load(&scene->next.rc), &scene->next.worker.err);
}

/* Start the contender, and wait until it is in the queue behind the holder: on
 * a busy machine this may take several attempts. */
static void start_behind(struct scene *scene)
{
    start(scene);
    while (!wait_until(queue_is_waited_at(scene->f) || is_over(scene),
                       PATIENCE_MS) ||
           is_over(scene)) {
        expect_outage(scene);
        start(scene);
    }
}

/* Let data pass again, and check that another registry gets the lock: the wait
 * that failed has left nothing that keeps others away. */
static void expect_free(struct scene *scene)
{
    sqlock_lock *theirs = lock_obtain(scene->f->b, scene->f->name);

    proxy_heal(scene->proxy);
    lock_take(theirs, 0);
    lock_end(theirs);
}

/* The waiter gets the queue lock, and its claim is not answered: the wait ends
 * without waiting for another answer, to a statement that gives the queue lock
 * up. */
static void test_F42_silence_after_the_turn_was_given(void **state)
{
    struct scene scene;

    open_scene(&scene, *state);
    lock_give(scene.held); /* the row exists now */
    while (proxy_times(scene.proxy) == 0) {
        lock_take(scene.held, 0);
        start_behind(&scene);
        fall_silent_at(&scene, scene.f->name); /* only claims have the name */
        lock_give(scene.held);
        expect_outage(&scene);
    }
    expect_free(&scene);
    close_scene(&scene);
}

/* Check a wait that finds the lock held, and sends a statement with that text:
 * nothing passes from that statement on. */
static void check_silence_at(struct fixture *f, const char *text)
{
    struct scene scene;

    open_scene(&scene, f);
    fall_silent_at(&scene, text);
    while (proxy_times(scene.proxy) == 0) {
        start(&scene);
        expect_outage(&scene);
    }
    lock_give(scene.held);
    expect_free(&scene);
    close_scene(&scene);
}

/* At its first wait a registry asks whether each of its connections has a
 * server session of its own. */
static void test_F42_silence_while_sessions_are_compared(void **state)
{
    check_silence_at(*state, "CAST(CONNECTION_ID()");
}

/* The holder's claim has inserted the row, and such a claim takes no queue lock
 * on MySQL.  So the waiter gets the queue lock while the row is taken; the
 * statement that gives the queue lock up is not answered. */
static void test_F42_silence_while_a_turn_is_given_up(void **state)
{
    check_silence_at(*state, "SELECT RELEASE_LOCK(");
}

static int take_and_keep(struct worker *worker)
{
    struct scene *scene = worker->context;

    atomic_store(&scene->next.rc, sqlock_acquire(scene->lock, SQLOCK_FOREVER,
                                                 NULL, &worker->err));
    return 0;
}

/* The registry holds a lock that it has waited for, and with it the queue
 * lock. */
static void test_F42_silence_while_a_registry_is_closed(void **state)
{
    struct scene scene;
    int rc = SQLOCK_EUNREACHABLE;

    open_scene(&scene, *state);
    lock_give(scene.held);
    for (unsigned i = 0; i < 10 && rc < 0; i++) {
        lock_take(scene.held, 0);
        atomic_store(&scene.next.rc, 1);
        worker_start(&scene.next.worker, take_and_keep, &scene);
        assert_becomes_true(queue_is_waited_at(scene.f) || is_over(&scene),
                            PATIENCE_MS);
        lock_give(scene.held);
        worker_join(&scene.next.worker);
        rc = atomic_load(&scene.next.rc);
    }
    assert_lock_ok(rc, &scene.next.worker.err);
    proxy_blackhole(scene.proxy);
    rc = sqlock_registry_close(scene.registry, &scene.f->err);
    assert_code_of(SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE, rc, &scene.f->err);
    scene.registry = NULL;
    close_scene(&scene);
}

static const struct test tests[] = {
    TEST_ON(test_F42_silence_after_the_turn_was_given, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_F42_silence_while_sessions_are_compared, ON_MYSQL, IN_SQLOCK),
    TEST_ON(test_F42_silence_while_a_turn_is_given_up, ON_MYSQL, IN_SQLOCK),
    TEST_ON(test_F42_silence_while_a_registry_is_closed, ON_SERVERS, IN_SQLOCK),
};

const struct topic topic_silence = TOPIC(tests);
