/*
 * batch_release.c - giving many leases back in one statement, and check out
 * what became of each
 */
#include "base/clock.h"
#include "base/error.h"
#include "lease/batch.h"
#include "lease/queue.h"

/* An item that no row named: freed all the same, or lost before? */
static void judge_release(struct lk_item *item, const sqlock_value *cells,
                          bool was_uncertain)
{
    bool is_free = cells != NULL && cells[1].type != SQLOCK_TEXT;

    if (is_free && cells[2].integer == item->lease.token)
        item->rc = 0;
    else
        item->rc = was_uncertain ? SQLOCK_EUNCERTAIN : SQLOCK_ELOST;
}

static int read_unreleased(struct lk_store *store, struct lk_batch *batch,
                           int64_t first_sent_ns, bool was_uncertain,
                           sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    batch->deadline_ns = lk_store_deadline(store);
    rc = lk_batch_run(store, SQLOCK_SQL_READ_MANY, batch, true, &result, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];

        /* No row: deleted before anybody could have taken it, or after. */
        if (item->rc == SQLOCK_EBUSY)
            item->rc = first_sent_ns < item->lease.deadline_boot_ns &&
                               store->layout != SQLOCK_LAYOUT_SQLOCK
                           ? 0
                           : SQLOCK_ELOST;
    }
    for (size_t row = 0; rc == 0 && row < result.rows; row++) {
        const sqlock_value *cells = &result.cells[row * result.columns];
        struct lk_item *item = lk_batch_find(batch, &cells[0]);

        if (item != NULL && !item->is_settled)
            judge_release(item, cells, was_uncertain);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* True when every item is settled. */
static bool take_releases(struct lk_batch *batch, const sqlock_result *result)
{
    size_t settled = 0;

    if (result->columns == 0 && result->affected == (int64_t)batch->count) {
        for (size_t i = 0; i < batch->count; i++)
            batch->items[i].rc = 0;
        return true;
    }
    for (size_t row = 0; row < result->rows; row++) {
        struct lk_item *item =
            lk_batch_find(batch, &result->cells[row * result->columns]);

        if (item != NULL && !item->is_settled) {
            item->rc = 0;
            item->is_settled = true;
            settled++;
        }
    }
    return settled == batch->count;
}

static int unknown_release(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection broke under the release; what was not "
                    "carried out is tried again until the leases are over");
}

/* One row that is locked keeps all from being freed together: one by one. */
static void go_on_releasing(struct lk_store *store,
                            const struct lk_batch *batch, int rc)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct lk_lease *lease = &batch->items[i].lease;

        if (rc < 0)
            lk_resolver_add_release(store, lease);
        else if (lease->is_claim_late)
            lk_resolver_add_claim(store, lease, lk_boottime_ns());
    }
}

int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err)
{
    int64_t first_sent_ns = lk_boottime_ns();
    sqlock_result result = {0};
    bool was_uncertain;
    bool is_complete = false;
    bool is_outage;
    int rc;

    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].rc = SQLOCK_EBUSY; /* not known yet */
        batch->items[i].is_settled = false;
    }
    rc = lk_batch_run(store, SQLOCK_SQL_RELEASE_MANY, batch, false, &result,
                      err);
    was_uncertain = rc == SQLOCK_EUNCERTAIN;
    if (was_uncertain) {
        batch->deadline_ns = lk_store_deadline(store);
        rc = lk_batch_run(store, SQLOCK_SQL_RELEASE_MANY, batch, true, &result,
                          err);
        if (rc < 0)
            rc = unknown_release(err);
    }
    go_on_releasing(store, batch, rc);
    if (rc == 0)
        is_complete = take_releases(batch, &result);
    sqlock_result_clear(&result);
    if (rc == 0 && !is_complete &&
        read_unreleased(store, batch, first_sent_ns, was_uncertain, err) < 0)
        rc = unknown_release(err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++)
        if (batch->items[i].rc == 0 &&
            first_sent_ns >= batch->items[i].lease.deadline_boot_ns)
            batch->items[i].rc = SQLOCK_EEXPIRED;
    is_outage = lk_is_outage(rc);
    for (size_t i = 0; i < batch->count; i++)
        is_outage =
            lk_queue_end(store, batch->items[i].lease.key,
                         &batch->items[i].lease.place, false, is_outage);
    return rc;
}
