/*
 * look.c - what a look at another process's row says: how long it is taken.
 */
#include "locks/look.h"

#include <string.h>

#include "base/clock.h"

/* How long a row must stay unchanged: the TTL by which its owner renews it. */
static int64_t patience_ns(const sqlock_registry *registry)
{
    uint32_t ttl_ms = registry->layout == SQLOCK_LAYOUT_SPRING6
                          ? registry->options.peer_ttl_ms
                          : registry->options.ttl_ms;

    return (int64_t)ttl_ms * LK_NS_PER_MS;
}

/* Observing before stealing, for peers whose clocks are not known: how long to
 * go on looking at a row that is expired by its time stamp; 0: it has stayed the
 * same for a TTL on this host's own clock. */
static int64_t observe(const sqlock_registry *registry, struct lk_post *post,
                       const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t left;

    if (!registry->options.observe_before_steal || row->client_id[0] == '\0')
        return 0;
    if (post->since_ns == 0 || post->expires_at_us != row->expires_at_us ||
        strcmp(post->client_id, row->client_id) != 0) {
        memcpy(post->client_id, row->client_id, sizeof post->client_id);
        post->expires_at_us = row->expires_at_us;
        post->since_ns = now;
    }
    left = post->since_ns + patience_ns(registry) - now;
    return left > 0 ? left : 0;
}

int64_t lk_look_left_ns(const sqlock_registry *registry, struct lk_post *post,
                        const struct lk_row *row)
{
    return row->is_taken ? (row->remaining_us + 1) * LK_NS_PER_US
                         : observe(registry, post, row);
}
