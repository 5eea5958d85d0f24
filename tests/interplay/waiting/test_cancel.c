/*
 * test_cancel.c - waits that are ended from outside, or by their deadlines
 */
#include "suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "locks/registry.h"
#include "sqlock/many.h"
#include "support/proxy.h"
#include "support/tap.h"

static void write_to(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        abort();
}

/* Release the lock, and check that its row is free: no cancelled wait claims
 * it. */
static void expect_no_ghost(struct fixture *f, sqlock_lock *held)
{
    struct row row;

    lock_give(held);
    row = fixture_row(f, f->name);
    assert_true(!row.exists || row.client[0] == '\0');
}

/* A contender of registry f->b waits, with a cancel_fd, for a lock that f->a
 * holds. */
struct scene {
    struct fixture *f;
    sqlock_lock *held;
    sqlock_lock *lock; /* the contender's */
    sqlock_acquire_options options;
    struct contender contender;
};

static void open_scene(struct scene *scene, struct fixture *f, int cancel_fd)
{
    memset(scene, 0, sizeof *scene);
    scene->f = f;
    scene->held = lock_obtain(f->a, f->name);
    scene->lock = lock_obtain(f->b, f->name);
    scene->options = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    scene->options.cancel_fd = cancel_fd;
    scene->contender.options = &scene->options;
    lock_take(scene->held, 0);
    contender_queue(&scene->contender, scene->lock, SQLOCK_FOREVER);
}

/* Check that a wait with the scene's descriptor is cancelled. */
static void expect_refused(struct scene *scene)
{
    assert_code(SQLOCK_ECANCELED,
                sqlock_acquire(scene->lock, SQLOCK_FOREVER, &scene->options,
                               &scene->f->err),
                &scene->f->err);
}

static void close_scene(struct scene *scene)
{
    lock_drop(scene->lock);
    lock_drop(scene->held);
}

static void test_cancel_ends_a_wait_for_another_process(void **state)
{
    struct fixture *f = *state;
    struct scene scene;

    open_scene(&scene, f, 0);
    assert_ok(sqlock_cancel(scene.lock, &f->err));
    contender_expect(&scene.contender, SQLOCK_ECANCELED);
    expect_no_ghost(f, scene.held);
    lock_take(scene.lock, 0); /* later waits go on */
    lock_give(scene.lock);
    close_scene(&scene);
}

static void test_cancel_ends_all_waits_of_the_process(void **state)
{
    struct fixture *f = *state;
    struct contender contenders[3];
    struct scene scene;

    memset(contenders, 0, sizeof contenders);
    open_scene(&scene, f, 0);
    for (size_t i = 0; i < 3; i++)
        contender_queue(&contenders[i], scene.lock, SQLOCK_FOREVER);
    assert_ok(sqlock_cancel(scene.lock, &f->err));
    contender_expect(&scene.contender, SQLOCK_ECANCELED);
    for (size_t i = 0; i < 3; i++)
        contender_expect(&contenders[i], SQLOCK_ECANCELED);
    expect_no_ghost(f, scene.held);
    close_scene(&scene);
}

/* Three threads are in the FIFO, and the wait of the second one is cancelled:
 * the others get the lock. */
static void test_a_cancelled_thread_leaves_the_queue(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct contender first = {0};
    struct contender second = {.options = &options};
    struct contender third = {0};

    options.cancel_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(options.cancel_fd > 0);
    lock_take(lock, 0);
    contender_queue(&first, lock, SQLOCK_FOREVER);
    contender_queue(&second, lock, SQLOCK_FOREVER);
    contender_queue(&third, lock, SQLOCK_FOREVER);
    write_to(options.cancel_fd);
    contender_expect(&second, SQLOCK_ECANCELED);
    assert_int_equal(atomic_load(&first.rc), 1);
    assert_int_equal(atomic_load(&third.rc), 1);
    lock_give(lock);
    contender_finish(&first);
    contender_finish(&third);
    (void)close(options.cancel_fd);
    lock_drop(lock);
}

