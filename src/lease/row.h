/*
 * row.h - read rows of the lock table, without locking them, and tell how long
 * the row of another process keeps us from claiming it (observe.c)
 */
#ifndef LK_ROW_H
#define LK_ROW_H

#include "lease/batch.h"

/* Read the row of a key.  Never EUNCERTAIN. */
int lk_row_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                struct lk_row *row, sqlock_error *err);

/* Read the HOLDER text of a key's live lease, or a peer's CLIENT_ID; "": the
 * lock is free.  Results as lk_row_read(). */
int lk_row_holder(struct lk_store *store, const char *key,
                  char holder[LK_HOLDER_SIZE], sqlock_error *err);

/* Return the token of a row that was claimed for that TTL.  The four-column
 * layout stores none; there it is the time when the lease began. */
int64_t lk_row_token(const struct lk_row *row, uint32_t ttl_ms);

/* Read the rows of a batch into its items.  Results as lk_row_read(). */
int lk_rows_read(struct lk_store *store, struct lk_batch *batch,
                 sqlock_error *err);

/* Find the row of a key in a batch; NULL: the key is not in it. */
const struct lk_row *lk_row_of(const struct lk_batch *batch, const char *key);

/* Return for how many ns the row is not to be claimed, by what is known now; 0:
 * claim it; LK_NEVER: too long to be counted.  `seen` keeps what was observed
 * before. */
int64_t lk_row_blocked_ns(const struct lk_store *store,
                          struct lk_observed *seen, const struct lk_row *row);

#endif
