/*
 * row_wait.c - wait for a row that another process has (row_wait.h)
 *
 * A waiter claims again when it is rung; when the holder's lease is over, and a
 * little later for each ticket before its own, so that those before it may take
 * the row first even if nobody rings; and now and then, which renews its
 * ticket.  If the row is over then, and it is not the first, it passes the row
 * on to the one who is.
 * Of a shared lock the lease that ends last may be released when another one
 * ends; permits become free then, and some are left for a ticket whose waiter
 * has died: for these it claims again, too.
 */
#include "lock/row_wait.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lease/bell.h"
#include "lease/grace.h"
#include "lease/pass_on.h"
#include "lease/sharer.h"
#include "lease/ticket.h"
#include "lock/part.h"
#include "lock/peers.h"
#include "lock/registry.h"
#include "lock/seen.h"
#include "lock/ticket.h"

/* How often to look whether permits are left that nobody is rung for. */
#define PERMITS_MS 5000

/* How much later than a row is reserved to look whether that was of use. */
#define LATE_MS 20

/* How often one that does not wait looks whether a row is over. */
#define LOOK_MS 500

/* How often one that waits for a server to grant again looks whether an
 * operator has ended the grace. */
#define GRACE_MS 1000

/* Return when the ticket may get its turn at a lock that is shared although
 * nobody rings: when the lease of a sharer ends, who has died, and those that
 * last longer may have been released. */
static int64_t shares_time(const struct lk_part *part, const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t first_ns = lk_after_ms(now, row->first_us / 1000 + 1);

    if (row->is_shared && row->permits != LK_NO_LIMIT && part->weight > 0)
        return lk_sooner(first_ns, lk_after_ms(now, PERMITS_MS));
    return row->is_shared && row->place == 0 ? first_ns : LK_NEVER;
}

/* Return whether the bell of the one before was free although it is still
 * before: it has none.  Note who is before. */
static bool is_silent(struct lk_row_wait *wait, struct lk_part *part,
                      const char *before)
{
    bool was_free = part->ear.was_free && strcmp(wait->before, before) == 0;

    part->ear.was_free = false; /* it may have a bell later */
    (void)snprintf(wait->before, sizeof wait->before, "%s", before);
    return was_free;
}

/* Set when to look once more, if that is due.  A look calls those before who
 * keep it out of a lock that is shared, and the next one takes the tickets of
 * those who gave no sign. */
static void plan_look(struct lk_row_wait *wait, const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();

    if (wait->look_ns == 0)
        wait->pause_ms = LK_TICKET_FRESH_MS / 2;
    if (now < wait->look_ns)
        return;
    wait->has_called =
        row->is_shared && wait->look_ns != 0 && !wait->has_called;
    if (wait->has_called) {
        wait->look_ns = lk_after_ms(now, LK_RESERVED_MS + LATE_MS);
        return;
    }
    wait->pause_ms *= 2;
    if (wait->pause_ms > LK_TICKET_RENEWED_MS)
        wait->pause_ms = LK_TICKET_RENEWED_MS;
    wait->look_ns = lk_after_ms(now, wait->pause_ms);
}

bool lk_row_wait_pass_on(struct lk_row_wait *wait, const struct lk_part *part,
                         const struct lk_row *row)
{
    bool is_due = wait->look_ns != 0 && sqlock_monotonic_ns() >= wait->look_ns;
    bool is_over = !row->is_taken;

    /* A reader may have to wait for somebody only who has died. */
    if (!row->exists || row->place <= 0 ||
        !(is_over || (is_due && row->is_shared && part->weight > 0)))
        return false;
    return lk_row_pass_on(part->slot->store, part->slot->key,
                          lk_store_deadline(part->slot->store)) > 0 &&
           is_over;
}

void lk_row_wait_look(struct lk_part *part, int64_t deadline_ns)
{
    struct lk_slot *slot = part->slot;
    int64_t now = sqlock_monotonic_ns();

    if (!lk_store_has_tickets(slot->store) || now < slot->look_ns)
        return;
    slot->look_ns = lk_after_ms(now, LOOK_MS);
    (void)lk_row_pass_on(slot->store, slot->key, deadline_ns);
}

/* Leave the row that a release has reserved for the part's ticket, which grace
 * refuses to grant: it would be over before the grace is.  The row is free then
 * for the first ticket, which is one of this part again.  Nothing is done if
 * the row is not reserved so.  A ticket to share the lock has no such
 * statement. */