static void test_a_descriptor_ends_a_wait_for_another_process(void **state)
{
    struct fixture *f = *state;
    int fd = eventfd(0, EFD_CLOEXEC);
    struct scene scene;

    open_scene(&scene, f, fd);
    write_to(fd);
    contender_expect(&scene.contender, SQLOCK_ECANCELED);
    /* The descriptor stays readable: later waits end, too, even if the lock is
     * free. */
    expect_refused(&scene);
    expect_no_ghost(f, scene.held);
    expect_refused(&scene);
    assert_ok(sqlock_acquire(scene.lock, 0, &scene.options,
                             &f->err)); /* does not wait */
    lock_give(scene.lock);
    (void)close(fd);
    close_scene(&scene);
}

/* The write end of the pipe is closed, without a write before. */
static void test_a_pipe_that_hangs_up_ends_a_wait(void **state)
{
    struct fixture *f = *state;
    struct scene scene;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    open_scene(&scene, f, ends[0]);
    assert_int_equal(atomic_load(&scene.contender.rc), 1);
    (void)close(ends[1]);
    contender_expect(&scene.contender, SQLOCK_ECANCELED);
    expect_refused(&scene);
    expect_no_ghost(f, scene.held);
    (void)close(ends[0]);
    close_scene(&scene);
}

static int signal_fd;

static void on_signal(int number)
{
    (void)number;
    write_to(signal_fd);
}

static void test_a_signal_handler_ends_a_wait(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    struct scene scene;

    signal_fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
    open_scene(&scene, f, signal_fd);
    assert_int_equal(pthread_kill(scene.contender.worker.thread, SIGUSR2), 0);
    contender_expect(&scene.contender, SQLOCK_ECANCELED);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
    expect_no_ghost(f, scene.held);
    (void)close(signal_fd);
    close_scene(&scene);
}

static void test_many_locks_are_cancelled_by_any_of_them(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *locks[2];
    char other[80];
    struct contender contender = {0};

    (void)snprintf(other, sizeof other, "%s other", f->name);
    locks[0] = lock_obtain(f->b, f->name);
    locks[1] = lock_obtain(f->b, other);
    lock_take(held, 0);
    contender.many = locks;
    contender.many_count = 2;
    contender_queue(&contender, locks[0], SQLOCK_FOREVER);
    assert_ok(sqlock_cancel(locks[1], &f->err));
    contender_expect(&contender, SQLOCK_ECANCELED);
    expect_no_ghost(f, held);
    lock_drop(locks[0]);
    lock_drop(locks[1]);
    lock_drop(held);
}

struct canceller {
    sqlock_lock *lock;
    atomic_bool is_done;
    unsigned rounds;
};

static int cancel_often(struct worker *worker)
{
    struct canceller *canceller = worker->context;

    while (!atomic_load(&canceller->is_done)) {
        worker_expect(worker, 0, sqlock_cancel(canceller->lock, &worker->err));
        (void)check_pause(INT64_MAX);
    }
    return 0;
}

static int acquire_rounds(struct worker *worker, bool as_many)
{
    struct canceller *canceller = worker->context;

    for (unsigned i = 0; i < canceller->rounds; i++) {
        int rc = as_many
                     ? sqlock_acquire_many(&canceller->lock, 1, SQLOCK_FOREVER,
                                           NULL, NULL, &worker->err)
                     : sqlock_acquire(canceller->lock, SQLOCK_FOREVER, NULL,
                                      &worker->err);

        if (rc != 0 && rc != SQLOCK_ECANCELED)
            return worker_fail(worker, "%s gave %d: %s",
                               as_many ? "acquire_many" : "acquire", rc,
                               worker->err.message);
        if (rc == 0)
            worker_expect(worker, 0,
                          sqlock_release(canceller->lock, &worker->err));
    }
    return 0;
}

static int acquire_often(struct worker *worker)
{
    return acquire_rounds(worker, false);
}

static int acquire_as_many_often(struct worker *worker)
{
    return acquire_rounds(worker, true);
}

/* One thread cancels the waits of others again and again, at whatever stage
 * they are: in the end the lock is free. */
