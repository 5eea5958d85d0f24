/*
 * peers.c - leave a chance to Spring services (peers.h)
 *
 * Each process counts its own leases only.  All processes together still pause
 * after each share of their common time, however many processes there are.
 */
#include "lock/peers.h"

#include "base/clock.h"
#include "base/random.h"
#include "lock/row_wait.h"

/* JdbcLockRegistry's default pause between two attempts, plus the time of an
 * attempt. */
#define PAUSE_NS (110 * LK_NS_PER_MS)
/* How long our processes have the lock between two pauses.  The share doubles
 * with each pause in which no service came.  Above SHARE_MAX_NS pauses end, so
 * that a service that is gone costs little; a service that returns is seen
 * again. */
#define SHARE_NS (80 * LK_NS_PER_MS)
#define SHARE_MAX_NS (2560 * LK_NS_PER_MS)
/* The least time that a lease of ours is counted as, about the round trips of a
 * service's lease: otherwise a service would get one lease for many short ones
 * of ours. */
#define TURN_NS (4 * LK_NS_PER_MS)

/* Where no service was seen, one may wait all the same: with a release that
 * reserves the row for the next ticket there is no moment at which it could
 * take the row and so be seen.  While others of ours wait, a lease is counted
 * as its duration plus the time of its hand-over, and a pause comes at least
 * after each such share; on average after half of it, since the counting begins
 * anywhere in it: processes that take one lease each pause as well. */
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
    const struct lk_store *store = slot->store;

    return store->options.waiting == SQLOCK_WAITING_POLL &&
           !lk_row_wait_is_there(store) && slot->peers.share_ns == 0;
}

static void see(struct lk_slot *slot)
{
    if (slot->peers.share_ns == 0)
        slot->peers.used_ns = 0;
    slot->peers.share_ns = SHARE_NS;
}

int64_t lk_peers_look(struct lk_part *part, const struct lk_row *row)
{
    if (lk_row_is_of_peer(part->slot->store, row))
        part->saw_peer = true;
    return lk_row_blocked_ns(row);
}

void lk_peers_note(struct lk_part *part)
{
    if (part->saw_peer)
        see(part->slot);
    part->saw_peer = false;
}

void lk_peers_granted(struct lk_slot *slot, const struct lk_lease *lease,
                      bool was_refused)
{
    bool was_there = was_refused || slot->grants > 0;

    /* Our releases leave the row in the table; a service deletes its row. */
    if (was_there && lease->is_new_row)
        see(slot);
}

static void charge_unseen(struct lk_slot *slot, int64_t held_ns)
{
    if (slot->peers.used_ns == 0)
        slot->peers.used_ns = lk_random_between(0, UNSEEN_SHARE_NS);
    slot->peers.used_ns += held_ns + UNSEEN_TURN_NS;
}

void lk_peers_charge(struct lk_slot *slot, int64_t held_ns)
{
    if (only_polls(slot))
        slot->peers.used_ns += lk_later(held_ns, POLL_TURN_NS);
    else if (slot->peers.share_ns > 0)
        slot->peers.used_ns += held_ns > TURN_NS ? held_ns : TURN_NS;
    else if (slot->is_contended)
        charge_unseen(slot, held_ns);
}

bool lk_peers_are_due(const struct lk_slot *slot)
{
    int64_t share_ns = slot->peers.share_ns;

    if (only_polls(slot))
        share_ns = lk_later(slot->peers.poll_share_ns, POLL_SHARE_NS);
    else if (share_ns == 0)
        share_ns = UNSEEN_SHARE_NS;
    return slot->peers.used_ns >= share_ns;
}

/* Return a pause in which each other process polls at least once: two polls are
 * at most 5/4 of poll_ms apart. */
static int64_t poll_pause_ns(const struct lk_slot *slot)
{
    return (int64_t)slot->store->options.poll_ms * LK_NS_PER_MS * 3 / 2;
}

/* Double the share when a pause begins; a contender that is seen resets it. */
static void share_longer(struct lk_slot *slot, bool is_polling)
{
    int64_t *share_ns =
        is_polling ? &slot->peers.poll_share_ns : &slot->peers.share_ns;

    if (is_polling)
        *share_ns = lk_sooner(lk_later(*share_ns, POLL_SHARE_NS) * 2,
                              POLL_SHARE_MAX_NS);
    else
        *share_ns = *share_ns < SHARE_MAX_NS ? *share_ns * 2 : 0;
}

int lk_peers_begin_pause(struct lk_slot *slot, int64_t *until_ns,
                         sqlock_error *err)
{
    struct lk_store *store = slot->store;
    bool is_polling = only_polls(slot);
    struct lk_row row = {.token = 0};
    int rc = 0;

    slot->peers.used_ns = 0;
    share_longer(slot, is_polling);
    /* Another process may come and go during the pause; the token shows it. */
    if (is_polling)
        rc = lk_row_read(store, slot->key, lk_store_deadline(store), &row, err);
    slot->peers.token = row.token;
    *until_ns =
        sqlock_monotonic_ns() + (is_polling ? poll_pause_ns(slot) : PAUSE_NS);
    return rc;
}

int lk_peers_end_pause(struct lk_slot *slot, sqlock_error *err)
{
    struct lk_store *store = slot->store;
    struct lk_row row;
    int rc;

    rc = lk_row_read(store, slot->key, lk_store_deadline(store), &row, err);
    /* Our releases leave the row in the table; a service deletes its row. */
    if (rc == 0 && (!row.exists || (row.is_taken && !row.is_sqlocks)))
        see(slot);
    if (rc == 0 && row.exists &&
        (row.is_taken || row.token != slot->peers.token))
        slot->peers.poll_share_ns = POLL_SHARE_NS;
    return rc;
}
