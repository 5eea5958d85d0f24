/*
 * resolver.h - free, in the background, rows that this process left behind:
 * claims in doubt, and releases that failed or got no answer
 *
 * Each row is found by its CLIENT_ID, which is unique, so freeing it late or
 * twice affects no other lease.
 */
#ifndef LK_RESOLVER_H
#define LK_RESOLVER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_doubt;
struct lk_lease;
struct lk_store;

struct lk_resolver {
    struct lk_store *store;
    pthread_mutex_t mutex; /* guards the following fields */
    struct lk_handler handler;
    struct lk_doubt *doubts;
    /* CLOCK_BOOTTIME: end of the pause after an outage */
    int64_t not_before_ns;
    uint32_t failures; /* number of outages since the last answer */
};

void lk_resolver_init(struct lk_resolver *resolver, struct lk_store *store);

/* Try to free each remaining row once more, then forget them all.  Stop the
 * store's service before.  May be called again. */
void lk_resolver_clear(struct lk_resolver *resolver);

/* Free, in the background, the row of a claim in doubt that was last sent at
 * sent_boot_ns.  Key and CLIENT_ID are copied.  When out of memory, or if no
 * thread can be started, the row is left to expire. */
void lk_resolver_add_claim(struct lk_store *store, const struct lk_lease *lease,
                           int64_t sent_boot_ns);

/* Repeat, in the background, the release of a lease, which was first sent at
 * sent_boot_ns and may not have been carried out; one with a late claim as a
 * claim in doubt.  Otherwise as lk_resolver_add_claim(). */
void lk_resolver_add_release(struct lk_store *store,
                             const struct lk_lease *lease,
                             int64_t sent_boot_ns);

/* Remove the ticket of a claim whose wait has ended, or free the row if it was
 * given to the ticket meanwhile.  The
 * database is asked at once, unless is_outage, and without an answer again in
 * the background. */
void lk_resolver_leave(struct lk_store *store, const char *key,
                       const char *client_id, bool is_outage);

#endif
