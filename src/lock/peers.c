/*
 * peers.c - the share of Spring services (peers.h)
 *
 * Each process counts its own turns, and the turns of services that it has
 * ended by taking the row back.  Each turn of a service is ended by one process
 * of ours, so all of them together come out even.
 */
#include "lock/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lease/ticket.h"
#include "lock/claim.h"
#include "lock/row_wait.h"

/* JdbcLockRegistry's default pause between two attempts, plus the time of an
 * attempt: how long the row is open.  RELEASE_TO_PEERS has it, too. */
#define OPEN_NS (110 * LK_NS_PER_MS)
/* Pause between two looks at a row that is open; and at one that a service has,
 * at first. */
#define LOOK_NS (2 * LK_NS_PER_MS)
#define LOOK_TAKEN_NS LK_NS_PER_MS

/* A process that finds a service at the row cannot know who else waits, since
 * tickets may have been deleted: it leaves others so much time to take the row
 * back once that is gone, or in any case. */
#define LATE_GONE_NS (20 * LK_NS_PER_MS)
#define LATE_MS 300

/* A wait with less time left opens nothing. */
#define SPARE_MS 1000

/* Turns are counted in thousandths. */
#define TURN INT64_C(1000)
/* The most that a process owes services, or they have had in advance. */
#define OWED_MAX (1000 * TURN)
/* After so many turns of others a service is gone. */
#define TURNS_OF_OTHERS 16
/* After so many turns a service comes often. */
#define OFTEN 8
/* CLIENT_ID of a service that had the row between two looks, as long as none is
 * known by its own. */
#define UNNAMED ""

/* Where no service was seen, one may wait all the same: with a release that
 * reserves the row for the next ticket there is no moment at which it could
 * take the row and so be seen.  While others of ours wait, a lease is counted
 * as its duration plus the time of its hand-over, and an opening comes at least
 * after each such share; on average after half of it, since the counting begins
 * anywhere in it: processes that take one lease each open the row as well. */
#define UNSEEN_TURN_NS (500 * LK_NS_PER_US)
#define UNSEEN_SHARE_NS (20000 * LK_NS_PER_MS)

/* For waiting=poll, where a lease is counted as its duration plus the time of
 * its round trips. */
#define POLL_TURN_NS (100 * LK_NS_PER_US)
#define POLL_SHARE_NS (300 * LK_NS_PER_MS)
#define POLL_SHARE_MAX_NS (4800 * LK_NS_PER_MS)

/* Return whether our other processes poll as services do, and cannot be
 * seen. */
static bool only_polls(const struct lk_slot *slot)
{
    return slot->store->options.waiting == SQLOCK_WAITING_POLL &&
           !lk_row_wait_is_there(slot->store);
}

/* Return whether the row can be left free for services although others wait. */
static bool can_open(const struct lk_slot *slot)
{
    return slot->store->statements[SQLOCK_SQL_RELEASE_TO_PEERS].text != NULL;
}

/* --- which services there are --- */

/* Note that a service with that CLIENT_ID has a turn.  Forget those that others
 * have been seen instead of for long. */
static void meet(struct lk_slot *slot, const char *client_id)
{
    struct lk_peer *seen = slot->peers.seen;
    struct lk_peer *found = NULL;
    size_t kept = 0;

    slot->peers.met++;

    for (size_t i = 0; i < slot->peers.count; i++) {
        bool is_met = strcmp(seen[i].client_id, client_id) == 0;

        seen[i].missed = is_met ? 0 : seen[i].missed + 1;
        if (seen[i].missed > TURNS_OF_OTHERS ||
            (!is_met && strcmp(seen[i].client_id, UNNAMED) == 0))
            continue;
        seen[kept] = seen[i];
        if (is_met)
            found = &seen[kept];
        kept++;
    }
    slot->peers.count = kept;
    if (found != NULL || kept == LK_PEERS_MAX)
        return;
    (void)snprintf(seen[kept].client_id, sizeof seen[kept].client_id, "%s",
                   client_id);
    seen[kept].missed = 0;
    slot->peers.count++;
}