static void keep_place(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;
    char ticket[SQLOCK_KEY_SIZE];
    struct lk_lease lease = part->lease;
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    if (part->weight > 0 || strcmp(lease.client_id, slot->ticket) != 0 ||
        lease.believed.fate != LK_CLAIM_ANSWERED)
        return;
    lk_bell_client_id(slot->store, part->marked_as, slot->ticket, ticket);
    lease.asked.is_for_peers = true;
    lease.asked.ticket = ticket;
    lease.asked.began_ns = LK_NEVER; /* nobody is asked to look */
    lk_batch_of_one(&batch, &item, &lease, lk_store_deadline(slot->store));
    rc = lk_batch_release(slot->store, &batch, NULL);
    if ((rc < 0 && rc != SQLOCK_EUNCERTAIN) ||
        (rc == 0 && item.rc == SQLOCK_ELOST))
        return; /* nothing was changed */
    /* A copy of the release that comes later must not find the next lease. */
    memcpy(slot->ticket, ticket, sizeof slot->ticket);
    slot->late_until_ns = 0;
}

/* Begin to wait; otherwise as lk_row_wait_begin(), but without a claim. */
static enum lk_row_wait_next begin(struct lk_row_wait *wait,
                                   struct lk_part *part,
                                   const struct lk_row *row, int64_t *until_ns)
{
    const struct lk_store *store = part->slot->store;
    bool has_bell = lk_bell_is_there(&part->slot->registry->bell);
    const char *before = row->before[0] != '\0' ? row->before : row->client_id;
    bool may_services_come;
    int64_t now = sqlock_monotonic_ns();
    int64_t grace_ns = lk_grace_left_ns(store);
    bool is_late = false;
    int rc;

    if (grace_ns > 0) {
        keep_place(part);
        part->ear.was_free = false; /* claims notice the end of the grace */
        *until_ns = lk_sooner(
            part->waiter->deadline_ns,
            lk_sooner(lk_after_ns(now, grace_ns), lk_after_ms(now, GRACE_MS)));
        return LK_ROW_WAIT_PARK;
    }
    if (!row->exists) {
        /* A transaction has locked the row: there was no place to be had. */
        *until_ns = lk_sooner(part->waiter->deadline_ns,
                              lk_after_ms(now, store->options.poll_ms));
        return LK_ROW_WAIT_PARK;
    }
    /* It has come to the end of the queue, or those before it may keep it out
     * of a lock that others share now. */
    if (part->slot->place < 0 || row->place > part->slot->place ||
        (row->is_shared && !wait->was_shared))
        wait->look_ns = 0;
    wait->was_shared = row->is_shared;
    part->slot->place = row->place;
    lk_seen_forget(part->slot);
    lk_seen_note(part->slot, row);
    plan_look(wait, row);
    may_services_come = lk_peers_refused(part, row);
    if (!has_bell)
        lk_ticket_drop_session(part->slot);
    if (!has_bell || row->place < 0 || may_services_come)
        return LK_ROW_WAIT_POLL;
    /* Of sharers nobody has a bell; whoever has a ticket has one. */
    if (lk_bell_of(store)->is_of_one &&
        ((row->is_shared && row->place == 0) || is_silent(wait, part, before)))
        return LK_ROW_WAIT_POLL;
    *until_ns = lk_sooner(part->waiter->deadline_ns, wait->renew_ns);
    if (row->place > 0)
        *until_ns = lk_sooner(*until_ns, wait->look_ns);
    if (part->slot->peers.seen[0].opening > 0) /* a service deletes tickets */
        *until_ns = lk_sooner(*until_ns, lk_after_ms(now, LK_RESERVED_MS));
    *until_ns = lk_sooner(*until_ns, lk_seen_own_time(part->slot));
    *until_ns = lk_sooner(*until_ns, shares_time(part, row));
    *until_ns = lk_sooner(*until_ns, lk_peers_until_ns(part->slot));
    rc = lk_bell_hear(part, before, *until_ns, &is_late, NULL);
    if (rc < 0) {
        lk_ticket_drop_session(part->slot);
        return LK_ROW_WAIT_POLL;
    }
    if (is_late)
        return LK_ROW_WAIT_AGAIN;
    /* The one before, which is all that it hears, may have stopped, or keep a
     * bell whose lease was ended by somebody else. */
    if (lk_bell_of(store)->is_of_one)
        (void)lk_poller_begin(part, LK_POLL_BESIDE_BELL, LK_NEVER, NULL);
    return LK_ROW_WAIT_PARK;
}

