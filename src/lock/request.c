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
#include "base/owner.h"
#include "lock/acquire.h"
#include "lock/care.h"
#include "sqlock/async.h"
#include "lock/give_back.h"

struct sqlock_request {
    /* guarded by the registry's mutex */
    struct sqlock_request *next, *previous;
    struct sqlock_lock *lock;
    struct lk_task task;

    /* used by the thread that runs it */
    struct lk_set set; /* the request's lock */
    struct lk_acquisition a;
    struct lk_release release; /* used instead of `a` by a release */

    pthread_mutex_t mutex; /* taken before all others */
    bool is_release;       /* constant */
    bool is_over;
    bool is_abandoned;
    int done_fd; /* 0: none */
    int rc;      /* result, once is_over */
    sqlock_error err;
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
 * and one for each connection for waiting. */
static size_t threads_max(const sqlock_registry *registry)
{
    return (size_t)registry->store.options.pool_size +
           registry->store.db.waiting.options.size;
}

static bool run(struct lk_task *task, bool may_wait);

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
    (void)pthread_mutex_init(&request->mutex, NULL);
    pthread_mutex_lock(&registry->mutex);
    request->lock->pins++;
    DL_APPEND2(registry->requests, request, previous, next);
    pthread_mutex_unlock(&registry->mutex);
    return 0;
}

/* Free an enrolled request that nothing refers to. */
static void destroy(sqlock_request *request)
{
    sqlock_registry *registry = request->lock->registry;

    pthread_mutex_lock(&registry->mutex);
    DL_DELETE2(registry->requests, request, previous, next);
    lk_lock_unpin(request->lock);
    pthread_mutex_unlock(&registry->mutex);
    (void)pthread_mutex_destroy(&request->mutex);
    free(request);
    lk_executor_remove(&registry->executor);
}

/* --- in the executor's threads --- */

/* End a request with that result, and notify done_fd.  An abandoned request
 * releases its lock and is freed. */
static void finish(sqlock_request *request, int rc)
{
    bool is_abandoned;
    uint64_t one = 1;

    pthread_mutex_lock(&request->mutex);
    if (!request->is_release && !request->is_over)
        lk_acquisition_end(&request->a);
    lk_executor_settle(executor_of(request), &request->task);
    request->rc = rc;
    request->is_over = true;
    is_abandoned = request->is_abandoned;
    if (request->done_fd != 0)
        (void)!write(request->done_fd, &one, sizeof one);
    pthread_mutex_unlock(&request->mutex);
    if (!is_abandoned)
        return;
    if (rc == 0 && !request->is_release)
        lk_undo(request->lock, request->a.one.grant);
    destroy(request);
}

static bool run(struct lk_task *task, bool may_wait)
{
    sqlock_request *request = CONTAINER(task, sqlock_request, task);
    int rc;

    if (request->is_over) { /* abandoned after it got the lock */
        finish(request, request->rc);
        return false;
    }
    (void)may_wait;
    if (request->is_release)
        rc = lk_end_give_back(&request->set, &request->release, &request->err);
    else
        rc = lk_take(&request->set, &request->a, &request->err);
    if (rc == LK_SUSPENDED) {
        task->due_ns = request->a.self.until_ns;
        return true;
    }
    finish(request, rc);
    return false;
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
    int rc = lk_acquisition_begin(a, &lock->registry->slots, 1, wait_ms,
                                  options, err);

    if (rc < 0)
        return rc;
    lk_take_part(a, 0, lock, lock->owner != 0 ? lock->owner : lk_owner_id());
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
    struct lk_release *release = &request->release;
    sqlock_lock *lock = request->lock;
    int rc = lk_release_begin(release, &lock->registry->store, 1, err);

    if (rc < 0)
        return rc;
    lk_begin_give_back(&request->set, release, 0,
                       &(struct lk_undo){.owner = lk_caller(lock)}, err);
    release->one.lease.asked_ns = sqlock_monotonic_ns();
    return release->one.rc;
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
    if (request->release.one.state == LK_RELEASE_OVER) /* only counted down */
        finish(request, 0);
    else
        start(request, true);
    return 0;
}

