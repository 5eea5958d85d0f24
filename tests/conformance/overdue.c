/*
 * overdue.c - the loss of a lease whose holder did not run is told all the same
 */
#include "conformance.h"

#include <poll.h>
#include <signal.h>

#include "sqlock/async.h"
#include "support/workers.h"

#define LONG_MS 120000 /* longer than PATIENCE_MS */
#define SHORT_MS (1500 * SLOWNESS)

/* A thread that waits for the lock that the test's thread holds. */
struct next {
    sqlock_lock *lock;
    struct worker worker;
    atomic_bool has_it;
};

static int wait_and_release(struct worker *worker)
{
    struct next *next = worker->context;

    worker_expect(
        worker, 0,
        sqlock_acquire(next->lock, SQLOCK_FOREVER, NULL, &worker->err));
    atomic_store(&next->has_it, true);
    worker_expect(worker, 0, sqlock_release(next->lock, &worker->err));
    return 0;
}

static void end(struct next *next)
{
    worker_join(&next->worker);
    lock_drop(next->lock);
}

/* --- a holder that does not run --- */

static atomic_bool is_paused; /* the thread is in the handler */
static atomic_bool may_go_on;

static void pause_thread(int signal)
{
    (void)signal;
    atomic_store(&is_paused, true);
    while (!atomic_load(&may_go_on))
        (void)poll(NULL, 0, 1);
}

/* Pause the thread, by a signal, until may_go_on. */
static void pause_worker(const struct worker *worker)
{
    struct sigaction action = {.sa_handler = pause_thread};

    atomic_store(&is_paused, false);
    atomic_store(&may_go_on, false);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(worker->thread, SIGUSR1), 0);
    assert_becomes_true(atomic_load(&is_paused), PATIENCE_MS);
}

/* Take the lock for a short time, and expect its descriptor to tell the end. */
static int take_and_be_told(struct worker *worker)
{
    const struct next *next = worker->context;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct pollfd told = {.events = POLLIN};

    options.ttl_ms = SHORT_MS;
    worker_expect(worker, 0,
                  sqlock_lost_fd(&told.fd, next->lock, &worker->err));
    worker_expect(
        worker, 0,
        sqlock_acquire(next->lock, SQLOCK_FOREVER, &options, &worker->err));
    worker_expect(worker, 1, poll(&told, 1, PATIENCE_MS));
    if (sqlock_release(next->lock, &worker->err) == 0)
        return worker_fail(worker, "the lease is not over");
    return 0;
}

/* The lease is handed off to a thread that does not run before it is over, and
 * another handle of the process waits for the lock. */
TEST_ON(test_a_loss_before_the_holder_ran_is_told_by_descriptor, ON_ALL,
        IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *first;
    struct next paused;
    struct next last;

    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_registry(f, &options);
    first = lock_obtain(registry, f->name);
    paused.lock = lock_obtain(registry, f->name);
    last.lock = lock_obtain(registry, f->name);
    atomic_init(&last.has_it, false);
    lock_take(first, LONG_MS);
    worker_start(&paused.worker, take_and_be_told, &paused);
    assert_becomes_true(worker_is_parked(&paused.worker), PATIENCE_MS);
    pause_worker(&paused.worker);
    lock_give(first);
    worker_start(&last.worker, wait_and_release, &last);
    check_sleep(SHORT_MS + 500);
    atomic_store(&may_go_on, true);
    end(&paused);
    end(&last);
    lock_drop(first);
    registry_end(registry);
}