/* None came to an opened row.  One that has come often may have been slow: it
 * has another chance. */
static void miss(struct lk_slot *slot)
{
    bool came_often = slot->peers.met >= OFTEN;

    slot->peers.met = 0;
    if (came_often)
        return;
    slot->peers.count = 0;
    slot->peers.owed = 0;
}

/* --- while the part waits --- */

static void see(struct lk_slot *slot, enum lk_peers_last now_is)
{
    int64_t now = sqlock_monotonic_ns();

    if (slot->peers.last == LK_PEERS_TAKEN)
        slot->peers.turn_ns = now - slot->peers.since_ns;
    slot->peers.last = now_is;
    slot->peers.since_ns = now;
}

/* Look at a row that a service has.  Its renewals change EXPIRED_AFTER alone;
 * a service that takes the row of a dead one changes CLIENT_ID, too; and each
 * other turn has a new row. */
static void look_at_turn(struct lk_slot *slot, const struct lk_row *row)
{
    if (slot->peers.last == LK_PEERS_TAKEN &&
        slot->peers.turn_began_us == row->acquired_at_us &&
        strcmp(slot->peers.turn_of, row->client_id) == 0)
        return;
    see(slot, LK_PEERS_TAKEN);
    slot->peers.turn_began_us = row->acquired_at_us;
    (void)snprintf(slot->peers.turn_of, sizeof slot->peers.turn_of, "%s",
                   row->client_id);
    slot->peers.turns++;
    meet(slot, row->client_id);
}

/* Look at a row that a service has deleted.  Return how long others of ours may
 * take it first. */
static int64_t look_at_gone(struct lk_slot *slot)
{
    int64_t from_ns;

    if (slot->peers.last != LK_PEERS_GONE)
        see(slot, LK_PEERS_GONE);
    from_ns = lk_sooner(slot->peers.mine_ns,
                        lk_after_ns(slot->peers.since_ns, LATE_GONE_NS));
    return lk_after_ns(from_ns, -sqlock_monotonic_ns());
}

/* Look at a row that another process of ours has.  If it took it back from
 * services, the part's ticket may have been deleted: claim anew.  It does so
 * before the row's time only if a service has come and gone. */
static int64_t look_at_ours(struct lk_slot *slot, int64_t left_ns)
{
    enum lk_peers_last was = slot->peers.last;

    slot->peers.last = LK_PEERS_OURS;
    if (was == LK_PEERS_OPEN && slot->peers.count == 0 &&
        slot->peers.open_until_ns > sqlock_monotonic_ns())
        meet(slot, UNNAMED);
    if (was >= LK_PEERS_OPEN)
        lk_peers_end_wait(slot);
    return was >= LK_PEERS_OPEN ? 0 : left_ns;
}

int64_t lk_peers_look(struct lk_slot *slot, const struct lk_row *row)
{
    int64_t left_ns = lk_row_blocked_ns(row);
    int64_t open_ns = slot->peers.open_until_ns - sqlock_monotonic_ns();

    if (!can_open(slot))
        return left_ns;
    if (lk_row_is_of_peer(slot->store, row))
        look_at_turn(slot, row);
    else if (!row->exists)
        left_ns = look_at_gone(slot);
    else if (row->is_taken)
        left_ns = look_at_ours(slot, left_ns);
    else if (slot->peers.last == LK_PEERS_TAKEN)
        see(slot, LK_PEERS_GONE); /* its lease is over */
    else if (open_ns > 0)
        left_ns = open_ns;
    return left_ns > 0 ? left_ns : 0;
}

bool lk_peers_refused(struct lk_slot *slot, const struct lk_row *row)
{
    bool is_of_peer = lk_row_is_of_peer(slot->store, row);
    bool is_open = row->exists && row->client_id[0] == '\0' && row->is_taken;
    int heads = row->place + 1 + (row->is_taken && !is_open);

    if (!is_open && !is_of_peer) {
        if (slot->peers.last >= LK_PEERS_OPEN)
            lk_peers_end_wait(slot);
        if (heads > slot->peers.most)
            slot->peers.most = heads;
        return false;
    }
    if (is_open)
        slot->peers.open_until_ns =
            lk_after_ns(sqlock_monotonic_ns(), lk_row_blocked_ns(row));
    if (slot->peers.last < LK_PEERS_OPEN) {
        see(slot, LK_PEERS_OPEN);
        slot->peers.mine_ns = lk_after_ms(
            sqlock_monotonic_ns(),
            LATE_MS + INT64_C(1000) * (row->place > 0 ? row->place : 0));
    }
    return true;
}

