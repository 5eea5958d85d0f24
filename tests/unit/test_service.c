/*
 * test_service.c - the thread of a service: when it runs a handler, and that it
 * runs none after a stop
 */
#include "support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/service.h"
#include "db/driver.h"

#define TASKS "/proc/self/task"
#define RUNS_MAX 64

/* A service and two handlers a and b.  Their runs are logged in `order`. */
struct scene {
    struct lk_service service;
    struct probe {
        struct scene *scene;
        struct lk_handler handler;
        int64_t next_ns;       /* result of its run */
        atomic_bool is_held;   /* run and ready do not return meanwhile */
        atomic_uint runs;      /* number of runs that have begun */
        atomic_bool is_inside; /* in run or ready */
        atomic_int fd;         /* descriptor that was ready last; -1: none */
        atomic_uint readies;
        bool stops_itself;
    } a, b;
    char order[RUNS_MAX];
    atomic_uint turns;
    size_t threads; /* of the process, before the service's */
};

static void note_turn(struct probe *probe)
{
    unsigned turn = atomic_load(&probe->scene->turns);

    if (turn < RUNS_MAX)
        probe->scene->order[turn] = probe == &probe->scene->a ? 'a' : 'b';
    atomic_fetch_add(&probe->scene->turns, 1);
}

static int64_t run_probe(void *owner)
{
    struct probe *probe = owner;

    atomic_store(&probe->is_inside, true);
    note_turn(probe);
    atomic_fetch_add(&probe->runs, 1);
    while (atomic_load(&probe->is_held))
        (void)check_pause(INT64_MAX);
    if (probe->stops_itself)
        lk_handler_stop(&probe->handler);
    atomic_store(&probe->is_inside, false);
    return probe->next_ns;
}

static void ready_probe(void *owner, int fd)
{
    struct probe *probe = owner;

    atomic_store(&probe->is_inside, true);
    atomic_store(&probe->fd, fd);
    atomic_fetch_add(&probe->readies, 1);
    while (atomic_load(&probe->is_held))
        (void)check_pause(INT64_MAX);
    atomic_store(&probe->is_inside, false);
}

static void init_probe(struct scene *scene, struct probe *probe)
{
    probe->scene = scene;
    probe->next_ns = LK_NEVER;
    probe->fd = -1;
    lk_handler_init(&probe->handler, &scene->service, run_probe, ready_probe,
                    probe);
}

static void *note_tid(void *argument)
{
    pid_t *tid = argument;

    *tid = gettid();
    return NULL;
}

/* Run a thread to its end.  With the first thread a sanitizer may start one of
 * its own, which is to be there when the threads are counted. */
static void have_had_a_thread(void)
{
    pthread_t thread;
    char path[64];
    pid_t tid;

    assert_int_equal(pthread_create(&thread, NULL, note_tid, &tid), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)snprintf(path, sizeof path, TASKS "/%ld", (long)tid);
    assert_becomes_true(access(path, F_OK) != 0, PATIENCE_MS);
}

static struct scene *stage; /* of the test that runs */

static void open_scene(void)
{
    struct scene *scene = calloc(1, sizeof *scene);

    assert_non_null(scene);
    have_had_a_thread();
    scene->threads = check_entries(TASKS);
    lk_service_init(&scene->service);
    init_probe(scene, &scene->a);
    init_probe(scene, &scene->b);
    stage = scene;
}

static void close_scene(void)
{
    atomic_store(&stage->a.is_held, false);
    atomic_store(&stage->b.is_held, false);
    lk_service_stop(&stage->service);
    lk_service_stop(&stage->service); /* does nothing */
    assert_becomes_true(check_entries(TASKS) <= stage->threads, PATIENCE_MS);
    free(stage);
}

static void start(struct probe *probe)
{
    sqlock_error err = {0};
    int rc = lk_handler_start(&probe->handler, &err);

    assert_lock_ok(rc, &err);
}

