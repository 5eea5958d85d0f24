/*
 * renewer.h - renewing leases in the background, in a thread that does nothing
 * else: a renewal never waits behind another statement
 */
#ifndef LK_RENEWER_H
#define LK_RENEWER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/service.h"
#include "lease/dbclock.h"
#include "sqlock.h"
#include "wait/renewal.h"

/* A lock's place in the renewer's list; embedded in the lock. */
struct lk_renewing {
    struct sqlock_lock *next, *previous;
    bool is_listed;
    /* Under the entry's mutex. */
    uint64_t grant; /* whose lease is renewed */
    /* When the last attempt at this lease was over, CLOCK_BOOTTIME: the pause
     * of a long one outlasts a short one. */
    int64_t tried_ns; /* 0: none yet */
    struct lk_renewal renewal;
};

struct lk_renewer {
    struct sqlock_registry *registry;
    struct lk_service service; /* of the handler alone */
    struct lk_handler handler;
    pthread_mutex_t mutex; /* of the list */
    struct sqlock_lock *renewing;
    size_t count;
    struct lk_dbclock clock; /* the handler's own */
    int64_t not_before_ns;   /* likewise: there was no memory */
};

void lk_renewer_init(struct lk_renewer *renewer,
                     struct sqlock_registry *registry);
void lk_renewer_stop(struct lk_renewer *renewer); /* once or more */

/* Begin and end to renew the lease of a grant (to end: and of those before it;
 * 0: whichever).  One that is over already is not begun with.  A
 * renewal that is in flight when it ends cannot hit anybody else's lease: it
 * carries the CLIENT_ID.  0, ERESOURCE. */
int lk_renewer_add(struct lk_renewer *renewer, struct sqlock_lock *lock,
                   uint64_t grant, sqlock_error *err);
void lk_renewer_remove(struct lk_renewer *renewer, struct sqlock_lock *lock,
                       uint64_t grant);

/* A lease may be renewed again. */
void lk_renewer_wake(struct lk_renewer *renewer);

#endif
