/*
 * registry.h - what a registry and a lock are made of; for src/locks only
 *
 * Order of mutexes: renewer, expiry, canceller, poller, registry, lock, waiter,
 * then executor and resolver.  None is held during I/O.
 */
#ifndef LK_REGISTRY_H
#define LK_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/hash.h"
#include "lease/lease.h"
#include "lease/store.h"
#include "locks/cancel.h"
#include "locks/fifo.h"
#include "locks/renewer.h"
#include "locks/poller.h"
#include "locks/executor.h"
#include "locks/expiry.h"
#include "sqlock.h"

struct sqlock_registry {
    struct lk_store store; /* at first: lk_store_of() */
    struct lk_expiry expiry;
    struct lk_renewer renewer;
    struct lk_poller poller;
    struct lk_canceller canceller;
    struct lk_executor executor;
    pthread_mutex_t mutex; /* of what follows */
    struct sqlock_lock *locks;
    struct sqlock_request *requests;
};

_Static_assert(offsetof(struct sqlock_registry, store) == 0,
               "lk_store_of() takes a registry for its store");

enum lk_phase {
    LK_FREE,     /* nobody of this process is at it */
    LK_BUSY,     /* somebody is claiming or releasing it */
    LK_OCCUPIED, /* acquired and not yet released, whatever the lease says */
};

struct sqlock_lock {
    sqlock_registry *registry;
    struct lk_store *store; /* of the registry */
    char key[SQLOCK_KEY_SIZE];
    char *name;
    UT_hash_handle hh;
    uint32_t references; /* under the registry's mutex */
    uint32_t pins;       /* likewise: batches it is in, requests for it */

    pthread_mutex_t mutex; /* of what follows */
    struct lk_fifo fifo;
    struct lk_waiter *turn; /* whose it is while it claims; NULL */
    int outage; /* what its attempts give while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handoffs; /* between threads of this process, in a row */
    /* read and set by whose turn it is */
    bool is_left_free; /* the row, by us */
    uint32_t
        queue_first; /* so many acquisitions go to the queue lock first: others
                          wait there */
    bool is_queue_stalled; /* somebody keeps the queue lock and does not come */
    struct {               /* Spring services that want it, too: peers.h */
        int64_t share_ns;  /* how long it is ours in turn; 0: none was seen */
        int64_t used_ns;   /* of that */
    } peers;
    uint64_t owner; /* lk_owner_id(), where threads own */
    uint32_t hold_count;
    /* the lease */
    struct lk_place place;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    uint32_t ttl_ms;
    uint32_t cap_ms; /* as in lease.h, both */
    bool is_claim_late;
    int64_t deadline_boot_ns;    /* when the holder stops believing */
    struct lk_renewal *renewals; /* under way */
    int lost;                    /* 0, ELOST, EEXPIRED: sticky */
    int lost_fd;                 /* -1: nobody has asked for it */
    uint32_t guards;             /* open transactions that keep it as it is */
    bool is_left_behind;         /* whoever is at it: an abandoned request */
    bool is_told;                /* whoever holds it: that the lease is over */
    struct lk_overdue *overdue;
    /* of whose turn it is: what went with the lease that was set aside last */
    bool is_aside;
    struct lk_place place_aside;
    /* as the acquisition asked for */
    bool is_fenced;
    uint32_t max_hold_ms;
    int64_t acquired_boot_ns;
    sqlock_lost_fn on_lost;
    void *lost_context;

    struct lk_expiring expiring; /* under the expiry's mutex */
    struct lk_renewing renewing; /* under the renewer's mutex */
};

/* 0, EINVAL (NULL), EFORK. */
int lk_lock_check(const sqlock_lock *lock, sqlock_error *err);

/* Of the calling thread, or for something new that is to own a lock; never
 * given twice in a process, unlike a pthread_t. */
uint64_t lk_thread_id(void);
uint64_t lk_owner_id(void);

/* Whether it is a thread's, and that has ended. */
bool lk_has_ended(uint64_t owner);

/* Free the lock's memory; nobody may refer to it. */
void lk_lock_free(sqlock_lock *lock);

/* Called with the registry's mutex held: one pin less; the last one frees a
 * lock that nobody refers to. */
void lk_lock_unpin(sqlock_registry *registry, sqlock_lock *lock);

#endif
