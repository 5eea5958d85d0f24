/*
 * sqlock/async.h - acquiring and releasing without blocking
 */
#ifndef SQLOCK_ASYNC_H
#define SQLOCK_ASYNC_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Acquiring and releasing without blocking, for event loops and for waiting for
 * many locks in one thread.  None of these calls waits for the database or for
 * another owner: a bounded number of the registry's own threads does the work,
 * on the pool's connections.
 *
 *     int done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
 *     sqlock_request *request;
 *
 *     rc = sqlock_request_acquire(&request, lock, 30000, NULL, done, &err);
 *     ... poll(2) finds `done` readable; read it ...
 *     if (sqlock_request_status(request) != SQLOCK_REQUEST_FETCHING)
 *         rc = sqlock_request_finish(request, &err);   0: the lock is ours
 *
 * A request is a contender of its own: it takes its place in the queue by its
 * start, among the threads of the registry, and it is never re-entrant where
 * threads own: asked for by a thread that owns the lock, it waits until that
 * one has released it.  What it was granted belongs to nobody but the request
 * until sqlock_request_finish() makes it the lock of the thread that calls it,
 * or, owned by the registry, counts as one more of the registry's.  The
 * options, `auto_renew` and `on_lost` among them, work from the grant on.
 *
 * At a time, half as many requests as the pool has connections wait in queues
 * of the database; the rows of all others are looked at together, every
 * poll_ms.
 *
 * A request keeps its lock alive: the caller may drop its reference when it has
 * abandoned it.  sqlock_registry_close() abandons all that are left, and frees
 * them.  In a child process they do not exist: FREE, and EFORK.
 */

/** Where a request stands. */
typedef enum sqlock_request_state {
    SQLOCK_REQUEST_FREE = 0, /* over: it did not get the lock, or it has given
                                it back; finish it, for the reason */
    SQLOCK_REQUEST_FETCHING,
    SQLOCK_REQUEST_HELD, /* over: finish it, and the lock is the caller's */
    SQLOCK_REQUEST_RELEASING,
    SQLOCK_REQUEST_LOST /* over: it was held, but the lease is over; finish it,
                           and it is given back */
} sqlock_request_state;

/**
 * Begin to take the lock, as sqlock_acquire() does with the same arguments.
 *
 * @param done_fd a descriptor of the caller's, an eventfd or the like, to which
 *                the 8 bytes of a uint64_t 1 are written when the request is
 *                over; many may share it.  -1: none.  It must not block, and
 *                stays open until the request is finished or abandoned, as
 *                cancel_fd does
 * @param[out] out to be given to sqlock_request_finish() or
 *                 sqlock_request_abandon(); NULL on failure
 * @return 0: it is under way, whatever comes of it; EINVAL, EFORK, ENOMEM,
 *         ERESOURCE (no thread): nothing was done
 */
SQLOCK_MUSTUSE int sqlock_request_acquire(sqlock_request **out,
                                          sqlock_lock *lock, int64_t wait_ms,
                                          const sqlock_acquire_options *options,
                                          int done_fd, sqlock_error *err);

/**
 * Begin to undo one acquire of the calling thread's, as sqlock_release() does.
 * From here on the lock is not the caller's any more.  Once begun, a release is
 * carried out: abandoned, its result is not told.
 *
 * @param done_fd, out as above
 * @return 0; EOWNER, EINUSE (guarded), EINVAL, EFORK, ENOMEM, ERESOURCE: it is
 *         held as before
 */
SQLOCK_MUSTUSE int sqlock_request_release(sqlock_request **out,
                                          sqlock_lock *lock, int done_fd,
                                          sqlock_error *err);

/** Where it stands now; no I/O.  NULL: FREE. */
SQLOCK_API sqlock_request_state sqlock_request_status(sqlock_request *request);

/**
 * The result of a request that is over, which is freed.
 *
 * @return as sqlock_acquire() or sqlock_release(): 0 of an acquire, and the
 *         lock is the caller's.  ELOST, EEXPIRED: it was granted, but the lease
 *         was over before this call; it is given back by itself.  EINUSE: it is
 *         not over yet; EFORK: neither is freed
 */
SQLOCK_MUSTUSE int sqlock_request_finish(sqlock_request *request,
                                         sqlock_error *err);

/**
 * Want it no longer, at whatever stage it is, and let go of @p request.  A
 * claim on its way is let finish, and what was granted is given back, by the
 * registry's threads: no lease stays.  NULL is allowed.
 *
 * @return 0, EFORK
 */
SQLOCK_API int sqlock_request_abandon(sqlock_request *request,
                                      sqlock_error *err);

/**
 * A descriptor that poll(2) finds readable once the lease is over before it was
 * released, for event loops: an eventfd, cleared by the next acquisition.
 * Owned by the lock; do not read or close it.
 *
 * @param[out] fd valid while the caller has a reference
 * @return 0, EINVAL, EFORK, ERESOURCE
 */
SQLOCK_MUSTUSE int sqlock_lost_fd(int *fd, sqlock_lock *lock,
                                  sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_ASYNC_H */
