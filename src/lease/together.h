/*
 * together.h - send the claims and releases of several threads in one statement
 *
 * A pool has fewer connections than a busy process has threads.  A thread that
 * would wait for one waits here: who sends next sends for all that wait.  While
 * no more threads are busy than there are connections, and than a crowd has,
 * each sends at once.
 */
#ifndef LK_TOGETHER_H
#define LK_TOGETHER_H

#include "base/crew.h"
#include "db/driver.h"

/* Of more threads than this, all that wait send in one statement, whatever
 * pool_size: 64 threads on as many connections had a third of the pairs of 64
 * threads on four. */
#define LK_TOGETHER_CROWD 8

struct lk_batch;
struct lk_run;
struct lk_store;

/* Send CLAIM_UNQUEUED or RELEASE_UNQUEUED about the batch, which is of one
 * lease, alone or with those of others.  Return as lk_batch_run().  Where a
 * statement for all is refused, perhaps because of one of them, it has changed
 * nothing: return 0, without a row, so that each goes on alone. */
int lk_together_run(struct lk_store *store, sqlock_statement_kind kind,
                    struct lk_batch *batch, struct lk_run *run,
                    sqlock_result *result, sqlock_error *err);

#endif
