/*
 * registry.h - the structs of a registry and of a lock's handle
 *
 * A registry is a store with the slots of its locks and the threads that serve
 * them.  A lock is a handle of a slot, with the number of its owner.
 *
 * Beside the executor, a registry has four services (base/service.h), each
 * started when it is first needed:
 *
 *   renewals    the renewer alone, whose statement waits for no other
 *   events      expiry and cancellation: no I/O; waits only for on_lost, a
 *               callback of the application
 *   background  poller and resolver, one statement of each after the other
 *               (store.background)
 *   bell        hears that rows were released
 *
 * MySQL needs one more thread, which calls `abort` (db.dog).
 */
#ifndef LK_REGISTRY_H
#define LK_REGISTRY_H

#include <stddef.h>

#include "base/hash.h"
#include "lease/store.h"
#include "lock/bell.h"
#include "lock/cancel.h"
#include "lock/executor.h"
#include "lock/expiry.h"
#include "lock/poller.h"
#include "lock/renewer.h"
#include "lock/slot.h"
#include "sqlock.h"

struct sqlock_registry {
    struct lk_store store; /* must be first: lk_store_of() */
    struct lk_service events;
    struct lk_bell bell;
    struct lk_poller poller;
    struct lk_canceller canceller;
    struct lk_expiry expiry;
    struct lk_renewer renewer;
    struct lk_executor executor;
    uint64_t owner; /* of all locks, if the registry owns them; or 0 */
    /* guarded by the mutex of slot.h */
    struct lk_slot *slots; /* hash table, by key */
    struct lk_slot *idle;  /* those without references, the oldest first */
    size_t idle_count;
    struct sqlock_lock *locks;
    /* handles that sqlock_obtain() finds again by name; those of ownership by
     * handle are not in it */
    struct sqlock_lock *by_key;
    struct sqlock_request *requests;
    /* a thread has finished a request: it may have a lease with another mark
     * than its own (circle.h) */
    bool has_finished;
};

_Static_assert(offsetof(struct sqlock_registry, store) == 0,
               "lk_store_of() takes a registry for its store");

struct sqlock_lock {
    /* constant */
    sqlock_registry *registry;
    struct lk_slot *slot;
    uint64_t owner; /* 0: the calling thread is the owner */
    /* guarded by the mutex */
    struct sqlock_lock *next, *previous;
    UT_hash_handle hh;
    uint32_t references;
    uint32_t pins; /* number of guards and requests that use it */
    int lost_fd;   /* -1: never requested */
};

/* Find or create the slot of a key, and add a reference.  `key` has
 * SQLOCK_KEY_SIZE bytes; a new slot copies key and name.  NULL: out of memory.
 * The caller holds the mutex. */
struct lk_slot *lk_slot_of(sqlock_registry *registry, const char *key,
                           const char *name);

/* Drop a reference.  The last one frees the slot, unless something is known of
 * its row: that it was left free and without tickets, that others wanted it,
 * too, or when services are due.  A program that obtains a lock for each use
 * and drops it would otherwise claim each time as if nothing were known: by the
 * longer statement, and never together with other threads (lease/README.md); by
 * a claim that is refused before it asks for a place; and never for services.
 * The caller holds the mutex. */
void lk_slot_drop(struct lk_slot *slot);

/* Forget the slots without references: the registry ends. */
void lk_slots_forget(sqlock_registry *registry);

/* Begin the message of an error with the name of the slot's lock, of which a
 * long one leaves room for the cause. */
void lk_error_name(sqlock_error *err, const struct lk_slot *slot);

/* Check a handle that the application has given.  Return 0, EINVAL if it is
 * NULL, EFORK in a child process, or EINUSE in a callback that must not use the
 * lock.  lk_lock_ours(), for queries, does not look at callbacks. */
int lk_lock_check(const sqlock_lock *lock, sqlock_error *err);
int lk_lock_ours(const sqlock_lock *lock, sqlock_error *err);

/* Return whether all calls of sqlock_obtain() with a name give the same
 * handle. */
bool lk_is_shared(const sqlock_registry *registry);

/* Return the number of the owner for whom the calling thread uses the lock. */
uint64_t lk_caller(const sqlock_lock *lock);

/* State of a lock, as its calling owner sees it.  A lease that is over has no
 * CLIENT_ID, and may keep its token. */
struct lk_view {
    uint32_t count;
    int64_t left_ns;
    int64_t token;
    bool is_joined; /* other readers of this process have the same lease */
    char client_id[SQLOCK_KEY_SIZE];
};

/* Read the state of the lock for the calling owner, at one moment.  It is all
 * zero if that owner does not have the lock, and in a child process. */
struct lk_view lk_lock_look(const sqlock_lock *lock);

/* As lk_lock_look(), for an id of the lease, by which others may renew and
 * release it: so unless readers have it together, none joins it from now on. */
struct lk_view lk_lock_name(const sqlock_lock *lock);

/* Drop a pin.  The last one frees a lock that has no references.  The caller
 * holds the mutex. */
void lk_lock_unpin(sqlock_lock *lock);

/* Free a lock without references, and what its owners have left in its slot.
 * The caller holds the mutex. */
void lk_lock_free(sqlock_lock *lock);

/* Abandon a request that the application has not abandoned.  Return false if
 * there is none. */
bool lk_requests_abandon_one(sqlock_registry *registry);

/* Report that a lock was acquired, lost or released, by calling on_event of the
 * registry's options.  `token` is that of the lease; `code` is the reason of a
 * loss or the result of a release, or 0.  The caller does not hold the
 * mutex. */
void lk_tell(sqlock_lock *lock, sqlock_event_kind kind, int64_t token,
             int code);

#endif
