/*
 * unqueued.h - the rows that this process left free and without tickets, and
 * for whose locks it has no handle any more
 *
 * A program that obtains a lock for each use and drops it would otherwise claim
 * each time as if nothing were known of the row: by the longer statement, and
 * never together with other threads (lease/README.md).
 */
#ifndef LK_UNQUEUED_H
#define LK_UNQUEUED_H

#include <stdbool.h>

#include "lock/registry.h"

/* The caller of each holds the mutex of slot.h, except for lk_unqueued_clear(),
 * which ends the registry. */

/* Note that the row of a key was left so.  The oldest note goes where there are
 * too many, or none is made where there is no memory. */
void lk_unqueued_note(sqlock_registry *registry, const char *key);

/* Return whether there is a note, and remove it. */
bool lk_unqueued_take(sqlock_registry *registry, const char *key);

void lk_unqueued_clear(sqlock_registry *registry);

#endif
