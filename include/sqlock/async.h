/*
 * sqlock/async.h - acquiring and releasing without blocking
 *
 * For event loops, and for waiting for many locks in one thread.  No call here
 * waits for the database or for another owner: a few threads of the registry do
 * the work, on the connections of the pool.
 *
 * Calling sequence
 *     int done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
 *     struct pollfd wait = {.fd = done, .events = POLLIN};
 *     sqlock_request *request;
 *     uint64_t ended;
 *
 *     rc = sqlock_request_acquire(&request, lock, 30000, NULL, done, &err);
 *     if (rc != 0)
 *         return rc;
 *     while (sqlock_request_status(request) == SQLOCK_REQUEST_FETCHING)
 *         if (poll(&wait, 1, -1) == 1 &&
 *             read(done, &ended, sizeof(ended)) < 0)
 *             perror("eventfd");
 *     rc = sqlock_request_finish(request, &err);
 *     close(done);
 *     if (rc == 0) {
 *         do_a_step();
 *         rc = sqlock_release(lock, &err);
 *     }
 *
 * A request is a contender of its own, which waits in the registry's queue
 * among the threads.  Where threads own locks it is never re-entrant: if the
 * thread that made the request holds the lock, the request waits until that
 * thread has released it.  Where both share the lock, or that thread's lease is
 * over, it does not wait: the thread then has two leases, both of which
 * sqlock_hold_count() counts, while any other call is about the one that was
 * granted last.  sqlock_release() ends first one that is over, by ELOST or
 * EEXPIRED, and else the last.  A granted lock belongs to the request until
 * sqlock_request_finish() gives it to the calling thread (or adds one to the
 * registry's count).  Options such as `auto_renew` and `on_lost` work from the
 * grant on.
 *
 * No number of requests needs more sessions to wait, except on MySQL: where
 * half of `pool_size` are waiting, the rows of all other requests are read
 * together, every `poll_ms`.
 *
 * A request keeps its lock: sqlock_drop() refuses the last reference (EINUSE)
 * until the request has ended and nothing is held.
 * sqlock_registry_close() abandons and frees all requests that are left.  A
 * child process has no requests: their status is FREE, and calls return EFORK.
 */
#ifndef SQLOCK_ASYNC_H
#define SQLOCK_ASYNC_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One acquire or release that is carried out in the background. */
typedef struct sqlock_request sqlock_request;

/** State of a request. */
typedef enum sqlock_request_state {
    SQLOCK_REQUEST_FREE = 0,  /* ended: not acquired, or released; finish it to
                                 get the result */
    SQLOCK_REQUEST_FETCHING,  /* an acquire is under way */
    SQLOCK_REQUEST_HELD,      /* ended: finish it to become the lock's owner */
    SQLOCK_REQUEST_RELEASING, /* a release is under way */
    SQLOCK_REQUEST_LOST       /* ended: acquired, but the lease is over; finish
                                 it, and it is released */
} sqlock_request_state;

/**
 * Begin to take the lock, as sqlock_acquire() does with the same arguments.
 *
 * @param[out] out given to sqlock_request_finish() or sqlock_request_abandon();
 *                 NULL on failure
 * @param done_fd  a descriptor of the caller's, such as an eventfd, that gets
 *                 the 8 bytes of a uint64_t 1 when the request has ended;
 *                 several requests may share it.  It must be non-blocking, and,
 *                 like `cancel_fd`, stay open until the request is finished or
 *                 abandoned.  0: none
 * @return 0           under way
 */
SQLOCK_MUSTUSE int sqlock_request_acquire(sqlock_request **out,
                                          sqlock_lock *lock, int64_t wait_ms,
                                          const sqlock_acquire_options *options,
                                          int done_fd, sqlock_error *err);

/**
 * Begin to undo one acquire of the calling thread.  From here on the caller
 * does not hold the lock.  The release is carried out even if the request is
 * abandoned.
 *
 * @param[out] out as in sqlock_request_acquire()
 * @param done_fd  as in sqlock_request_acquire()
 * @return 0           under way
 *         EOWNER      still held, by another owner
 *         EINUSE      still held: an open transaction guards it
 */
SQLOCK_MUSTUSE int sqlock_request_release(sqlock_request **out,
                                          sqlock_lock *lock, int done_fd,
                                          sqlock_error *err);

/** State of a request.  No I/O.  For NULL: FREE. */
SQLOCK_API sqlock_request_state sqlock_request_status(sqlock_request *request);

/**
 * Take the result of a request that has ended, and free the request.  After
 * ELOST and EEXPIRED `on_lost` is not called any more.  This call waits for an
 * `on_lost` that is running, so `on_lost` must not make it.
 *
 * @return 0           acquired, and the caller holds the lock; or released
 *         EINUSE      it is not freed: it has not ended, or it is LOST, and an
 *                     `on_lost` of the lock waits for the callback that runs in
 *                     this thread
 *         ELOST, EEXPIRED   acquired, but the lease is over; it is released
 *         EFORK       this is a child process: nothing was touched
 */
SQLOCK_MUSTUSE int sqlock_request_finish(sqlock_request *request,
                                         sqlock_error *err);

/**
 * Give a request up, whatever its state, and free it.  A claim that is being
 * sent is completed.  A lock that the request got is released in the
 * background; `on_lost` is not called any more, and this call waits for one
 * that is running.  NULL is allowed.
 *
 * @return 0       done
 *         EINUSE  nothing was done: on_event, or an `on_lost` of the lock, runs
 *                 in this thread, or waits for the callback that does
 *         EFORK   this is a child process: nothing was touched
 */
SQLOCK_API int sqlock_request_abandon(sqlock_request *request,
                                      sqlock_error *err);

/**
 * Get a descriptor that poll(2) finds readable if the lease ends before it is
 * released.  It is an eventfd that belongs to the lock, and that the next
 * acquisition clears: do not read or close it.
 *
 * @param[out] fd valid while the caller has a reference to the lock
 */
SQLOCK_MUSTUSE int sqlock_lost_fd(int *fd, sqlock_lock *lock,
                                  sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ASYNC_H */
