/*
 * outage.h - share failures to connect among all threads and pools of a
 * registry
 *
 * While the database is away, one thread tries to connect, after growing
 * pauses, and the others wait for the result: many attempts at once would
 * overload a server that has just come back.
 */
#ifndef LK_OUTAGE_H
#define LK_OUTAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/retry.h"
#include "sqlock.h"

struct lk_outage {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* counts the failures; 0: no outage */
    struct lk_retry retry;
    atomic_bool has_begun; /* there are failures: each statement looks here */
    bool is_probed;        /* an attempt is under way that began since */
    pthread_t prober;      /* whose that is */
    bool has_connected;    /* an attempt has succeeded */
    int rc;                /* of the last failure */
    sqlock_error why;
};

void lk_outage_init(struct lk_outage *outage);
void lk_outage_clear(struct lk_outage *outage);

/* Wait until the calling thread may try to connect.  Return 0 when it may: it
 * must call lk_outage_leave() afterwards, in the same thread.  Return the last
 * failure, with its text in *err, if the deadline comes first. */
int lk_outage_enter(struct lk_outage *outage, int64_t deadline_ns,
                    sqlock_error *err);

/* Return the last failure while no thread may try to connect, or while one
 * tries; 0: a thread may try. */
int lk_outage_lasts(struct lk_outage *outage);

/* Note the result of an attempt to connect: EUNREACHABLE and ERESOURCE begin or
 * prolong an outage, any other rc ends it.  `why` is copied.  Return rc, or
 * EUNREACHABLE for an EINVAL: a URL that has led to a database before is right,
 * though its host may be unknown now, or its directory not mounted. */
int lk_outage_leave(struct lk_outage *outage, int rc, sqlock_error *why);

#endif
