/*
 * grace.h - grant nothing on a server that may have forgotten leases, until the
 * longest of them has run out
 *
 * A standby that was promoted may lack the last leases that the primary had
 * granted, and a server that does not wait for its disk may lose some in a
 * crash.  Their holders still rely on them, so to grant the same locks would
 * give each two holders (F57, F61).  But a lease is over after its TTL,
 * whatever was forgotten.  So the table INT_LOCK_SERVER has one row with the
 * epoch of the data and the longest TTL: whoever first finds another epoch than
 * that writes the new one, and from when on the server grants again.
 *
 * A session that does not wait for the disk (durability=fast) adds a mark to
 * the epoch, and leaves it in INT_LOCK_MARK, which a crash of PostgreSQL
 * empties.
 *
 * The row is read on each new session.  One that is not told the epoch by an
 * error cannot be opened, one of a server that another has followed is closed.
 * A registry that has met a later row grants nothing on an old primary that has
 * come back, either, until the longest lease is over.
 *
 * Only claims are held back.  Renewals, releases and guards are about leases
 * that the server still has.
 */
#ifndef LK_GRACE_H
#define LK_GRACE_H

#include "lease/store.h"

struct lk_batch;

void lk_grace_init(struct lk_grace *grace);
void lk_grace_clear(struct lk_grace *grace);

/* Look at the server for the first time, when the store is opened.  Without the
 * table, or the right to read it, nothing is promised, and nothing asked.
 * Return 0, or why the row could not be read. */
int lk_grace_begin(struct lk_store *store, sqlock_error *err);

/* Look again, for who only reads: over a session that was not looked at, or
 * while nothing is granted.  A failure here is one of the next statement,
 * too. */
void lk_grace_refresh(struct lk_store *store);

/* Return for how many ns the server grants nothing, as far as this process
 * knows; 0: it grants. */
int64_t lk_grace_left_ns(const struct lk_store *store);

/* Return whether the server grants nothing after a crash in which it may have
 * lost commits, either. */
bool lk_grace_sees_crashes(const struct lk_store *store);

/* If the server grants nothing now, make that the outcome of the claims of the
 * batch, which came to rc: their rows look held until the end of it.  Return
 * whether that is so. */
bool lk_grace_refuses(const struct lk_store *store, struct lk_batch *batch,
                      int rc);

/* Return rc, the result of an acquisition that has waited in vain; if that is
 * because the server grants nothing, say so. */
int lk_grace_error(const struct lk_store *store, int rc, sqlock_error *err);

/* Let the server grant at once; `reason` is kept beside who says so.  Return 1;
 * 0: it grants already; ENOTSUP: the table INT_LOCK_SERVER is missing. */
int lk_grace_end(struct lk_store *store, const char *reason, sqlock_error *err);

#endif