static void test_cancellation_at_every_stage(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct canceller canceller = {.rounds = check_scale(40, 2000)};
    struct worker killer;
    struct workers workers;
    struct worker outsider;
    struct worker collector;
    struct canceller outside = {.lock = other, .rounds = canceller.rounds / 4};

    canceller.lock = lock_obtain(f->a, f->name);
    worker_start(&outsider, acquire_often, &outside);
    worker_start(&killer, cancel_often, &canceller);
    worker_start(&collector, acquire_as_many_often, &canceller);
    workers_start(&workers, 4, acquire_often, &canceller);
    workers_join(&workers);
    worker_join(&collector);
    worker_join(&outsider);
    atomic_store(&canceller.is_done, true);
    worker_join(&killer);
    lock_take(other, 0);
    expect_no_ghost(f, other);
    lock_drop(canceller.lock);
    lock_drop(other);
}

/* Short waits time out; the longest possible waits do not end early by an
 * overflow. */
static void test_deadlines_are_kept_and_the_longest_do_not_wrap(void **state)
{
    static const int64_t longest[] = {INT64_MAX, INT64_MAX - 1,
                                      INT64_MAX / 1000000, SQLOCK_FOREVER};
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    int rc;

    lock_take(held, 0);
    for (int64_t wait_ms = 1; wait_ms < 400; wait_ms = wait_ms * 7 + 3) {
        rc = lock_try(lock, wait_ms, 0, &f->err);
        assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
    }
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        struct contender contender = {0};

        contender_queue(&contender, lock, longest[i]);
        assert_int_equal(atomic_load(&contender.rc), 1);
        assert_ok(sqlock_cancel(lock, &f->err));
        contender_expect(&contender, SQLOCK_ECANCELED);
    }
    expect_no_ghost(f, held);
    lock_drop(lock);
    lock_drop(held);
}

/* A session that waits in the queue could be ended by KILL on another
 * connection.  But that one may lead to another server, where the number is
 * that of someone else's session.  So nothing is sent when the wait is
 * cancelled: the server notices the closed socket and ends the session, and the
 * next waiter does not wait behind it. */
static void test_no_session_is_ended_from_another_one(void **state)
{
    static const struct proxy_plan plan = {.point = PROXY_BEFORE,
                                           .act = PROXY_PASS,
                                           .nth = 0,
                                           .containing = "KILL "};
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct proxy *proxy = proxy_open(f->database, f->url);
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct contender contender = {0};
    char url[1024];
    sqlock_registry *registry;
    sqlock_lock *lock;

    assert_non_null(proxy);
    options.poll_ms = 3600000; /* no polling: only the queue */
    registry = fixture_registry_at(f, proxy_url(proxy, url, f->url), &options);
    lock = lock_obtain(registry, f->name);
    lock_take(held, 0);
    lock_give(held); /* the row exists now */
    lock_take(held, 0);
    contender_queue(&contender, lock, SQLOCK_FOREVER);
    assert_becomes_true(queue_is_waited_at(f), PATIENCE_MS);
    proxy_arm(proxy, &plan);
    assert_ok(sqlock_cancel(lock, &f->err));
    contender_expect(&contender, SQLOCK_ECANCELED);
    assert_becomes_true(!queue_is_waited_at(f), PATIENCE_MS);
    lock_give(held);
    lock_take(lock, 0);
    lock_give(lock);
    assert_int_equal(proxy_times(proxy), 0);
    proxy_heal(proxy);
    lock_drop(lock);
    registry_end(registry);
    proxy_close(proxy);
    lock_drop(held);
}

#define QUEUE_FIRST 2000

