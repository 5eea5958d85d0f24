/*
 * row.h - read rows of the lock table, without locking them, and what follows
 * from a row's times
 */
#ifndef LK_ROW_H
#define LK_ROW_H

#include "lease/batch.h"

/* Read the row of a key.  If there is none, and after a failure, row->exists is
 * false.  Return 0, ESCHEMA if there are two rows, or a result of
 * lk_store_run(), but never EUNCERTAIN. */
int lk_row_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                struct lk_row *row, sqlock_error *err);

/* Read the row as the holder of that lease sees it, who may share the lock.
 * Results as lk_row_read(). */
int lk_row_read_as(struct lk_store *store, const struct lk_lease *lease,
                   int64_t deadline_ns, struct lk_row *row, sqlock_error *err);

/* Read the text of HOLDER of a key's live lease, or the CLIENT_ID if a Spring
 * peer has the lease.  It is "" if the lock is free, and after a failure.
 * Results as lk_row_read(). */
int lk_row_holder(struct lk_store *store, const char *key,
                  char holder[LK_HOLDER_SIZE], sqlock_error *err);

/* Return whether the text of a holder, which follows its CLIENT_ID, tells who
 * broke the lease. */
bool lk_holder_is_break(const char *holder);

/* Fill in what SHARERS says, after the other fields; NULL: it is not known, or
 * null. */
void lk_row_add_sharers(struct lk_row *row, const char *sharers,
                        const struct lk_lease *lease);

/* Read a key's row (NULL: it is not wanted), and its QUEUE, to be freed; NULL:
 * nobody waits.  Results as lk_row_read(). */
int lk_row_queue(struct lk_store *store, const char *key, int64_t deadline_ns,
                 struct lk_row *row, char **queue, sqlock_error *err);

/* Return the token of a row that was claimed for that TTL.  The four-column
 * layout stores none: its token is the time when the lease began. */
int64_t lk_row_token(const struct lk_row *row, uint32_t ttl_ms);

/* Read the row of each key of a batch into its item.  Results as
 * lk_row_read(). */
int lk_rows_read(struct lk_store *store, struct lk_batch *batch,
                 sqlock_error *err);

/* A row shows one of these of a lease.  The values of those that are no success
 * are codes of its holder's call. */
enum lk_verdict {
    LK_VERDICT_HELD = 0,                   /* the row has it */
    LK_VERDICT_FREED = 1,                  /* released, and not claimed since */
    LK_VERDICT_OVER = SQLOCK_EEXPIRED,     /* the row has it, past its end */
    LK_VERDICT_LOST = SQLOCK_ELOST,        /* another owner took it */
    LK_VERDICT_UNKNOWN = SQLOCK_EUNCERTAIN /* it was freed or lost */
};

/* Judge by its row, which was read as its holder sees it, a lease whose
 * statement got no answer (was_uncertain) or changed nothing.  first_sent_ns is
 * when its release was sent first, CLOCK_BOOTTIME; LK_NEVER: none was, and it
 * is held, over or lost. */
enum lk_verdict lk_row_judge(const struct lk_store *store,
                             const struct lk_row *row,
                             const struct lk_lease *lease,
                             int64_t first_sent_ns, bool was_uncertain);

/* Return whether the row may have the CLIENT_ID by a copy of the claim that
 * came late, when others had had the lock: statements about the lease change
 * that row, too, and only the token tells it (lk_row_judge()). */
bool lk_row_may_be_copys(const struct lk_store *store,
                         const struct lk_lease *lease);

/* Find the row of a key in a batch; NULL: the key is not in it. */
const struct lk_row *lk_row_of(const struct lk_batch *batch, const char *key);

/* Return for how many ns the row is not to be claimed, by present knowledge; 0:
 * claim it; LK_NEVER: too long to be counted. */
int64_t lk_row_blocked_ns(const struct lk_row *row);

/* Return whether a Spring service has the lock, as far as the layout tells. */
bool lk_row_is_of_peer(const struct lk_store *store, const struct lk_row *row);

#endif