int64_t lk_peers_pause_ns(const struct lk_slot *slot)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t since_ns = now - slot->peers.since_ns;
    int64_t left_ns = slot->peers.turn_ns - since_ns;
    int64_t pause_ns = LOOK_NS;

    if (slot->peers.last < LK_PEERS_OPEN)
        return LK_NEVER;
    if (slot->peers.last == LK_PEERS_TAKEN)
        pause_ns = LOOK_TAKEN_NS + lk_sooner(since_ns / 4, llabs(left_ns) / 2);
    return slot->peers.mine_ns > now ? 4 * pause_ns : pause_ns;
}

bool lk_peers_may_try(const struct lk_slot *slot)
{
    return slot->peers.last == LK_PEERS_TAKEN &&
           slot->peers.mine_ns <= sqlock_monotonic_ns();
}

void lk_peers_end_wait(struct lk_slot *slot)
{
    slot->peers.last = LK_PEERS_NOTHING;
    slot->peers.open_until_ns = 0;
    slot->peers.mine_ns = 0;
    slot->peers.turns = 0;
    slot->peers.most = 0;
    free(slot->peers.queue);
    slot->peers.queue = NULL;
}

/* --- the account --- */

static void owe(struct lk_slot *slot, int64_t more)
{
    int64_t owed = slot->peers.owed + more;

    slot->peers.owed = owed > OWED_MAX    ? OWED_MAX
                       : owed < -OWED_MAX ? -OWED_MAX
                                          : owed;
}

/* Pay the turns that services had until this process took the row back. */
static void pay(struct lk_slot *slot)
{
    if (slot->peers.count == 0) /* it was not seen itself */
        meet(slot, UNNAMED);
    slot->peers.used_ns = 0;
    owe(slot, -TURN * (slot->peers.turns > 0 ? slot->peers.turns : 1));
}

void lk_peers_granted(struct lk_slot *slot, const struct lk_lease *lease)
{
    bool was_there = slot->peers.most > 0 || slot->grants > 0;
    bool was_seen = slot->peers.last >= LK_PEERS_OPEN;

    if (!can_open(slot))
        return;
    if (slot->peers.most > 0)
        slot->peers.heads = slot->peers.most;
    else if (!was_seen)
        slot->peers.heads = 1 + lease->is_contended;
    /* Our releases leave the row in the table; a service deletes its row. */
    if (slot->peers.last >= LK_PEERS_TAKEN || (was_there && lease->is_new_row))
        pay(slot);
    else if (slot->peers.last == LK_PEERS_OPEN)
        miss(slot);
    lk_peers_end_wait(slot);
}

static void charge_unseen(struct lk_slot *slot, int64_t held_ns)
{
    if (slot->peers.used_ns == 0)
        slot->peers.used_ns = lk_random_between(0, UNSEEN_SHARE_NS);
    slot->peers.used_ns += held_ns + UNSEEN_TURN_NS;
}

void lk_peers_charge(struct lk_slot *slot, int64_t held_ns)
{
    int heads = slot->peers.heads > 0 ? slot->peers.heads : 1;

    if (only_polls(slot))
        slot->peers.used_ns += lk_after_ns(held_ns, POLL_TURN_NS);
    else if (slot->peers.count > 0)
        owe(slot, (int64_t)slot->peers.count * TURN / heads);
    else if (can_open(slot) && slot->is_contended)
        charge_unseen(slot, held_ns);
}

bool lk_peers_are_due(const struct lk_slot *slot)
{
    if (only_polls(slot))
        return lk_peers_must_pause(slot);
    return slot->peers.count > 0 ? slot->peers.owed >= TURN
                                 : slot->peers.used_ns >= UNSEEN_SHARE_NS;
}

