/*
 * note.h - what this process knows of the rows for whose locks it has no handle
 * any more: those that it left free and without tickets, and those that others
 * wanted, too
 *
 * A program that obtains a lock for each use and drops it would otherwise claim
 * each time as if nothing were known of the row: by the longer statement, and
 * never together with other threads (lease/README.md); or by a claim that is
 * refused before it asks for a place, while others pass.
 */
#ifndef LK_NOTE_H
#define LK_NOTE_H

#include "lock/registry.h"

/* The caller of each holds the mutex of slot.h, except for lk_notes_clear(),
 * which ends the registry. */

/* Note what is known of the row of a slot that ends.  The oldest note goes
 * where there are too many, or none is made where there is no memory. */
void lk_note_slot(const struct lk_slot *slot);

/* Tell a new slot what was noted, and remove the note. */
void lk_recall_slot(struct lk_slot *slot);

void lk_notes_clear(sqlock_registry *registry);

#endif
