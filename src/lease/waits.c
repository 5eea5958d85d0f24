/*
 * waits.c - read who waits for whom, and look for a circle (waits.h)
 */
#include "lease/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/sharer.h"

/* --- collecting --- */

static bool add(struct lk_waits *waits, const struct lk_party *party)
{
    if (waits->count == waits->room) {
        size_t room = waits->room != 0 ? 2 * waits->room : 16;
        struct lk_party *all = realloc(waits->all, room * sizeof *all);

        if (all == NULL)
            return false;
        waits->all = all;
        waits->room = room;
    }
    waits->all[waits->count++] = *party;
    return true;
}

bool lk_waits_add(struct lk_waits *waits, uint32_t waiter, uint32_t awaited)
{
    const struct lk_party has = {.lock = waits->locks, .owner = awaited};
    const struct lk_party wants = {
        .lock = waits->locks, .owner = waiter, .is_waiting = true};

    waits->locks++;
    return add(waits, &has) && add(waits, &wants);
}

void lk_waits_clear(struct lk_waits *waits)
{
    free(waits->all);
    *waits = (struct lk_waits){.all = NULL};
}

/* Add a party like `party`, as that ticket or sharer says, unless that is
 * over. */
static bool add_as(struct lk_waits *waits, struct lk_party party,
                   const struct lk_ticket *as, int64_t now_us)
{
    party.owner = lk_client_id_mark(as->client_id);
    party.weight = as->weight;
    party.since_us = as->since_us;
    return as->ends_at_us < now_us || add(waits, &party);
}

/* Add those who have the lock. */
static bool add_holders(struct lk_waits *waits, const struct lk_party *like,
                        const char *client_id, const char *sharers,
                        int64_t now_us)
{
    struct lk_party party = *like;
    struct lk_sharer sharer;

    if (!lk_client_id_is_group(client_id)) {
        party.owner = lk_client_id_mark(client_id);
        return add(waits, &party);
    }
    /* Of a group that is not this one nobody is known to wait. */
    if (!lk_sharers_have(sharers, client_id))
        return true;
    while (lk_sharer_next(&sharers, &sharer))
        if (!add_as(waits, party, &sharer.as, now_us))
            return false;
    return true;
}

bool lk_waits_add_lock(struct lk_waits *waits, const char *client_id,
                       const char *sharers, const char *queue, int64_t now_us)
{
    uint32_t permits = lk_sharers_permits(sharers);
    struct lk_party party = {.lock = waits->locks++,
                             .most =
                                 permits != LK_NO_LIMIT ? permits : UINT32_MAX};
    struct lk_ticket ticket;

    if (!add_holders(waits, &party, client_id, sharers, now_us))
        return false;
    party.is_waiting = true;
    while (lk_ticket_next(&queue, &ticket))
        if (!add_as(waits, party, &ticket, now_us))
            return false;
    return true;
}

int lk_waits_read(struct lk_store *store, int64_t latest_ns,
                  struct lk_waits *waits, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = lk_sooner(lk_store_deadline(store), latest_ns),
        .is_repeatable = true,
    };
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, "", &arguments);
    rc = lk_store_run(store, SQLOCK_SQL_WAITS, &run, &result, err);
    for (size_t i = 0; rc == 0 && i < result.rows; i++) {
        const sqlock_value *cells = &result.cells[i * result.columns];
        const char *client_id = lk_cell_text(&cells[0]);

        if (client_id != NULL && strlen(client_id) == SQLOCK_KEY_SIZE - 1 &&
            !lk_waits_add_lock(waits, client_id, lk_cell_text(&cells[2]),
                               lk_cell_text(&cells[1]), cells[3].integer))
            rc = lk_error_nomem(err);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* --- circles --- */

/* Return when the last wait of that owner began; INT64_MAX: it has no
 * ticket. */
static int64_t since_of(const struct lk_waits *waits, uint32_t owner)
{
    int64_t since_us = 0;

    for (size_t i = 0; i < waits->count; i++) {
        const struct lk_party *party = &waits->all[i];

        if (party->is_waiting && party->owner == owner &&
            party->since_us > since_us)
            since_us = party->since_us;
    }
    return since_us != 0 ? since_us : INT64_MAX;
}

/* Return what the party takes of the lock; alone, more than there is. */
static int64_t need(const struct lk_party *party)
{
    return party->weight > 0 ? party->weight : party->most + 1;
}

/* Return whether the party would be let in if all left but those that are
 * stuck. */
static bool is_let_in(const struct lk_waits *waits, size_t at)
{
    const struct lk_party *self = &waits->all[at];
    int64_t taken = 0;

    for (size_t i = at; i-- > 0 && waits->all[i].lock == self->lock;) {
        const struct lk_party *other = &waits->all[i];

        if (other->is_stuck && other->owner != self->owner)
            taken += need(other);
    }
    return taken == 0 || taken + need(self) <= self->most;
}

/* Return whether the owner waits, since `latest_us` at the latest, where
 * nobody lets it in. */
static bool is_kept_out(const struct lk_waits *waits, uint32_t owner,
                        int64_t latest_us)
{
    for (size_t i = 0; i < waits->count; i++) {
        const struct lk_party *party = &waits->all[i];

        if (party->is_waiting && party->owner == owner &&
            party->since_us <= latest_us && !is_let_in(waits, i))
            return true;
    }
    return false;
}

/* Note whether the owner is stuck, for all that it has and wants. */
static void note(struct lk_waits *waits, uint32_t owner, bool is_stuck)
{
    for (size_t i = 0; i < waits->count; i++)
        if (waits->all[i].owner == owner)
            waits->all[i].is_stuck = is_stuck;
}

/* Of the owners that are noted as stuck, let go on who is let in, and whom
 * those let in that leave then, and so on. */
static void settle(struct lk_waits *waits, int64_t latest_us)
{
    bool is_more = true;

    while (is_more) {
        is_more = false;
        for (size_t i = 0; i < waits->count; i++) {
            uint32_t owner = waits->all[i].owner;

            if (!waits->all[i].is_stuck || is_kept_out(waits, owner, latest_us))
                continue;
            note(waits, owner, false);
            is_more = true;
        }
    }
}

/* First let `self` go on.  An owner that is stuck even so is in another circle,
 * or behind one: somebody in there is told, and lets it go on.  `self` is told
 * if it is stuck although all of these do. */
bool lk_waits_are_closed(struct lk_waits *waits, uint32_t self)
{
    int64_t latest_us = since_of(waits, self);
    bool is_closed = false;

    for (size_t i = 0; i < waits->count; i++)
        waits->all[i].is_stuck = waits->all[i].owner != self;
    settle(waits, latest_us);
    for (size_t i = 0; i < waits->count; i++)
        waits->all[i].is_stuck = !waits->all[i].is_stuck;
    settle(waits, latest_us);
    for (size_t i = 0; i < waits->count; i++)
        is_closed = is_closed ||
                    (waits->all[i].owner == self && waits->all[i].is_stuck);
    return is_closed;
}
