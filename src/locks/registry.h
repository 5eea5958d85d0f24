/*
 * registry.h - the structs of a registry and a lock; for src/locks only
 *
 * A registry is a store with the entries of its locks and the threads that
 * serve them.  A lock is a handle of an entry, with the options and the owner
 * that its holder uses.
 *
 * Beside the executor, a registry has three services (base/service.h), each
 * started when it is first needed:
 *
 *   renewals    the renewer alone, whose statement waits for no other
 *   events      expiry and cancellation: no I/O; waits only for on_lost, a
 *               callback of the application (entries.events)
 *   background  poller and resolver, one statement of each in turn
 *               (store.background)
 *
 * and a thread that calls `abort`, if the driver keeps no deadlines (db.dog).
 *
 * Order of mutexes: renewer, expiry, registry, those of src/wait (entries.h),
 * then executor and resolver, at last a service's (base/service.h).  None is
 * held during I/O.
 */
#ifndef LK_REGISTRY_H
#define LK_REGISTRY_H

#include <pthread.h>
#include <stddef.h>

#include "base/hash.h"
#include "lease/store.h"
#include "locks/executor.h"
#include "locks/expiry.h"
#include "locks/renewer.h"
#include "sqlock.h"
#include "wait/entry.h"

struct sqlock_registry {
    struct lk_store store; /* must be first: lk_store_of() */
    struct lk_entries entries;
    struct lk_expiry expiry;
    struct lk_renewer renewer;
    struct lk_executor executor;
    uint64_t owner;        /* of all locks, with ownership by registry; 0 */
    pthread_mutex_t mutex; /* guards the following fields */
    struct sqlock_lock *locks;
    /* handles that sqlock_obtain() finds again by name */
    struct sqlock_lock *by_key;
    struct sqlock_request *requests;
};

_Static_assert(offsetof(struct sqlock_registry, store) == 0,
               "lk_store_of() takes a registry for its store");

struct sqlock_lock {
    sqlock_registry *registry;
    struct lk_entry *entry;
    uint64_t owner; /* constant; 0: the calling thread */
    /* guarded by the registry's mutex */
    struct sqlock_lock *next, *previous;
    UT_hash_handle hh;
    uint32_t references;
    uint32_t pins; /* number of batches and requests that use it */
    int lost_fd;   /* -1: never requested; guarded by the entry's mutex */

    struct lk_expiring expiring; /* guarded by the expiry's mutex */
    struct lk_renewing renewing; /* guarded by the renewer's mutex */
};

/* Check a caller's handle: 0, EINVAL (NULL), EFORK. */
int lk_lock_check(const sqlock_lock *lock, sqlock_error *err);

/* Tell whether each sqlock_obtain() of a name gives the same handle. */
bool lk_is_shared(const sqlock_registry *registry);

/* Return the owner as which the calling thread uses the lock. */
uint64_t lk_caller(const sqlock_lock *lock);

/* Drop a pin; the last one frees a lock that has no references.  Called with
 * the registry's mutex held. */
void lk_lock_unpin(sqlock_lock *lock);

/* Abandon all requests, and wait until they are gone.  No more may be made. */
void lk_requests_end(sqlock_registry *registry);

/* Free the lock's memory, when there are no references. */
void lk_lock_free(sqlock_lock *lock);

#endif
