/*
 * ticket.h - the ticket that this process may have in a lock's row, and the
 * session that has its bell; used by the part that has the turn
 */
#ifndef LK_LOCK_TICKET_H
#define LK_LOCK_TICKET_H

#include "lock/slot.h"

/* Note that a statement with the slot's ticket was not answered; and return
 * whether such a one may arrive yet. */
void lk_ticket_note_late(struct lk_slot *slot);
bool lk_ticket_is_late(const struct lk_slot *slot);

/* Let the part's lease have the session with the bell of its ticket, which it
 * gives up with its release.  A share gives it up at once: those behind would
 * wait for it, although they may share the lock. */
void lk_ticket_becomes_lease(struct lk_part *part);

/* Give up the session, if there is one. */
void lk_ticket_drop_session(struct lk_slot *slot);

#endif
