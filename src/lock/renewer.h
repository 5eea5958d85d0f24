/*
 * renewer.h - renew leases in the background, in a thread that does nothing
 * else, so that a renewal never waits for another statement
 */
#ifndef LK_RENEWER_H
#define LK_RENEWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/service.h"
#include "lease/dbclock.h"
#include "sqlock.h"

struct lk_hold;

struct lk_renewer {
    struct sqlock_registry *registry;
    struct lk_service service; /* runs only the handler */
    struct lk_handler handler; /* wake it when a lease may be due */
    /* guarded by the mutex */
    struct lk_hold *renewing;
    size_t count;
    /* used only by the handler */
    struct lk_dbclock clock;
    int64_t not_before_ns; /* end of a pause for lack of memory */
    bool is_failing;       /* told, and not renewed since */
};

void lk_renewer_init(struct lk_renewer *renewer,
                     struct sqlock_registry *registry);

/* Begin to renew a lease; the handler is started, and woken afterwards.  The
 * caller holds the mutex. */
void lk_renewer_add(struct lk_renewer *renewer, struct lk_hold *hold);

/* End renewing the lease.  A renewal that is under way may still finish.  It
 * affects no other lease, because it carries the CLIENT_ID.  The caller holds
 * the mutex. */
void lk_renewer_remove(struct lk_renewer *renewer, struct lk_hold *hold);

#endif
