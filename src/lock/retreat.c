/*
 * retreat.c - what an acquisition gives up (retreat.h)
 */
#include "lock/retreat.h"

#include "base/clock.h"
#include "lease/bell.h"
#include "lock/claim.h"
#include "lock/release.h"

/* Give up what the part has in the database, since its claim is not sent now:
 * the bell of a lease that was set aside for the part's turn; its ticket,
 * unless the next part of the FIFO uses it, and gets the turn with it; and a
 * claim in doubt.  The last two are undone in the background. */
static void give_up(struct lk_acquisition *a, struct lk_part *part)
{
    bool is_later = lk_is_outage(a->rc) || !a->may_block;

    (void)lk_bell_forget(part);
    if (part->state == LK_PART_TURN) {
        lk_clear_aside(part->slot, is_later);
        lk_row_wait_give_up(part, is_later);
    }
    if (part->lease.believed.fate == LK_CLAIM_IN_DOUBT)
        lk_resolver_add_claim(a->store, &part->lease, lk_boottime_ns());
    part->lease.believed.fate = LK_CLAIM_ANSWERED;
}

/* Undo a nested acquire, because the acquisition has failed or must wait for
 * another lock.  Its lease may have no other acquire left: then it is
 * released. */
static void undo(struct lk_part *part)
{
    if (part->state != LK_PART_NESTED)
        return;
    lk_undo(part->lock, part->grant);
    lk_step_back(part);
}

void lk_retreat_to(struct lk_acquisition *a, struct lk_part *wanted,
                   bool is_outage)
{
    a->first = wanted;
    lk_kept_give_back(a, wanted, is_outage);
    for (size_t i = 0; i < a->count; i++) {
        if (&a->parts[i] == wanted || a->parts[i].is_kept)
            continue;
        give_up(a, &a->parts[i]);
        if (a->parts[i].state != LK_PART_NESTED)
            lk_step_back(&a->parts[i]);
    }
    for (size_t i = 0; i < a->count; i++)
        undo(&a->parts[i]);
}

void lk_retreat(struct lk_acquisition *a)
{
    lk_kept_give_back(a, NULL, lk_is_outage(a->rc));
    for (size_t i = 0; i < a->count; i++) {
        struct lk_part *part = &a->parts[i];

        give_up(a, part);
        if (a->rc < 0)
            undo(part);
        lk_part_end(part);
    }
}
