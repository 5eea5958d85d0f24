/*
 * pass_on.h - pass a row on that its first waiter has not taken
 *
 * A release reserves the row for the first who waits, for a second.  If that
 * one is dead or stopped, whoever finds the row over, and is not the first,
 * passes it on: it reserves the row for the next, and calls the others, so that
 * those who are dead do not take a second each.  One that was called and gave
 * no sign within a second loses its ticket with the next call.
 */
#ifndef LK_PASS_ON_H
#define LK_PASS_ON_H

#include "lease/batch.h"

/* How many are called at once. */
#define LK_CALLED_MAX 32

/* Pass the row of that key on, if it is over and others wait; of a row that is
 * shared, call those who wait, unless the last call is not over.  All that it
 * sends has that deadline.  Return 1; or 0 if the row is taken, or nobody
 * waits, or another process was faster; or a result of lk_store_run(). */
int lk_row_pass_on(struct lk_store *store, const char *key,
                   int64_t deadline_ns);

/* After a release: ask those to look, by lk_bell_ask_to_look(), who may have
 * waited for a second.  Those who have waited for less look by themselves. */
void lk_rows_ask_to_look(struct lk_store *store, const struct lk_batch *batch);

#endif
