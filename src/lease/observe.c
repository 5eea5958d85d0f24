/*
 * observe.c - what reading another process's row says: how long it is taken.
 */
#include "lease/observe.h"

#include <string.h>

#include "base/clock.h"

/* A row that was renewed does not tell the TTL: it may be longer than the
 * longest of the known ones by this factor, and no more. */
#define LONGEST_OWN 10

/* How long a row must stay unchanged: the longest TTL by which its owner may
 * renew it.  Both stamps are of the same clock, whichever it is. */
static int64_t patience_ns(const struct lk_store *store,
                           const struct lk_row *row)
{
    int64_t ttl_us = (int64_t)store->options.ttl_ms * 1000;
    int64_t peer_ttl_us = (int64_t)store->options.peer_ttl_ms * 1000;
    int64_t own_us = row->expires_at_us - row->acquired_at_us;
    int64_t known_us = ttl_us > peer_ttl_us ? ttl_us : peer_ttl_us;

    if (own_us > known_us * LONGEST_OWN)
        own_us = known_us * LONGEST_OWN;
    return (own_us > known_us ? own_us : known_us) * LK_NS_PER_US;
}

/* Observing before stealing, for peers whose clocks are not known: how long to
 * go on looking at a row that is expired by its time stamp; 0: it has stayed
 * the same for long enough on this host's own clock, or is free. */
static int64_t observe(const struct lk_store *store, struct lk_observed *seen,
                       const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t left;

    if (seen->since_ns == 0 || seen->expires_at_us != row->expires_at_us ||
        strcmp(seen->client_id, row->client_id) != 0) {
        memcpy(seen->client_id, row->client_id, sizeof seen->client_id);
        seen->expires_at_us = row->expires_at_us;
        seen->since_ns = now;
    }
    if (row->client_id[0] == '\0')
        return 0;
    left = seen->since_ns + patience_ns(store, row) - now;
    return left > 0 ? left : 0;
}

int64_t lk_row_blocked_ns(const struct lk_store *store,
                          struct lk_observed *seen, const struct lk_row *row)
{
    /* Spring's layouts do not tell whose a row is; ours poll there as well. */
    if (row->is_taken && !row->is_sqlocks &&
        store->layout == SQLOCK_LAYOUT_SQLOCK)
        seen->saw_peer = true;
    if (row->is_taken)
        return (row->remaining_us + 1) * LK_NS_PER_US;
    return store->options.observe_before_steal ? observe(store, seen, row) : 0;
}
