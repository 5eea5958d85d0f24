/*
 * registry.h - what a registry and a lock are made of; for src/locks only
 *
 * A registry is a store with the entries of its locks and the threads that
 * serve them.  A lock is a handle of an entry: what its holder asked for, and
 * as whom it is used.
 *
 * Its threads, beside the executor's, are three services (base/service.h), each
 * started when it is first of use:
 *
 *   renewals    the renewer alone, whose statement waits for no other
 *   events      expiry and cancellation: no I/O, and no wait but for on_lost, a
 *               callback of the application (entries.events)
 *   background  poller and resolver, one statement of each in turn
 *               (store.background)
 *
 * and one that calls `abort`, where the driver keeps no deadlines (db.dog).
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
    struct lk_store store; /* at first: lk_store_of() */
    struct lk_entries entries;
    struct lk_expiry expiry;
    struct lk_renewer renewer;
    struct lk_executor executor;
    uint64_t owner;        /* of all locks, where the registry owns; 0 */
    pthread_mutex_t mutex; /* of what follows */
    struct sqlock_lock *locks;
    struct sqlock_lock *by_key; /* those that are obtained again by name */
    struct sqlock_request *requests;
};

_Static_assert(offsetof(struct sqlock_registry, store) == 0,
               "lk_store_of() takes a registry for its store");

struct sqlock_lock {
    sqlock_registry *registry;
    struct lk_entry *entry;
    uint64_t owner; /* never changes; 0: the thread that calls */
    /* under the registry's mutex */
    struct sqlock_lock *next, *previous;
    UT_hash_handle hh;
    uint32_t references;
    uint32_t pins; /* batches it is in, requests for it */
    /* as the acquisition asked for, under the entry's mutex */
    bool is_fenced;
    uint32_t max_hold_ms;
    sqlock_lost_fn on_lost;
    void *lost_context;
    int lost_fd; /* -1: nobody has asked for it */

    struct lk_expiring expiring; /* under the expiry's mutex */
    struct lk_renewing renewing; /* under the renewer's mutex */
};

/* Check a caller's handle: 0, EINVAL (NULL), EFORK. */
int lk_lock_check(const sqlock_lock *lock, sqlock_error *err);

/* Tell whether each sqlock_obtain() of a name gives the same handle. */
bool lk_is_shared(const sqlock_registry *registry);

/* Return the owner as which the calling thread uses the lock. */
uint64_t lk_caller(const sqlock_lock *lock);

/* Drop a pin; the last one frees a lock without references.  Called with the
 * registry's mutex held. */
void lk_lock_unpin(sqlock_lock *lock);

/* Free the lock's memory; nobody may refer to it. */
void lk_lock_free(sqlock_lock *lock);

#endif
