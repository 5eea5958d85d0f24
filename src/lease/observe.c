/*
 * observe.c - decide, from a row of another process, how long to wait before
 * claiming it
 */
#include "lease/row.h"

#include <string.h>

#include "base/clock.h"

/* A row does not store its TTL.  The TTL that follows from its times is
 * believed up to the longest known TTL times this factor. */
#define LONGEST_OWN 10

/* Return how long a row must stay unchanged: the longest TTL with which its
 * holder may renew it.  The times of acquisition and of expiry in the row come
 * from the same clock, so their difference holds even if that clock is
 * wrong. */
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

/* Observe an expired row, because the clock of its holder is not trusted:
 * compare it with `seen`, and begin again if it has changed.  Return how much
 * longer to observe it; 0: the row has been unchanged for long enough by this
 * host's clock, or is free. */
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
    /* Only our layout records whose a row is.  On Spring's layouts sqlock polls
     * as peers do, and need not know. */
    if (row->is_taken && !row->is_sqlocks &&
        store->layout == SQLOCK_LAYOUT_SQLOCK)
        seen->saw_peer = true;
    if (row->is_taken)
        return lk_after_us(LK_NS_PER_US, row->remaining_us);
    return store->options.observe_before_steal ? observe(store, seen, row) : 0;
}