/* --- opening --- */

/* Keep the tickets of those who came until the row was opened; they do not look
 * at it.  If a service has deleted it already, those from before that stay. */
static void keep_queue(struct lk_slot *slot)
{
    char *queue = NULL;
    char *others;

    if (lk_row_queue(slot->store, slot->key, &queue, NULL) < 0 || queue == NULL)
        return;
    others = lk_ticket_behind(queue, slot->ticket);
    free(queue);
    if (others == NULL)
        return;
    free(slot->peers.queue);
    slot->peers.queue = others;
}

bool lk_peers_go_first(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;
    char *queue;

    if (!can_open(slot) || !lk_peers_are_due(slot) ||
        part->waiter->wait_ms == 0 || part->lease.weight > 0 ||
        part->lease.fate != LK_CLAIM_ANSWERED ||
        part->waiter->deadline_ns <
            lk_after_ms(sqlock_monotonic_ns(), SPARE_MS))
        return false;
    slot->peers.used_ns = 0; /* also after a failure */
    if (lk_row_queue(slot->store, slot->key, &queue, NULL) < 0)
        return false;
    slot->peers.queue = queue;
    return true;
}

int lk_peers_open(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    struct lk_store *store = slot->store;
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    lk_claim_keep_session(part);
    lk_store_client_id(store, part->marked_as, slot->ticket);
    slot->late_until_ns = 0;
    slot->place = -1;
    part->lease.is_for_peers = true;
    part->lease.is_unqueued = false;
    part->lease.ticket = slot->ticket;
    lk_batch_of_one(&batch, &item, &part->lease, lk_store_deadline(store));
    rc = lk_batch_release(store, &batch, err);
    part->lease.place = (struct lk_place){0};
    if (item.rc == SQLOCK_EEXPIRED) /* the row is open all the same */
        item.rc = 0;
    if (rc < 0 || item.rc < 0)
        return rc < 0 ? rc : item.rc;
    slot->place = 0;
    keep_queue(slot);
    see(slot, LK_PEERS_OPEN);
    slot->peers.mine_ns = slot->peers.since_ns;
    slot->peers.open_until_ns = lk_after_ns(slot->peers.since_ns, OPEN_NS);
    return 0;
}

/* --- where our own processes poll --- */

/* Return a pause in which each other process polls at least once: two polls are
 * at most 5/4 of poll_ms apart. */
static int64_t pause_ns(const struct lk_slot *slot)
{
    return (int64_t)slot->store->options.poll_ms * LK_NS_PER_MS * 3 / 2;
}

bool lk_peers_must_pause(const struct lk_slot *slot)
{
    return only_polls(slot) &&
           slot->peers.used_ns >=
               lk_later(slot->peers.poll_share_ns, POLL_SHARE_NS);
}

int lk_peers_begin_pause(struct lk_slot *slot, int64_t *until_ns,
                         sqlock_error *err)
{
    struct lk_store *store = slot->store;
    struct lk_row row;
    int rc;

    slot->peers.used_ns = 0;
    slot->peers.poll_share_ns =
        lk_sooner(lk_later(slot->peers.poll_share_ns, POLL_SHARE_NS) * 2,
                  POLL_SHARE_MAX_NS);
    /* Another process may come and go during the pause; the token shows it. */
    rc = lk_row_read(store, slot->key, lk_store_deadline(store), &row, err);
    slot->peers.token = row.token;
    *until_ns = sqlock_monotonic_ns() + pause_ns(slot);
    return rc;
}

int lk_peers_end_pause(struct lk_slot *slot, sqlock_error *err)
{
    struct lk_store *store = slot->store;
    struct lk_row row;
    int rc;

    rc = lk_row_read(store, slot->key, lk_store_deadline(store), &row, err);
    if (rc == 0 && row.exists &&
        (row.is_taken || row.token != slot->peers.token))
        slot->peers.poll_share_ns = POLL_SHARE_NS;
    return rc;
}
