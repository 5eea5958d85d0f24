/*
 * ticket.c - see ticket.h
 */
#include "lock/ticket.h"

#include "base/clock.h"
#include "lease/bell.h"

void lk_ticket_note_late(struct lk_slot *slot)
{
    slot->late_until_ns = lk_after_ms(
        lk_boottime_ns(), slot->store->options.statement_timeout_ms);
}

bool lk_ticket_is_late(const struct lk_slot *slot)
{
    return lk_boottime_ns() < slot->late_until_ns;
}

void lk_ticket_becomes_lease(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;

    slot->ticket[0] = '\0';
    if (slot->session == NULL)
        return;
    part->lease.answered.place.connection = slot->session;
    lk_pool_keep(&slot->store->db.waiting, slot->session);
    slot->session = NULL;
    if (part->lease.asked.weight > 0)
        (void)lk_place_end(slot->store, &part->lease.answered.place, false,
                           false);
}

void lk_ticket_drop_session(struct lk_slot *slot)
{
    if (slot->session != NULL)
        lk_pool_discard(&slot->store->db.waiting, slot->session);
    slot->session = NULL;
}
