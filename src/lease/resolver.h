/*
 * resolver.h - rows of ours that nobody of this process stands for any more,
 * freed in the background: claims whose outcome is in doubt, and releases that
 * could not be sent or got no answer
 *
 * Each is found by its CLIENT_ID, which nobody else has, so that freeing it
 * late, or twice, hits no other lease.
 */
#ifndef LK_RESOLVER_H
#define LK_RESOLVER_H

#include <pthread.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_doubt;
struct lk_lease;
struct lk_store;

struct lk_resolver {
    struct lk_store *store;
    pthread_mutex_t mutex; /* of what follows */
    struct lk_handler handler;
    struct lk_doubt *doubts;
    int64_t not_before_ns; /* CLOCK_BOOTTIME: the database did not answer */
    uint32_t failures;     /* of the database, in a row */
};

void lk_resolver_init(struct lk_resolver *resolver, struct lk_store *store);

/* Try each that is left once more and forget them, once or more; the store's
 * service has been stopped. */
void lk_resolver_clear(struct lk_resolver *resolver);

/* A claim that was sent last at that moment may have been carried out, or may
 * yet be.  Out of memory or threads, its row runs out by itself. */
void lk_resolver_add_claim(struct lk_store *store, const struct lk_lease *lease,
                           int64_t sent_boot_ns);

/* A lease whose release was not carried out, as far as is known. */
void lk_resolver_add_release(struct lk_store *store,
                             const struct lk_lease *lease);

#endif
