/*
 * skew.c - report rows written by a clock that is not in step with the
 * database's (skew.h)
 */
#include "lease/skew.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Some Spring services write whole seconds. */
#define ROUNDED_US 1000000

enum { KEY, CLIENT, TOKEN, REMAINING, ACQUIRED, EXPIRES, NAME, HOLDER };

/* Return whether a Spring peer holds the row.  On sqlock's layout peers do not
 * write HOLDER; on Spring 6's, sqlock's CLIENT_IDs can be told; on Spring 7's a
 * row of sqlock's counts as a peer's, too. */
static bool is_peers(const struct lk_store *store, const sqlock_value *cells)
{
    const char *client_id = cells[CLIENT].text;

    if (store->layout == SQLOCK_LAYOUT_SPRING6)
        return !lk_client_id_has_ttl(client_id);
    return store->layout == SQLOCK_LAYOUT_SPRING7 ||
           cells[HOLDER].type != SQLOCK_TEXT ||
           strncmp(cells[HOLDER].text, client_id, strlen(client_id)) != 0;
}

/* Return whether the row has a holder, whose lease may be over. */
static bool has_holder(const sqlock_value *cells)
{
    return cells[KEY].type == SQLOCK_TEXT &&
           cells[CLIENT].type == SQLOCK_TEXT &&
           cells[REMAINING].type == SQLOCK_INT64;
}

/* Return how far differences may be off that say nothing about a clock. */
static int64_t allowed_us(const struct lk_store *store)
{
    const sqlock_options *options = &store->options;

    return lk_margin_ms(options, options->ttl_ms) * INT64_C(1000);
}

/* Return the database's present time: the end of the lease less the remaining
 * time. */
static int64_t now_of(const sqlock_value *cells)
{
    return cells[EXPIRES].integer - cells[REMAINING].integer;
}

/* Return by how much the row is acquired in the future, or where that is more,
 * for how much longer than peer_ttl_ms a peer has it.  *is_sure is false in the
 * second case, in which the peer's TTL may be longer than that. */
static int64_t ahead_us(const struct lk_store *store, const sqlock_value *cells,
                        bool *is_sure)
{
    int64_t future_us = cells[ACQUIRED].integer - now_of(cells);
    int64_t beyond_us =
        cells[REMAINING].integer - store->options.peer_ttl_ms * INT64_C(1000);

    *is_sure = store->layout != SQLOCK_LAYOUT_SQLOCK ||
               !is_peers(store, cells) || future_us > allowed_us(store);
    if (cells[REMAINING].integer < 0)
        return 0;
    if (store->layout != SQLOCK_LAYOUT_SQLOCK || !is_peers(store, cells))
        beyond_us = 0;
    if (beyond_us > future_us)
        future_us = beyond_us;
    return future_us > allowed_us(store) ? future_us : 0;
}

int64_t lk_skew_us(struct lk_store *store, const sqlock_value *cells)
{
    int64_t seen_us, now_us;
    bool is_sure;

    if (!has_holder(cells) || cells[REMAINING].integer < 0)
        return 0;
    now_us = ahead_us(store, cells, &is_sure);
    seen_us =
        lk_looks_ahead_us(&store->looks, cells[KEY].text, cells[CLIENT].text);
    return now_us > seen_us ? now_us : seen_us;
}

static void tell(struct lk_store *store, const sqlock_value *cells,
                 sqlock_event_kind kind, int64_t off_us, const char *text)
{
    lk_store_tell(store,
                  &(sqlock_event){.kind = kind,
                                  .lock = cells[NAME].type == SQLOCK_TEXT
                                              ? cells[NAME].text
                                              : NULL,
                                  .key = cells[KEY].text,
                                  .token = cells[TOKEN].integer},
                  "the clock or the time zone of the holder of %s is at least "
                  "%" PRId64 " ms %s",
                  cells[KEY].text, off_us / 1000, text);
}

void lk_skew_tell(struct lk_store *store, const sqlock_value *cells)
{
    struct lk_look look = {.at_ns = sqlock_monotonic_ns()};
    char text[200];
    bool is_sure;

    if (!has_holder(cells))
        return;
    (void)snprintf(look.key, sizeof look.key, "%s", cells[KEY].text);
    (void)snprintf(look.client_id, sizeof look.client_id, "%s",
                   cells[CLIENT].text);
    look.created_us = cells[ACQUIRED].integer;
    look.now_us = now_of(cells);
    look.ahead_us = ahead_us(store, cells, &is_sure);
    lk_looks_add(&store->looks, &look, is_peers(store, cells));
    if (look.ahead_us > 0 &&
        lk_looks_may_tell(&store->looks, LK_CLOCK_AHEAD, look.ahead_us,
                          allowed_us(store), look.at_ns)) {
        (void)snprintf(text, sizeof text,
                       "ahead of the database's%s: the lock stays taken for "
                       "%" PRId64 " ms if it dies",
                       is_sure ? "" : ", or its TTL is longer than peer_ttl_ms",
                       cells[REMAINING].integer / 1000);
        tell(store, cells, SQLOCK_EVENT_CLOCK_AHEAD, look.ahead_us, text);
    }
    if (look.behind_us > allowed_us(store) + ROUNDED_US &&
        lk_looks_may_tell(&store->looks, LK_CLOCK_BEHIND, look.behind_us,
                          allowed_us(store), look.at_ns))
        tell(store, cells, SQLOCK_EVENT_CLOCK_BEHIND, look.behind_us,
             "behind the database's, or its statement took that long: its "
             "lease ends that much before it believes");
}