static int64_t processor_ms(void)
{
    struct timespec used;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Begin QUEUE_FIRST requests with that cancel_fd (0: none), then abandon them
 * all.  Return the processor time that this took, in ms. */
static int64_t ask_and_abandon(struct fixture *f, sqlock_lock *lock, int fd)
{
    sqlock_request **requests = calloc(QUEUE_FIRST, sizeof *requests);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int64_t began = processor_ms();

    assert_non_null(requests);
    options.cancel_fd = fd;
    for (size_t i = 0; i < QUEUE_FIRST; i++)
        requests[i] = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    for (size_t i = 0; i < QUEUE_FIRST; i++)
        request_give_up(f, requests[i]);
    free(requests);
    return processor_ms() - began;
}

/* Many requests share one cancel_fd: watching it for all of them costs no more
 * than the requests do.  A former version, which made an array of all anew for
 * each request, took a hundred times as long. */
static void
test_a_crowd_with_descriptors_costs_what_one_without_does(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int fd = eventfd(0, EFD_CLOEXEC);
    int64_t without;
    int64_t with;

    lock_take(lock, 0);
    without = ask_and_abandon(f, lock, 0);
    with = ask_and_abandon(f, lock, fd);
    assert_less(with, 3 * without + 200);
    lock_give(lock);
    (void)close(fd);
    lock_drop(lock);
}

/* Three requests have one cancel_fd, and one of them is abandoned: a write ends
 * the other two.  A second round repeats this when the number of the descriptor
 * belongs to another file. */
static void test_a_descriptor_ends_all_waits_that_have_it(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *requests[3];
    int another;

    options.cancel_fd = eventfd(0, EFD_CLOEXEC);
    lock_take(lock, 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++)
            requests[i] = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
        request_give_up(f, requests[1]);
        assert_int_equal(sqlock_request_status(requests[0]),
                         SQLOCK_REQUEST_FETCHING);
        write_to(options.cancel_fd);
        request_expect(f, requests[0], SQLOCK_REQUEST_FREE, SQLOCK_ECANCELED);
        request_expect(f, requests[2], SQLOCK_REQUEST_FREE, SQLOCK_ECANCELED);
        another = eventfd(0, EFD_CLOEXEC);
        assert_int_equal(dup3(another, options.cancel_fd, O_CLOEXEC),
                         options.cancel_fd);
        (void)close(another);
    }
    lock_give(lock);
    (void)close(options.cancel_fd);
    lock_drop(lock);
}

/* A descriptor may be closed after its event and before the handler runs, and
 * its number may be given to another file.  The handler, called here for a
 * descriptor that is not ready, must not end the waits that have the new
 * file. */
static void test_a_descriptor_that_was_ready_before_ends_no_wait(void **state)
{
    struct fixture *f = *state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    const struct lk_handler *handler = &f->a->entries.canceller.handler;
    sqlock_request *request;

    options.cancel_fd = eventfd(0, EFD_CLOEXEC);
    lock_take(lock, 0);
    request = request_ask(f, lock, SQLOCK_FOREVER, &options, 0);
    handler->ready(handler->owner, options.cancel_fd);
    lock_give(lock);
    request_expect(f, request, SQLOCK_REQUEST_HELD, 0);
    lock_give(lock);
    (void)close(options.cancel_fd);
    lock_drop(lock);
}

/* A descriptor of 0 stands for none, so that options of zeros ask for nothing;
 * a negative one is an error. */
static void test_a_negative_descriptor_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_request *request = NULL;
    int rc;

    rc = sqlock_request_acquire(&request, lock, 0, NULL, -1, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_null(request);
    options.cancel_fd = -1;
    assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, 0, &options, &f->err));
    lock_take(lock, 0);
    rc = sqlock_request_release(&request, lock, -1, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_int_equal(sqlock_hold_count(lock), 1);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST(test_a_negative_descriptor_is_refused),
    TEST(test_cancel_ends_a_wait_for_another_process),
    TEST_ON(test_no_session_is_ended_from_another_one, ON_SERVERS, IN_SQLOCK),
    TEST(test_cancel_ends_all_waits_of_the_process),
    TEST(test_a_cancelled_thread_leaves_the_queue),
    TEST(test_a_descriptor_ends_a_wait_for_another_process),
    TEST(test_a_pipe_that_hangs_up_ends_a_wait),
    TEST(test_a_signal_handler_ends_a_wait),
    TEST(test_a_descriptor_ends_all_waits_that_have_it),
    TEST(test_a_descriptor_that_was_ready_before_ends_no_wait),
    TEST_ON(test_a_crowd_with_descriptors_costs_what_one_without_does,
            ON_SQLITE, IN_SQLOCK),
    TEST(test_many_locks_are_cancelled_by_any_of_them),
    TEST(test_cancellation_at_every_stage),
    TEST(test_deadlines_are_kept_and_the_longest_do_not_wrap),
};

const struct topic topic_cancel = TOPIC(tests);
