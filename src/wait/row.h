/*
 * row.h - read the row of another holder while waiting for it
 */
#ifndef LK_WAIT_ROW_H
#define LK_WAIT_ROW_H

#include "lease/batch.h"
#include "wait/entry.h"

/* Return the deadline of a statement that is sent now: at most one statement's
 * time after the end of the wait. */
int64_t lk_wait_statement_deadline(const struct lk_store *store,
                                   const struct lk_waiter *self);

/* Read the rows of all items, whose owners are parts, and find the first one
 * that may not be claimed (NULL: none).  Results as lk_row_read(). */
int lk_rows_look(struct lk_store *store, struct lk_batch *batch,
                 struct lk_part **blocked, sqlock_error *err);

/* Subscribe at the poller until lk_row_await_poll() has ended.  0,
 * ERESOURCE. */
int lk_row_begin_poll(struct lk_part *part, enum lk_poll_until until,
                      sqlock_error *err);

/* Wait for the poller.  0: the row is as wanted; ETIMEDOUT, ECANCELED, a result
 * of lk_row_read(); LK_SUSPENDED. */
int lk_row_await_poll(struct lk_part *part, sqlock_error *err);

#endif