/* Wait until the service's thread has nothing to run, and sleeps. */
static void await_sleep(struct scene *scene)
{
    int64_t wakes_ns;

    do {
        (void)check_pause(INT64_MAX);
        pthread_mutex_lock(&scene->service.mutex);
        wakes_ns = scene->service.wakes_ns;
        pthread_mutex_unlock(&scene->service.mutex);
    } while (wakes_ns == 0);
}

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_scene, .close = close_scene)

SCENE_TEST(test_no_thread_before_the_first_handler)
{
    lk_handler_wake(&stage->a.handler);
    assert_int_equal(check_entries(TASKS), stage->threads);
    start(&stage->a);
    start(&stage->a);
    start(&stage->b);
    assert_int_equal(check_entries(TASKS), stage->threads + 1);
    await_sleep(stage);
    assert_int_equal(atomic_load(&stage->turns), 0); /* no handler was woken */
}

SCENE_TEST(test_a_handler_runs_when_it_is_woken)
{
    start(&stage->a);
    for (unsigned n = 1; n <= 3; n++) {
        await_sleep(stage);
        lk_handler_wake(&stage->a.handler);
        assert_becomes_true(atomic_load(&stage->a.runs) == n, PATIENCE_MS);
    }
}

SCENE_TEST(test_a_wake_during_a_run_is_another_run)
{
    start(&stage->a);
    atomic_store(&stage->a.is_held, true);
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.is_inside), PATIENCE_MS);
    lk_handler_wake(&stage->a.handler);
    lk_handler_wake(&stage->a.handler);
    atomic_store(&stage->a.is_held, false);
    assert_becomes_true(atomic_load(&stage->a.runs) == 2, PATIENCE_MS);
    await_sleep(stage);
    assert_int_equal(atomic_load(&stage->a.runs), 2);
}

SCENE_TEST(test_handlers_run_in_turns)
{
    start(&stage->a);
    start(&stage->b);
    atomic_store(&stage->a.is_held, true);
    stage->a.next_ns = 0; /* each is always due */
    stage->b.next_ns = 0;
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.is_inside), PATIENCE_MS);
    lk_handler_wake(&stage->b.handler);
    atomic_store(&stage->a.is_held, false);
    assert_becomes_true(atomic_load(&stage->turns) >= 8, PATIENCE_MS);
    assert_memory_equal(stage->order, "abababab", 8);
}

SCENE_TEST(test_a_handler_runs_at_its_time)
{
    int64_t at_ns = lk_boottime_ns() + 20 * LK_NS_PER_MS;

    start(&stage->a);
    await_sleep(stage);
    lk_handler_wake_at(&stage->a.handler, at_ns + 3600 * 1000 * LK_NS_PER_MS);
    lk_handler_wake_at(&stage->a.handler, at_ns);
    assert_becomes_true(atomic_load(&stage->a.runs) > 0, PATIENCE_MS);
    assert_true(lk_boottime_ns() >= at_ns);
    await_sleep(stage);
    stage->a.next_ns = lk_boottime_ns() + 20 * LK_NS_PER_MS;
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.runs) >= 3, PATIENCE_MS);
    assert_true(lk_boottime_ns() >= stage->a.next_ns);
}

static void *stop_a(void *argument)
{
    struct scene *scene = argument;

    lk_handler_stop(&scene->a.handler);
    return atomic_load(&scene->a.is_inside) ? argument : NULL;
}

SCENE_TEST(test_a_stopped_handler_is_not_running)
{
    pthread_t thread;
    void *was_inside = stage;

    start(&stage->a);
    start(&stage->b);
    atomic_store(&stage->a.is_held, true);
    stage->a.next_ns = 0;
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.is_inside), PATIENCE_MS);
    assert_int_equal(pthread_create(&thread, NULL, stop_a, stage), 0);
    for (int i = 0; i < 20; i++)
        (void)check_pause(INT64_MAX); /* stop_a() waits meanwhile */
    atomic_store(&stage->a.is_held, false);
    assert_int_equal(pthread_join(thread, &was_inside), 0);
    assert_null(was_inside);
    assert_int_equal(atomic_load(&stage->a.runs), 1);
    lk_handler_wake(&stage->a.handler); /* does nothing */
    lk_handler_wake(&stage->b.handler);
    assert_becomes_true(atomic_load(&stage->b.runs) == 1, PATIENCE_MS);
    assert_int_equal(atomic_load(&stage->a.runs), 1);
}

