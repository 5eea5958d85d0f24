/*
 * skew.c - report rows written by a clock that is ahead of the database's
 * (skew.h)
 */
#include "lease/skew.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#define PAUSE_NS (60000 * LK_NS_PER_MS)

enum { KEY, CLIENT, TOKEN, REMAINING, ACQUIRED, EXPIRES, NAME, HOLDER };

/* Return whether a Spring peer holds the row: peers do not write HOLDER. */
static bool is_peers(const struct lk_store *store, const sqlock_value *cells)
{
    return store->layout == SQLOCK_LAYOUT_SQLOCK &&
           (cells[HOLDER].type != SQLOCK_TEXT ||
            strncmp(cells[HOLDER].text, cells[CLIENT].text,
                    strlen(cells[CLIENT].text)) != 0);
}

int64_t lk_skew_us(const struct lk_store *store, const sqlock_value *cells)
{
    const sqlock_options *options = &store->options;
    int64_t allowed_us = lk_margin_ms(options, options->ttl_ms) * INT64_C(1000);
    int64_t remaining_us;
    int64_t ahead_us;

    if (cells[CLIENT].type != SQLOCK_TEXT ||
        cells[REMAINING].type != SQLOCK_INT64 || cells[REMAINING].integer < 0)
        return 0;
    /* The database's present time is the end of the lease less the remaining
     * time. */
    remaining_us = cells[REMAINING].integer;
    ahead_us =
        cells[ACQUIRED].integer - (cells[EXPIRES].integer - remaining_us);
    if (is_peers(store, cells)) {
        int64_t beyond_us = remaining_us - options->peer_ttl_ms * INT64_C(1000);

        ahead_us = beyond_us > ahead_us ? beyond_us : ahead_us;
    }
    return ahead_us > allowed_us ? ahead_us : 0;
}

static const char *text_of(const sqlock_value *cell)
{
    return cell->type == SQLOCK_TEXT ? cell->text : NULL;
}

void lk_skew_tell(struct lk_store *store, const sqlock_value *cells)
{
    int64_t ahead_us = lk_skew_us(store, cells);
    int64_t now_ns = sqlock_monotonic_ns();
    int64_t told_ns = atomic_load(&store->skew_told_ns);

    if (ahead_us == 0 || (told_ns != 0 && now_ns - told_ns < PAUSE_NS) ||
        !atomic_compare_exchange_strong(&store->skew_told_ns, &told_ns, now_ns))
        return;
    lk_store_tell(store,
                  &(sqlock_event){.kind = SQLOCK_EVENT_CLOCK_AHEAD,
                                  .lock = text_of(&cells[NAME]),
                                  .key = text_of(&cells[KEY]),
                                  .token = cells[TOKEN].integer},
                  "the lock %s was taken %" PRId64 " ms in the future of the "
                  "database's clock, or for longer than peer_ttl_ms: the "
                  "clock or the time zone of its holder is off, and the lock "
                  "stays taken for %" PRId64 " ms if it dies",
                  cells[KEY].type == SQLOCK_TEXT ? cells[KEY].text : "",
                  ahead_us / 1000, cells[REMAINING].integer / 1000);
}
