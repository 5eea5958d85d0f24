/*
 * renewer.h - renew leases in the background, in a thread that does nothing
 * else, so that a renewal never waits for another statement
 */
#ifndef LK_RENEWER_H
#define LK_RENEWER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/service.h"
#include "lease/dbclock.h"
#include "sqlock.h"
#include "lock/renewal.h"

/* Links of a lock in the renewer's list; embedded in the lock. */
struct lk_renewing {
    struct sqlock_lock *next, *previous;
    bool is_listed;
    /* The fields below are guarded by the slot's mutex. */
    uint64_t grant; /* the grant whose lease is renewed */
    /* When the last attempt at this lease ended, CLOCK_BOOTTIME.  Each lease
     * pauses by its own period, so this is kept per lease. */
    int64_t tried_ns; /* 0: no attempt yet */
    struct lk_renewal renewal;
};

struct lk_renewer {
    struct sqlock_registry *registry;
    struct lk_service service; /* runs only the handler */
    struct lk_handler handler; /* wake it when a lease may be due */
    pthread_mutex_t mutex;     /* guards the list */
    struct sqlock_lock *renewing;
    size_t count;
    struct lk_dbclock clock; /* used only by the handler */
    /* used only by the handler: end of a pause for lack of memory */
    int64_t not_before_ns;
    bool is_failing; /* used only by the handler: told, and not renewed since */
};

void lk_renewer_init(struct lk_renewer *renewer,
                     struct sqlock_registry *registry);

/* Begin to renew the lease of a grant; a grant that is over is ignored.  Return
 * 0 or ERESOURCE. */
int lk_renewer_add(struct lk_renewer *renewer, struct sqlock_lock *lock,
                   uint64_t grant, sqlock_error *err);

/* End renewing the lease of a grant and of earlier grants (0: of any).  A
 * renewal that is under way may still finish.  It affects no other lease,
 * because it carries the CLIENT_ID. */
void lk_renewer_remove(struct lk_renewer *renewer, struct sqlock_lock *lock,
                       uint64_t grant);

#endif
