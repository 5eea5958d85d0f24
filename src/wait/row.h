/*
 * row.h - what is read of another process's row while one waits for it
 */
#ifndef LK_WAIT_ROW_H
#define LK_WAIT_ROW_H

#include "lease/batch.h"
#include "wait/entry.h"

/* A deadline of one statement from now, no later than one behind the wait's
 * end: so far may a call outstay it. */
int64_t lk_wait_statement_deadline(const struct lk_store *store,
                                   const struct lk_waiter *self);

/* Read the rows of all items, whose owners are parts: the first one that may
 * not be claimed, or NULL.  0, or as lk_row_read(). */
int lk_rows_look(struct lk_store *store, struct lk_batch *batch,
                 struct lk_part **blocked, sqlock_error *err);

/* Let the poller read the row until that, or until lk_row_await_poll() has
 * ended.  0, ERESOURCE. */
int lk_row_begin_poll(struct lk_part *part, enum lk_poll_until until,
                      sqlock_error *err);

/* Wait for that.  0: the row is as it should be; ETIMEDOUT, ECANCELED, or as
 * lk_row_read(); LK_SUSPENDED. */
int lk_row_await_poll(struct lk_part *part, sqlock_error *err);

#endif