SCENE_TEST(test_a_handler_stops_itself)
{
    start(&stage->a);
    stage->a.stops_itself = true;
    stage->a.next_ns = 0;
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.runs) == 1, PATIENCE_MS);
    start(&stage->b);
    lk_handler_wake(&stage->b.handler);
    assert_becomes_true(atomic_load(&stage->b.runs) == 1, PATIENCE_MS);
    assert_int_equal(atomic_load(&stage->a.runs), 1);
    start(&stage->a); /* again */
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.runs) == 2, PATIENCE_MS);
}

static int open_eventfd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}

static void make_readable(int fd)
{
    uint64_t one = 1;

    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

static void watch(struct probe *probe, int fd)
{
    sqlock_error err = {0};
    int rc = lk_handler_watch(&probe->handler, fd, &err);

    assert_lock_ok(rc, &err);
}

SCENE_TEST(test_a_ready_descriptor_is_told_once)
{
    struct probe *a = &stage->a;
    int first = open_eventfd();
    int second = open_eventfd();

    start(a);
    watch(a, first);
    watch(a, second);
    watch(a, second); /* does nothing */
    make_readable(second);
    assert_becomes_true(atomic_load(&a->readies) == 1, PATIENCE_MS);
    assert_int_equal(atomic_load(&a->fd), second);
    await_sleep(stage); /* although `second` is still readable */
    assert_int_equal(atomic_load(&a->readies), 1);
    watch(a, second);
    assert_becomes_true(atomic_load(&a->readies) == 2, PATIENCE_MS);
    lk_handler_unwatch(&a->handler, first);
    make_readable(first);
    lk_handler_wake(&a->handler);
    assert_becomes_true(atomic_load(&a->runs) == 1, PATIENCE_MS);
    assert_int_equal(atomic_load(&a->readies), 2);
    (void)close(first);
    (void)close(second);
}

/* A descriptor does not wait for handlers that are always due. */
SCENE_TEST(test_descriptors_are_served_between_runs)
{
    int fd = open_eventfd();

    start(&stage->a);
    start(&stage->b);
    stage->b.next_ns = 0;
    lk_handler_wake(&stage->b.handler);
    assert_becomes_true(atomic_load(&stage->b.runs) > 0, PATIENCE_MS);
    watch(&stage->a, fd);
    make_readable(fd);
    assert_becomes_true(atomic_load(&stage->a.readies) == 1, PATIENCE_MS);
    (void)close(fd);
}

SCENE_TEST(test_what_is_ready_is_not_told_to_who_has_stopped)
{
    int fd = open_eventfd();

    start(&stage->a);
    start(&stage->b);
    watch(&stage->a, fd);
    atomic_store(&stage->b.is_held, true);
    lk_handler_wake(&stage->b.handler);
    assert_becomes_true(atomic_load(&stage->b.is_inside), PATIENCE_MS);
    make_readable(fd);
    lk_handler_stop(&stage->a.handler);
    atomic_store(&stage->b.is_held, false);
    await_sleep(stage);
    assert_int_equal(atomic_load(&stage->a.readies), 0);
    (void)close(fd);
}

SCENE_TEST(test_a_stopped_service_runs_nothing)
{
    sqlock_error err = {0};
    int rc;

    start(&stage->a);
    stage->a.next_ns = 0;
    lk_handler_wake(&stage->a.handler);
    assert_becomes_true(atomic_load(&stage->a.runs) > 0, PATIENCE_MS);
    lk_service_stop(&stage->service);
    assert_false(atomic_load(&stage->a.is_inside));
    assert_becomes_true(check_entries(TASKS) <= stage->threads, PATIENCE_MS);
    lk_handler_wake(&stage->a.handler);
    lk_handler_stop(&stage->a.handler);
    rc = lk_handler_start(&stage->b.handler, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
}
