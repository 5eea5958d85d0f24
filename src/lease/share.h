/*
 * share.h - what is done about locks that several share, beside claiming,
 * renewing and releasing a lease with a weight (batch.h)
 */
#ifndef LK_SHARE_H
#define LK_SHARE_H

#include "lease/batch.h"
#include "lease/sharer.h"

/* Check that the table can have shared locks, and that a lease of that weight
 * may be claimed of a lock with those permits, if its row has no number.
 * Return 0; ENOTSUP: it has one of Spring's layouts; EINVAL. */
int lk_share_check(const struct lk_store *store, uint32_t weight,
                   uint32_t permits, sqlock_error *err);

/* Turn the exclusive lease into a reader's, with its token, and renew it; no
 * other exclusive holder has the lock in between.  Return 0; ELOST; EEXPIRED;
 * ECONFLICT: the lock has permits; EUNCERTAIN: the mode is not known, call it
 * again, which does no harm, or renew or release the lease, which find it out
 * (may_be_share).  Only 0 changes the lease's weight. */
int lk_share_downgrade(struct lk_store *store, struct lk_lease *lease,
                       sqlock_error *err);

/* Change the permits of a lock; LK_NO_LIMIT makes it one for readers.  Those
 * that are granted stay granted, also if they are more.  Return 0; ENOTFOUND;
 * ECONFLICT: a Spring service has the lock; EINVAL, ENOTSUP, EUNCERTAIN or a
 * result of lk_store_run(). */
int lk_share_set_permits(struct lk_store *store, const char *key,
                         uint32_t permits, sqlock_error *err);

/* End the share of that CLIENT_ID: its next renewal finds it lost.  Its place
 * has the text `shown`, of a ticket, until it would have been over; or with
 * `now` it is free at once.  Return 0; ECONFLICT: there is no such share, or it
 * is over; EUNCERTAIN; or a result of lk_store_run().  To break all shares,
 * break the CLIENT_ID of the row. */
int lk_share_break(struct lk_store *store, const char *key,
                   const char *client_id, const char *shown, bool now,
                   sqlock_error *err);

#endif