/* Return the request's state.  The caller holds the request's mutex. */
static sqlock_request_state state_of(sqlock_request *request)
{
    sqlock_request_state state;
    struct lk_slot *slot;

    if (!request->is_over)
        return request->is_release ? SQLOCK_REQUEST_RELEASING
                                   : SQLOCK_REQUEST_FETCHING;
    if (request->is_release || request->rc < 0)
        return SQLOCK_REQUEST_FREE;
    slot = request->lock->slot;
    pthread_mutex_lock(&slot->mutex);
    state =
        lk_is_owned_by(slot, request->a.one.owner) && lk_remaining_ns(slot) > 0
            ? SQLOCK_REQUEST_HELD
            : SQLOCK_REQUEST_LOST;
    pthread_mutex_unlock(&slot->mutex);
    return state;
}

sqlock_request_state sqlock_request_status(sqlock_request *request)
{
    sqlock_request_state state;

    if (request == NULL || lk_lock_ours(request->lock, NULL) < 0)
        return SQLOCK_REQUEST_FREE;
    pthread_mutex_lock(&request->mutex);
    state = state_of(request);
    pthread_mutex_unlock(&request->mutex);
    return state;
}

/* Make the calling thread the owner of the request's lock.  Return 0, or ELOST
 * or EEXPIRED if it is too late. */
static int take_over(sqlock_request *request, sqlock_error *err)
{
    struct lk_slot *slot = request->lock->slot;
    int rc = 0;

    pthread_mutex_lock(&slot->mutex);
    if (lk_is_owned_by(slot, request->a.one.owner) &&
        slot->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST,
                      "the lease was lost before the request was finished");
    else if (lk_remaining_ns(slot) == 0 ||
             !lk_is_owned_by(slot, request->a.one.owner))
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease expired before the request was finished");
    else
        slot->owner = lk_caller(request->lock);
    pthread_mutex_unlock(&slot->mutex);
    return rc;
}

/* Abandon a request: end its wait, and let it go on without the application.
 * If it is over and has no lock, free it. */
static void abandon(sqlock_request *request)
{
    struct lk_waiter *self = &request->a.self;
    sqlock_lock *lock = request->lock;
    sqlock_registry *registry = lock->registry;
    bool has_gone;

    pthread_mutex_lock(&registry->mutex);
    lock->pins++;
    pthread_mutex_unlock(&registry->mutex);
    pthread_mutex_lock(&request->mutex);
    request->is_abandoned = true;
    request->done_fd = 0;
    if (request->is_release)
        lk_abandon_release(lock->slot, &request->release.one.lease);
    else
        lk_abandon_part(&request->a.one);
    has_gone = request->is_over && (request->is_release || request->rc < 0);
    if (request->is_over && !has_gone)
        lk_executor_wake(&registry->executor, &request->task);
    else if (!request->is_over && !request->is_release)
        lk_waiter_cancel(self);
    pthread_mutex_unlock(&request->mutex);
    if (has_gone)
        destroy(request);
    /* When this call returns, the application may free what on_lost uses. */
    lk_expiry_await_callback(&registry->expiry, lock);
    pthread_mutex_lock(&registry->mutex);
    lk_lock_unpin(lock);
    pthread_mutex_unlock(&registry->mutex);
}

int sqlock_request_finish(sqlock_request *request, sqlock_error *err)
{
    bool is_over;
    int rc;

    if (request == NULL)
        return lk_error_null(err, "request");
    rc = lk_lock_check(request->lock, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&request->mutex);
    is_over = request->is_over;
    pthread_mutex_unlock(&request->mutex);
    if (!is_over)
        return lk_error(err, SQLOCK_EINUSE, "the request is not over yet");
    rc = request->rc;
    if (rc < 0 && err != NULL)
        *err = request->err;
    if (rc == 0 && !request->is_release)
        rc = take_over(request, err);
    if (rc < 0 && request->rc == 0)
        abandon(request);
    else
        destroy(request);
    return rc;
}

int sqlock_request_abandon(sqlock_request *request, sqlock_error *err)
{
    int rc;

    if (request == NULL)
        return 0;
    rc = lk_lock_check(request->lock, err);
    if (rc == 0)
        abandon(request);
    return rc;
}

void lk_requests_end(sqlock_registry *registry)
{
    sqlock_request *request;

    do {
        pthread_mutex_lock(&registry->mutex);
        DL_SEARCH_SCALAR(registry->requests, request, is_abandoned, false);
        pthread_mutex_unlock(&registry->mutex);
        if (request != NULL)
            abandon(request);
    } while (request != NULL);
    lk_executor_stop(&registry->executor);
}
