/*
 * threads.c - the number of threads of a registry that has every kind of work
 * to do in the background
 */
#include "renewer.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lease/lease.h"
#include "lock/registry.h"
#include "support/workers.h"

#define TASKS "/proc/self/task"

/* renewals, events, background, bell; see lock/registry.h */
#define SERVICES 4

struct wait {
    sqlock_lock *lock;
    int cancel_fd;
};

/* Body of a worker that makes the process start a thread: a sanitizer may then
 * start one of its own. */
static int do_nothing(struct worker *worker)
{
    (void)worker;
    return 0;
}

static int wait_until_cancelled(struct worker *worker)
{
    const struct wait *wait = worker->context;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.cancel_fd = wait->cancel_fd;
    worker_expect(
        worker, SQLOCK_ECANCELED,
        sqlock_acquire(wait->lock, SQLOCK_FOREVER, &options, &worker->err));
    return 0;
}

/* Leave a release in doubt, which the resolver has to send again. */
static void leave_a_doubt(sqlock_registry *registry, const sqlock_lock *lock)
{
    struct lk_lease lease = {.key = lock->slot->key,
                             .asked.ttl_ms = LONG_TTL_MS};

    memset(lease.client_id, '0', sizeof lease.client_id - 1);
    lease.believed.until_boot_ns = lk_after_ms(lk_boottime_ns(), LONG_TTL_MS);
    lk_resolver_add_release(&registry->store, &lease, 0);
}

static bool is_resolved(sqlock_registry *registry)
{
    struct lk_resolver *resolver = &registry->store.resolver;
    bool is_empty;

    pthread_mutex_lock(&resolver->mutex);
    is_empty = resolver->doubts == NULL;
    pthread_mutex_unlock(&resolver->mutex);
    return is_empty;
}

static bool is_started(const struct lk_handler *handler)
{
    bool is_there;

    pthread_mutex_lock(&handler->service->mutex);
    is_there = handler->number != 0;
    pthread_mutex_unlock(&handler->service->mutex);
    return is_there;
}

/* Return how many threads the driver needs: MySQL's the watchdog. */
static size_t threads_of_driver(const sqlock_registry *registry)
{
    const sqlock_driver *driver = registry->store.db.driver;

    return strcmp(driver->name, "mysql") == 0 ? 1 : 0;
}

TEST(test_a_registry_has_four_service_threads)
{
    sqlock_lock *other = nth_lock(f, f->b, 1);
    sqlock_registry *registry;
    sqlock_lock *kept;
    struct wait wait;
    struct worker waiter;
    uint64_t one = 1;
    size_t threads;

    worker_start(&waiter, do_nothing, NULL);
    worker_join(&waiter);
    threads = check_entries(TASKS);
    registry = renewer_registry(f);
    kept = nth_lock(f, registry, 0);
    wait.lock = nth_lock(f, registry, 1);
    lock_take(other, LONG_TTL_MS);
    take_renewed(kept, RENEWED_MS, NULL);
    wait.cancel_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(wait.cancel_fd > 0);
    worker_start(&waiter, wait_until_cancelled, &wait);
    leave_a_doubt(registry, kept);
    await_renewals(kept, 2);
    assert_becomes_true(is_resolved(registry), PATIENCE_MS);
    assert_becomes_true(is_started(&registry->canceller.handler), PATIENCE_MS);
    /* The wait itself starts the poller only where there is no bell. */
    assert_ok(lk_handler_start(&registry->poller.handler, &f->err));
    assert_true(is_started(&registry->expiry.handler));
    assert_true(is_started(&registry->renewer.handler));
    assert_true(check_entries(TASKS) <=
                threads + 1 + SERVICES + threads_of_driver(registry));
    assert_int_equal(write(wait.cancel_fd, &one, sizeof one), sizeof one);
    worker_join(&waiter);
    lock_give(other);
    registry_end(registry);
    assert_becomes_true(check_entries(TASKS) <= threads, PATIENCE_MS);
    (void)close(wait.cancel_fd);
}
