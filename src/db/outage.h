/*
 * outage.h - connections that could not be opened: when the next one may be
 * tried, by whom of all threads and pools of a registry
 *
 * While the database is away one of them tries, after pauses that grow, and the
 * others wait for what comes of it: many that try at once keep a server busy
 * that has just come back.
 */
#ifndef LK_OUTAGE_H
#define LK_OUTAGE_H

#include <pthread.h>

#include "base/retry.h"
#include "sqlock.h"

struct lk_outage {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct lk_retry retry; /* without failures: the database can be reached */
    bool is_probed;        /* somebody is at it */
    int rc;                /* of the last failure */
    sqlock_error why;
};

void lk_outage_init(struct lk_outage *outage);
void lk_outage_clear(struct lk_outage *outage);

/* Wait until a connection may be tried. 0, to be followed by
 * lk_outage_leave(); or the last failure, when none may be tried before the
 * deadline. */
int lk_outage_enter(struct lk_outage *outage, int64_t deadline_ns,
                    sqlock_error *err);

/* Tell the result of the try.  Only EUNREACHABLE and ERESOURCE count as
 * failures. */
void lk_outage_leave(struct lk_outage *outage, int rc, const sqlock_error *why);

#endif
