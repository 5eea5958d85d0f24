/*
 * test_cancel.c - what watching a cancel_fd costs, and a descriptor that is
 * reported ready too late
 */
#include "suite.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lock/registry.h"
#include "sqlock/leader.h"

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
        assert_ok(sqlock_request_acquire(&requests[i], lock, SQLOCK_FOREVER,
                                         &options, 0, &f->err));
    for (size_t i = 0; i < QUEUE_FIRST; i++)
        assert_ok(sqlock_request_abandon(requests[i], &f->err));
    free(requests);
    return processor_ms() - began;
}

/* Many requests share one cancel_fd: watching it for all of them costs no more
 * than the requests do.  A former version, which made an array of all anew for
 * each request, took a hundred times as long. */
TEST_ON(test_a_crowd_with_descriptors_costs_what_one_without_does, ON_SQLITE,
        IN_SQLOCK)
{
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

/* A descriptor may be closed after its event and before the handler runs, and
 * its number may be given to another file.  The handler, called here for a
 * descriptor that is not ready, must not end the waits that have the new
 * file. */
TEST(test_a_descriptor_that_was_ready_before_ends_no_wait)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    const struct lk_handler *handler = &f->a->canceller.handler;
    sqlock_request *request;

    options.cancel_fd = eventfd(0, EFD_CLOEXEC);
    lock_take(lock, 0);
    assert_ok(sqlock_request_acquire(&request, lock, SQLOCK_FOREVER, &options,
                                     0, &f->err));
    handler->ready(handler->owner, options.cancel_fd);
    lock_give(lock);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_ok(sqlock_request_finish(request, &f->err));
    lock_give(lock);
    (void)close(options.cancel_fd);
    lock_drop(lock);
}

/* It would end the wait at once, as if somebody had cancelled it. */
TEST(test_a_descriptor_that_is_not_open_is_refused)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_request *request = NULL;
    sqlock_info *seen = NULL;

    options.cancel_fd = eventfd(0, EFD_CLOEXEC);
    (void)close(options.cancel_fd);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_acquire(lock, SQLOCK_FOREVER, &options, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_request_acquire(&request, lock, SQLOCK_FOREVER,
                                        &options, 0, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_observe(f->a, f->name, SQLOCK_FOREVER,
                                options.cancel_fd, &seen, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_acquire(lock, -2, NULL, &f->err));
    lock_drop(lock);
}