enum lk_row_wait_next lk_row_wait_begin(struct lk_row_wait *wait,
                                        struct lk_part *part,
                                        const struct lk_row *row,
                                        int64_t *until_ns)
{
    wait->renew_ns = lk_after_ms(sqlock_monotonic_ns(), LK_TICKET_RENEWED_MS);
    return begin(wait, part, row, until_ns);
}

enum lk_row_wait_next lk_row_wait_look_on(struct lk_row_wait *wait,
                                          struct lk_part *part,
                                          int64_t *until_ns)
{
    struct lk_slot *slot = part->slot;
    bool is_nearer = part->ear.was_free && slot->place > LK_CHAIN_MAX &&
                     slot->session != NULL &&
                     sqlock_monotonic_ns() < wait->look_ns;
    struct lk_lease lease = {.key = slot->key};
    struct lk_batch batch;
    struct lk_item item;

    lk_bell_expect(part);
    memcpy(lease.client_id, slot->ticket, sizeof slot->ticket);
    lk_batch_of_one(
        &batch, &item, &lease,
        lk_sooner(lk_store_deadline(slot->store), part->waiter->deadline_ns));
    batch.session = slot->session;
    /* A waiter that was called gives its sign by a claim. */
    if (is_nearer && lk_rows_read(slot->store, &batch, NULL) == 0 &&
        item.row.is_taken && item.row.place > 0 && !item.row.is_called)
        return begin(wait, part, &item.row, until_ns);
    lk_seen_look(slot);
    return LK_ROW_WAIT_AGAIN;
}

enum lk_poll_until lk_row_wait_polls(const struct lk_part *part)
{
    return lk_bell_is_there(&part->slot->registry->bell) ? LK_POLL_UNTIL_CHANGED
                                                         : LK_POLL_UNTIL_FREE;
}

int64_t lk_row_wait_looks_at(const struct lk_row_wait *wait,
                             const struct lk_part *part)
{
    return part->slot->place > 0 && wait->look_ns != 0 ? wait->look_ns
                                                       : LK_NEVER;
}

/* Pass the turn to the next of the FIFO, if that can go on with the ticket,
 * which says how much its waiter takes, and who that is.  Both is done at once:
 * if the next one left before it has the turn, the ticket would be nobody's.
 * It is nobody's, too, if the next one joins a share and takes no turn, or may
 * do so once the database has been asked. */
static bool pass_on(struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;
    const sqlock_options *options = &slot->store->options;
    const struct lk_part *next;
    bool is_wanted;

    pthread_mutex_lock(&lk_mutex);
    next = lk_first_queued(slot);
    is_wanted = next != NULL && next->weight == part->weight &&
                !slot->is_asked && lk_joinable(next) == NULL &&
                (next->owner == part->owner || !options->detect_deadlocks);
    if (is_wanted)
        lk_leave(part);
    pthread_mutex_unlock(&lk_mutex);
    return is_wanted;
}

/* Give up the ticket and the session that waits. */
static void leave(struct lk_slot *slot, bool is_outage)
{
    lk_peers_end_wait(slot);
    lk_resolver_leave(slot->store, slot->key, slot->ticket, is_outage);
    slot->ticket[0] = '\0';
    lk_ticket_drop_session(slot);
}

bool lk_row_wait_ends(struct lk_part *part)
{
    /* A claim in doubt is repeated as it was. */
    if (part->lease.believed.fate == LK_CLAIM_IN_DOUBT ||
        sqlock_monotonic_ns() < lk_peers_until_ns(part->slot))
        return false;
    if (lk_ticket_is_late(part->slot))
        lk_resolver_add_claim(part->slot->store, &part->lease,
                              lk_boottime_ns());
    leave(part->slot, false);
    return true;
}

void lk_row_wait_give_up(struct lk_part *part, bool is_outage)
{
    struct lk_slot *slot = part->slot;
    bool is_late = part->lease.believed.fate == LK_CLAIM_IN_DOUBT ||
                   lk_ticket_is_late(slot);

    if (slot->ticket[0] == '\0') {
        lk_peers_end_wait(slot);
        return;
    }
    if (!is_late && pass_on(part))
        return;
    leave(slot, is_outage);
    if (is_late) /* it is undone */
        part->lease.believed.fate = LK_CLAIM_IN_DOUBT;
}
