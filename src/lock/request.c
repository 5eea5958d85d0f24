/*
 * request.c - acquire and release without blocking the caller, for event loops:
 * as acquire.c and release.c, but in the executor's threads, and suspended
 * where a thread would sleep
 *
 * A request that acquires is an owner of its own, until sqlock_request_finish()
 * makes its caller the owner.  An abandoned request goes on by itself, releases
 * what it is granted, and frees itself.
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/owner.h"
#include "lock/acquire.h"
#include "lock/hold.h"
#include "lock/release.h"
#include "sqlock/async.h"

enum request_state {
    REQUEST_RUNNING, /* waits, or runs */
    REQUEST_ENDING,  /* cannot be cancelled any more */
    REQUEST_OVER     /* has a result */
};

struct sqlock_request {
    /* constant */
    struct sqlock_lock *lock;
    bool is_release;
    struct lk_task task;

    /* used by the thread that runs it */
    struct lk_set set; /* the request's lock */
    struct lk_acquisition a;
    sqlock_error err;
    int rc; /* result, once it is over */

    /* guarded by the mutex */
    struct sqlock_request *next, *previous;
    enum request_state state;
    bool is_abandoned;
    int done_fd; /* 0: none */
};

#define CONTAINER(pointer, type, member)                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static struct lk_executor *executor_of(const sqlock_request *request)
{
    return &request->lock->registry->executor;
}

static void wake(struct lk_waiter *waiter)
{
    sqlock_request *request = CONTAINER(waiter, sqlock_request, a.self);

    lk_executor_wake(executor_of(request), &request->task);
}

/* --- create and destroy --- */

/* Return the most threads of the executor: one for each connection for calls,
 * one for each connection for waiting, and one that calls no database. */
static size_t threads_max(const sqlock_registry *registry)
{
    return (size_t)registry->store.options.pool_size +
           registry->store.db.waiting.options.size + 1;
}

static enum lk_task_next run(struct lk_task *task, bool may_block);

/* Check the arguments of a call, set *out to NULL, and allocate *request, which
 * is then passed to enroll(), or freed. */
static int create(sqlock_request **request, sqlock_request **out,
                  sqlock_lock *lock, int done_fd, sqlock_error *err)
{
    int rc;

    if (out == NULL)
        return lk_error_null(err, "request");
    *out = NULL;
    if (done_fd < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "done_fd is %d: use a descriptor, or 0 for none",
                        done_fd);
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    *request = calloc(1, sizeof **request);
    if (*request == NULL)
        return lk_error_nomem(err);
    (*request)->lock = lock;
    lk_set_of_one(&(*request)->set, lock);
    (*request)->done_fd = done_fd;
    return 0;
}

