/*
 * peers.c - see peers.h
 *
 * Each process counts its own leases, so that together they leave the lock free
 * as often as they should, however many they are.
 */
#include "wait/peers.h"

#include "base/clock.h"

/* JdbcLockRegistry's pause between two tries, unless set otherwise, and the
 * time of a try. */
#define PAUSE_NS (110 * LK_NS_PER_MS)
/* So long ours have it in between; each time that no service came, twice as
 * long, and beyond the second value for good: a service that is gone costs
 * little, and one that comes again is seen. */
#define SHARE_NS (80 * LK_NS_PER_MS)
#define SHARE_MAX_NS (2560 * LK_NS_PER_MS)
/* What a lease of ours counts at the least: about what the round trips of a
 * service's take, so that turns are shared and not time alone. */
#define TURN_NS (4 * LK_NS_PER_MS)

static void see(struct lk_entry *entry)
{
    entry->peers.share_ns = SHARE_NS;
}

void lk_peers_note(struct lk_entry *entry, struct lk_observed *seen)
{
    if (seen->saw_peer)
        see(entry);
    seen->saw_peer = false;
}

void lk_peers_granted(struct lk_entry *entry, const struct lk_lease *lease,
                      bool was_refused)
{
    bool was_there = was_refused || entry->acquired_boot_ns != 0;

    /* Ours leave the row, a service deletes it. */
    if (was_there && lease->is_new_row)
        see(entry);
}

void lk_peers_charge(struct lk_entry *entry)
{
    int64_t held_ns = lk_boottime_ns() - entry->acquired_boot_ns;

    if (entry->peers.share_ns > 0)
        entry->peers.used_ns += held_ns > TURN_NS ? held_ns : TURN_NS;
}

bool lk_peers_are_due(const struct lk_entry *entry)
{
    return entry->peers.share_ns > 0 &&
           entry->peers.used_ns >= entry->peers.share_ns;
}

int lk_peers_wait(struct lk_entry *entry, struct lk_waiter *self,
                  sqlock_error *err)
{
    struct lk_store *store = entry->store;
    struct lk_row row;
    int rc;

    entry->peers.used_ns = 0;
    entry->peers.share_ns =
        entry->peers.share_ns < SHARE_MAX_NS ? entry->peers.share_ns * 2 : 0;
    rc = lk_waiter_sleep(
        self, lk_sooner(sqlock_monotonic_ns() + PAUSE_NS, self->deadline_ns),
        err);
    if (rc < 0)
        return rc;
    rc = lk_lease_read(store, entry->key, lk_store_deadline(store), &row, err);
    /* A service deletes the row; our releases leave it. */
    if (rc == 0 && (!row.exists || (row.is_taken && !row.is_sqlocks)))
        see(entry);
    return rc;
}
