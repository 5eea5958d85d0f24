/*
 * retreat.h - what an acquisition gives up while it waits for one of its locks,
 * and when it ends: turns, tickets, kept rows, claims in doubt, nested acquires
 */
#ifndef LK_RETREAT_H
#define LK_RETREAT_H

#include "lock/acquisition.h"

/* Give up all turns except those of the part to wait for, and of rows that are
 * kept meanwhile. */
void lk_retreat_to(struct lk_acquisition *a, struct lk_part *wanted,
                   bool is_outage);

/* Give up what the acquisition has no lease for, as it is over, and end its
 * parts. */
void lk_retreat(struct lk_acquisition *a);

#endif