static int enroll(sqlock_request *request, int64_t due_ns, sqlock_error *err)
{
    sqlock_registry *registry = request->lock->registry;
    int rc;

    request->task.run = run;
    request->task.due_ns = due_ns;
    rc = lk_executor_add(&registry->executor, &request->task,
                         threads_max(registry), err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    request->lock->pins++;
    DL_APPEND2(registry->requests, request, previous, next);
    pthread_mutex_unlock(&lk_mutex);
    return 0;
}

/* Free an enrolled request that nothing refers to. */
static void destroy(sqlock_request *request)
{
    sqlock_registry *registry = request->lock->registry;

    pthread_mutex_lock(&lk_mutex);
    DL_DELETE2(registry->requests, request, previous, next);
    lk_lock_unpin(request->lock);
    pthread_mutex_unlock(&lk_mutex);
    free(request);
    lk_executor_remove(&registry->executor);
}

/* --- in the executor's threads --- */

/* Note that the request is over, and notify done_fd.  Return whether it is
 * abandoned. */
static bool end(sqlock_request *request)
{
    int before = lk_cancel_defer();
    uint64_t one = 1;
    bool is_abandoned;

    pthread_mutex_lock(&lk_mutex);
    lk_executor_settle(executor_of(request), &request->task);
    request->state = REQUEST_OVER;
    is_abandoned = request->is_abandoned;
    if (request->done_fd != 0)
        (void)!write(request->done_fd, &one, sizeof one);
    pthread_mutex_unlock(&lk_mutex);
    lk_cancel_allow(before);
    return is_abandoned;
}

/* Free an abandoned request that is over, after the release of what it got. */
static enum lk_task_next dispose(sqlock_request *request, bool may_block)
{
    bool has_lock = request->rc == 0 && !request->is_release;

    if (has_lock && !may_block) {
        request->task.due_ns = LK_NEVER;
        return LK_TASK_BLOCKS;
    }
    if (has_lock)
        lk_undo(request->lock, request->a.one.grant);
    destroy(request);
    return LK_TASK_ENDS;
}

/* End a request with that result.  Return whether it is abandoned: then the
 * caller disposes of it. */
static bool finish(sqlock_request *request, int rc)
{
    pthread_mutex_lock(&lk_mutex);
    request->state = REQUEST_ENDING;
    pthread_mutex_unlock(&lk_mutex);
    if (!request->is_release)
        lk_acquisition_end(&request->a);
    request->rc = rc;
    return end(request);
}

static bool is_over(sqlock_request *request)
{
    bool is_over;

    pthread_mutex_lock(&lk_mutex);
    is_over = request->state == REQUEST_OVER;
    pthread_mutex_unlock(&lk_mutex);
    return is_over;
}

/* Carry on with the request, until its end if it may block.  Return its result,
 * LK_SUSPENDED or LK_BLOCKED. */
static int carry_on(sqlock_request *request, bool may_block)
{
    if (!request->is_release)
        return lk_take(&request->set, &request->a, may_block, &request->err);
    return may_block ? lk_release_end(&request->set, &request->err)
                     : LK_BLOCKED;
}

/* Return when the request ends, even if it has got no thread by then. */
static int64_t ends_at(const sqlock_request *request)
{
    return request->is_release ? LK_NEVER : request->a.self.deadline_ns;
}

static enum lk_task_next run(struct lk_task *task, bool may_block)
{
    sqlock_request *request = CONTAINER(task, sqlock_request, task);
    int rc;

    if (is_over(request)) /* abandoned after it got the lock */
        return dispose(request, may_block);
    rc = carry_on(request, may_block);
    if (rc == LK_SUSPENDED) {
        task->due_ns = request->a.self.until_ns;
        return LK_TASK_SUSPENDS;
    }
    if (rc == LK_BLOCKED) {
        task->due_ns = ends_at(request);
        if (task->due_ns <= sqlock_monotonic_ns()) /* others end it */
            task->due_ns = LK_NEVER;
        return LK_TASK_BLOCKS;
    }
    return finish(request, rc) ? dispose(request, may_block) : LK_TASK_ENDS;
}

/* --- in the application's threads --- */

/* Pass the request to the executor: to be run at once if is_ready, otherwise
 * when it is woken or due. */
static void start(sqlock_request *request, bool is_ready)
{
    struct lk_executor *executor = executor_of(request);

    if (is_ready)
        lk_executor_wake(executor, &request->task);
    lk_executor_suspend(executor, &request->task);
}

/* Begin the request, as far as possible without waiting: if another part has
 * the turn of the lock, the request is in the FIFO before the call returns.
 * *is_ready: there is something to run at once.  Return 0; after an error the
 * caller frees the request. */
static int begin(sqlock_request *request, int64_t wait_ms,
                 const sqlock_acquire_options *options, bool *is_ready,
                 sqlock_error *err)
{
    struct lk_acquisition *a = &request->a;
    sqlock_lock *lock = request->lock;
    uint64_t owner = lock->owner != 0 ? lock->owner : lk_owner_id();
    int rc =
        lk_acquisition_begin(a, &request->set, wait_ms, options, owner, err);

    if (rc < 0)
        return rc;
    a->self.asked_ns = wait_ms == 0 ? sqlock_monotonic_ns() : 0;
    a->self.on_wake = wake;
    rc = enroll(request, a->self.deadline_ns, err);
    if (rc < 0) {
        lk_acquisition_end(a);
        return rc;
    }
    *is_ready = lk_acquisition_enter(a, &request->err);
    if (!*is_ready)
        request->task.due_ns = a->self.until_ns;
    return 0;
}

int sqlock_request_acquire(sqlock_request **out, sqlock_lock *lock,
                           int64_t wait_ms,
                           const sqlock_acquire_options *options, int done_fd,
                           sqlock_error *err)
{
    sqlock_request *request;
    bool is_ready = true;
    int rc = create(&request, out, lock, done_fd, err);

    if (rc < 0)
        return rc;
    rc = begin(request, wait_ms, options, &is_ready, err);
    if (rc < 0) {
        free(request);
        return rc;
    }
    *out = request;
    start(request, is_ready);
    return 0;
}

static int begin_release(sqlock_request *request, sqlock_error *err)
{
    const struct lk_undo undo = {.owner = lk_caller(request->lock)};
    struct lk_member *member = &request->set.one;

    lk_release_add(member, &undo, err);
    if (member->hold == NULL) /* counted down, or not held */
        return member->rc;
    member->hold->lease.asked.at_ns = sqlock_monotonic_ns();
    return 0; /* the end tells of a lease that was over */
}

int sqlock_request_release(sqlock_request **out, sqlock_lock *lock, int done_fd,
                           sqlock_error *err)
{
    sqlock_request *request;
    int rc = create(&request, out, lock, done_fd, err);

    if (rc < 0)
        return rc;
    request->is_release = true;
    rc = enroll(request, LK_NEVER, err);
    if (rc < 0) {
        free(request);
        return rc;
    }
    rc = begin_release(request, err);
    if (rc < 0) {
        destroy(request);
        return rc;
    }
    *out = request;
    if (request->set.one.hold == NULL) /* only counted down */
        (void)finish(request, 0);
    else
        start(request, true);
    return 0;
}

/* Return the request's state.  The caller holds the mutex. */
static sqlock_request_state state_of(const sqlock_request *request)
{
    const struct lk_hold *hold;

    if (request->state != REQUEST_OVER)
        return request->is_release ? SQLOCK_REQUEST_RELEASING
                                   : SQLOCK_REQUEST_FETCHING;
    if (request->is_release || request->rc < 0)
        return SQLOCK_REQUEST_FREE;
    hold = lk_hold_of(request->lock->slot, request->a.one.owner);
    return hold != NULL && lk_remaining_ns(hold) > 0 ? SQLOCK_REQUEST_HELD
                                                     : SQLOCK_REQUEST_LOST;
}

sqlock_request_state sqlock_request_status(sqlock_request *request)
{
    sqlock_request_state state;

    if (request == NULL || lk_lock_ours(request->lock, NULL) < 0)
        return SQLOCK_REQUEST_FREE;
    pthread_mutex_lock(&lk_mutex);
    state = state_of(request);
    pthread_mutex_unlock(&lk_mutex);
    return state;
}

/* Make the calling thread the owner of the request's lock.  Return 0, or ELOST
 * or EEXPIRED if it is too late. */
static int take_over(sqlock_request *request, sqlock_error *err)
{
    struct lk_hold *hold;
    int rc;

    pthread_mutex_lock(&lk_mutex);
    rc = lk_hold_usable(request->lock->slot, request->a.one.owner, true, &hold,
                        err);
    if (rc == SQLOCK_EOWNER) /* it was set aside, and given up by now */
        rc = lk_hold_over(SQLOCK_EEXPIRED, err);
    if (rc == 0)
        hold->owner = lk_caller(request->lock);
    request->lock->registry->has_finished = true;
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

/* Note that the application has finished with a request before that was done:
 * it no longer keeps the application from dropping the lock, and on_lost of its
 * acquisition is not called any more.  The caller holds the mutex. */
static void leave_behind(sqlock_request *request)
{
    const struct lk_part *part = &request->a.one;
    struct lk_hold *hold;

    request->is_abandoned = true;
    request->done_fd = 0;
    request->a.self.is_abandoned = true;
    if (request->is_release) {
        if (request->set.one.hold != NULL)
            request->set.one.hold->is_left_behind = true;
        return;
    }
    hold = lk_hold_by_grant(request->lock->slot, part->grant);
    if (hold == NULL)
        return;
    if (hold->state == LK_HOLD_HELD && part->state == LK_PART_HELD)
        hold->asked.on_lost = NULL;
    if (hold->state == LK_HOLD_ASIDE || hold->count == 1)
        hold->is_left_behind = true;
}

/* Abandon a request: end its wait, and let it go on without the application.
 * If it is over and has no lock, free it. */
static void leave(sqlock_request *request)
{
    sqlock_lock *lock = request->lock;
    sqlock_registry *registry = lock->registry;
    bool has_gone;

    pthread_mutex_lock(&lk_mutex);
    lock->pins++;
    leave_behind(request);
    has_gone = request->state == REQUEST_OVER &&
               (request->is_release || request->rc < 0);
    if (request->state == REQUEST_OVER && !has_gone)
        lk_executor_wake(&registry->executor, &request->task);
    else if (request->state == REQUEST_RUNNING && !request->is_release)
        lk_waiter_cancel(&request->a.self);
    pthread_mutex_unlock(&lk_mutex);
    if (has_gone)
        destroy(request);
    pthread_mutex_lock(&lk_mutex);
    /* When this call returns, the application may free what on_lost uses. */
    lk_expiry_await_callback(&registry->expiry, lock);
    lk_lock_unpin(lock);
    pthread_mutex_unlock(&lk_mutex);
}

/* Abandon a request, unless an on_lost of its lock runs for which this call
 * would wait for ever: then return EINUSE. */
static int abandon(sqlock_request *request, sqlock_error *err)
{
    const sqlock_lock *lock = request->lock;
    bool is_circle;

    pthread_mutex_lock(&lk_mutex);
    is_circle = lk_expiry_is_circle(&lock->registry->expiry, lock);
    pthread_mutex_unlock(&lk_mutex);
    if (is_circle)
        return lk_error(err, SQLOCK_EINUSE,
                        "on_lost of this lock waits until the callback that "
                        "runs in this thread has returned: end the request "
                        "after that");
    leave(request);
    return 0;
}

int sqlock_request_finish(sqlock_request *request, sqlock_error *err)
{
    int rc;

    if (request == NULL)
        return lk_error_null(err, "request");
    rc = lk_lock_check(request->lock, err);
    if (rc < 0)
        return rc;
    if (!is_over(request))
        return lk_error(err, SQLOCK_EINUSE, "the request is not over yet");
    rc = request->rc;
    if (rc < 0 && err != NULL)
        *err = request->err;
    if (rc == 0 && !request->is_release)
        rc = take_over(request, err);
    if (rc == 0 || request->rc < 0)
        destroy(request);
    else if (abandon(request, err) < 0)
        return SQLOCK_EINUSE;
    return rc;
}

int sqlock_request_abandon(sqlock_request *request, sqlock_error *err)
{
    int rc;

    if (request == NULL)
        return 0;
    rc = lk_lock_check(request->lock, err);
    return rc < 0 ? rc : abandon(request, err);
}

bool lk_requests_abandon_one(sqlock_registry *registry)
{
    sqlock_request *request;

    pthread_mutex_lock(&lk_mutex);
    DL_SEARCH_SCALAR(registry->requests, request, is_abandoned, false);
    pthread_mutex_unlock(&lk_mutex);
    if (request != NULL)
        leave(request);
    return request != NULL;
}
