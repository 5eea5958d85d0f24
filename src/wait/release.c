/*
 * release.c - see release.h
 */
#include "wait/release.h"

#include <string.h>

#include "base/error.h"
#include "wait/peers.h"

/* From this lease to that of the waiter that is next, in one statement: true
 * when it was done, or *rc says that the release is done all the same. */
static bool hand_off_lease(struct lk_entry *entry, const struct lk_lease *lease,
                           const struct lk_part *next, struct lk_lease *given,
                           int *rc, sqlock_error *err)
{
    memset(given, 0, sizeof *given);
    given->key = entry->key;
    given->name = entry->name;
    given->ttl_ms = next->waiter->options->ttl_ms;
    *rc = lk_lease_hand_off(entry->store, lease, given, err);
    return *rc == 0 || *rc == SQLOCK_ETIMEDOUT;
}

static int lost_before(sqlock_error *err)
{
    return lk_error(err, SQLOCK_ELOST,
                    "the lease was lost before the release: what the lock "
                    "protects may be compromised");
}

/* The end of a lease that nobody was there to take over, or whose hand-off did
 * not come about. */
static int release_row(struct lk_entry *entry, struct lk_lease *lease, int lost,
                       sqlock_error *err)
{
    int rc = lk_lease_release(entry->store, lease, err);

    entry->is_left_free = rc == 0;
    /* Given up by ourselves, it may well have been ours still. */
    if (lost == SQLOCK_ELOST)
        rc = lost_before(err);
    else if (lost == SQLOCK_EEXPIRED && rc == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease had run out before the release; nobody else "
                      "has had the lock");
    return rc;
}

/* To that waiter: the lock goes to it whatever the result. */
static int hand_off(struct lk_entry *entry, struct lk_lease *lease,
                    struct lk_part *next, sqlock_error *err)
{
    struct lk_lease given;
    int handed;
    int rc = 0;

    if (!hand_off_lease(entry, lease, next, &given, &handed, err)) {
        rc = release_row(entry, lease, 0, err);
        /* It may have been carried out after all, by the late statement. */
        if (handed == SQLOCK_EUNCERTAIN && rc == SQLOCK_ELOST)
            rc = lk_error(err, SQLOCK_EUNCERTAIN,
                          "the connection broke under the release, and the row "
                          "does not say whether the lock had been lost before");
    }
    lk_end_hand_off(next, handed == 0 ? &given : NULL);
    return rc;
}

int lk_end_lease(struct lk_entry *entry, struct lk_lease *lease, int lost,
                 sqlock_error *err)
{
    struct lk_part *next;
    int rc;

    lk_peers_charge(entry);
    next = lk_begin_hand_off(entry);
    rc = next != NULL ? hand_off(entry, lease, next, err)
                      : release_row(entry, lease, lost, err);
    if (lost == 0)
        lk_count_over(&entry->store->db.stats, entry->key, rc);
    if (next == NULL)
        lk_end_release(entry);
    return rc;
}

int lk_end_overdue(struct lk_entry *entry, struct lk_lease *lease, int lost,
                   sqlock_error *err)
{
    int rc = lk_lease_release(entry->store, lease, err);

    return lost == SQLOCK_ELOST ? lost_before(err) : rc;
}
