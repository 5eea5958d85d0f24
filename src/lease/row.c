/*
 * row.c - read rows of the lock table, and compute from their times when they
 * may be claimed (row.h)
 */
#include "lease/row.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/leader_text.h"
#include "lease/sharer.h"

void lk_row_add_sharers(struct lk_row *row, const char *sharers,
                        const struct lk_lease *lease)
{
    int64_t now_us = row->expires_at_us - row->remaining_us;
    bool is_groups =
        lk_client_id_is_group(row->client_id) &&
        (sharers == NULL || lk_sharers_have(sharers, row->client_id));
    struct lk_sharer sharer;

    row->permits = lk_sharers_permits(sharers);
    row->is_shared = row->is_taken && is_groups;
    row->first_us = lk_sharers_first_us(sharers, row->remaining_us);
    while (is_groups && lk_sharer_next(&sharers, &sharer)) {
        bool is_own = strncmp(sharer.as.client_id, lease->client_id,
                              SQLOCK_KEY_SIZE - 1) == 0;

        row->sharers += sharer.as.ends_at_us >= now_us;
        row->is_broken = row->is_broken ||
                         (!is_own && sharer.token == lease->answered.token);
        if (!is_own)
            continue;
        (void)snprintf(row->client_id, sizeof row->client_id, "%s",
                       lease->client_id);
        row->token = sharer.token;
        row->weight = sharer.as.weight;
        row->remaining_us = sharer.as.ends_at_us - now_us;
        row->is_taken = row->remaining_us >= 0;
        row->acquired_at_us = sharer.as.since_us;
        row->expires_at_us = sharer.as.ends_at_us;
    }
}

bool lk_holder_is_break(const char *holder)
{
    static const char broken[] = "broken by ";

    return strncmp(holder, broken, sizeof broken - 1) == 0;
}

/* Return whether HOLDER, which begins with a CLIENT_ID, tells of a break. */
static bool tells_break(const char *holder)
{
    return holder != NULL && strlen(holder) > SQLOCK_KEY_SIZE &&
           lk_holder_is_break(holder + SQLOCK_KEY_SIZE);
}

/* Fill in a row from the cells of a result, with the place of the lease's
 * ticket. */
static void from_cells(struct lk_row *row, const sqlock_value *cells,
                       const struct lk_lease *lease)
{
    const char *queue = lk_cell_text(&cells[LK_INFO_QUEUE]);
    const char *sharers = lk_cell_text(&cells[LK_INFO_SHARERS]);
    const char *holder = lk_cell_text(&cells[LK_INFO_HOLDER]);
    struct lk_leader leader;

    row->exists = true;
    lk_cell_id(row->client_id, &cells[LK_INFO_CLIENT]);
    row->token = lk_cell_integer(&cells[LK_INFO_TOKEN]);
    row->remaining_us = cells[LK_INFO_REMAINING].integer;
    row->acquired_at_us = cells[LK_INFO_ACQUIRED].integer;
    row->expires_at_us = cells[LK_INFO_EXPIRES].integer;
    /* A peer that takes the row over does not change HOLDER. */
    row->is_sqlocks =
        row->client_id[0] != '\0' && holder != NULL &&
        strncmp(holder, row->client_id, strlen(row->client_id)) == 0;
    row->is_taken = row->client_id[0] != '\0' && row->remaining_us >= 0;
    row->is_broken = lease->asked.weight == 0 && tells_break(holder);
    row->place = lk_ticket_place(queue, lease->client_id, row->before);
    row->is_waited_for =
        lk_queue_has_any(queue, row->expires_at_us - row->remaining_us);
    row->is_called = lk_ticket_is_called(queue, lease->client_id);
    row->has_text = lk_leader_read(
        &leader, lk_cell_text(&cells[LK_INFO_LEADER]), row->client_id);
    lk_row_add_sharers(row, sharers, lease);
    row->rounds =
        lk_sharers_rounds(sharers, row->is_shared, queue, lease->client_id,
                          cells[LK_INFO_EXPIRES].integer - row->remaining_us);
}

static int read_info(struct lk_store *store, struct lk_batch *batch,
                     sqlock_result *result, sqlock_error *err)
{
    struct lk_run run = {.is_repeatable = true};
    int rc;

    rc = lk_batch_run(
        store, batch->count == 1 ? SQLOCK_SQL_READ : SQLOCK_SQL_READ_MANY,
        batch, &run, result, err);
    if (rc == 0 && result->rows > batch->count)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "%s has two rows for one key: its primary key is missing",
                      store->table.plain);
    return rc;
}

int lk_rows_read(struct lk_store *store, struct lk_batch *batch,
                 sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].row = (struct lk_row){.exists = false};
    rc = read_info(store, batch, &result, err);
    for (size_t i = 0; rc == 0 && i < result.rows; i++) {
        const sqlock_value *cells = &result.cells[i * result.columns];
        struct lk_item *item = batch->count == 1
                                   ? &batch->items[0]
                                   : lk_batch_find(batch, &cells[0]);

        if (item != NULL)
            from_cells(&item->row, cells, &item->lease);
    }
    sqlock_result_clear(&result);
    return rc;
}

int lk_row_read_as(struct lk_store *store, const struct lk_lease *lease,
                   int64_t deadline_ns, struct lk_row *row, sqlock_error *err)
{
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    lk_batch_of_one(&batch, &item, lease, deadline_ns);
    rc = lk_rows_read(store, &batch, err);
    *row = item.row;
    return rc;
}

int lk_row_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                struct lk_row *row, sqlock_error *err)
{
    const struct lk_lease lease = {.key = key};

    return lk_row_read_as(store, &lease, deadline_ns, row, err);
}

/* Return whether the row has the lease.  After a copy of its claim that came
 * late, when others had had the lock, it has its CLIENT_ID and another token;
 * Spring's tables keep none, or round it, and a claim knows none yet. */
static bool is_there(const struct lk_store *store, const struct lk_row *row,
                     const struct lk_lease *lease)
{
    return strcmp(row->client_id, lease->client_id) == 0 &&
           (store->layout != SQLOCK_LAYOUT_SQLOCK ||
            lease->answered.token == 0 || row->token == lease->answered.token);
}

bool lk_row_may_be_copys(const struct lk_store *store,
                         const struct lk_lease *lease)
{
    return lease->believed.fate == LK_CLAIM_LATE &&
           store->layout == SQLOCK_LAYOUT_SQLOCK;
}

/* Return whether the release of an exclusive lease has freed the row.  Where
 * it was answered, and rows are kept, it has deleted none. */
static bool is_freed(const struct lk_store *store, const struct lk_row *row,
                     const struct lk_lease *lease, bool is_in_time,
                     bool was_uncertain)
{
    if (row->exists)
        return row->client_id[0] == '\0' && row->token == lease->answered.token;
    return is_in_time &&
           (was_uncertain || store->layout != SQLOCK_LAYOUT_SQLOCK);
}

/* Nobody takes out a share that is not over, but by breaking it. */
enum lk_verdict lk_row_judge(const struct lk_store *store,
                             const struct lk_row *row,
                             const struct lk_lease *lease,
                             int64_t first_sent_ns, bool was_uncertain)
{
    bool is_in_time = first_sent_ns < lease->believed.until_boot_ns;
    bool is_free = row->exists && row->client_id[0] == '\0';

    if (is_there(store, row, lease))
        return row->is_taken ? LK_VERDICT_HELD : LK_VERDICT_OVER;
    if (first_sent_ns == LK_NEVER ||
        (lease->asked.weight > 0 && row->is_broken))
        return LK_VERDICT_LOST;
    if (lease->asked.weight > 0
            ? is_in_time && (row->is_shared || is_free)
            : is_freed(store, row, lease, is_in_time, was_uncertain))
        return LK_VERDICT_FREED;
    return was_uncertain ? LK_VERDICT_UNKNOWN : LK_VERDICT_LOST;
}

int lk_row_holder(struct lk_store *store, const char *key,
                  char holder[LK_HOLDER_SIZE], sqlock_error *err)
{
    const struct lk_lease lease = {.key = key};
    sqlock_result result = {0};
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    holder[0] = '\0';
    lk_batch_of_one(&batch, &item, &lease, lk_store_deadline(store));
    rc = read_info(store, &batch, &result, err);
    if (rc == 0 && result.rows == 1) {
        struct lk_row row = {.exists = false};

        from_cells(&row, result.cells, &item.lease);
        if (row.is_taken)
            (void)snprintf(holder, LK_HOLDER_SIZE, "%s",
                           row.is_sqlocks ? result.cells[LK_INFO_HOLDER].text
                                          : row.client_id);
    }
    sqlock_result_clear(&result);
    return rc;
}

int lk_row_queue(struct lk_store *store, const char *key, int64_t deadline_ns,
                 struct lk_row *row, char **queue, sqlock_error *err)
{
    const struct lk_lease lease = {.key = key};
    sqlock_result result = {0};
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    *queue = NULL;
    if (row != NULL)
        *row = (struct lk_row){.exists = false};
    lk_batch_of_one(&batch, &item, &lease, deadline_ns);
    rc = read_info(store, &batch, &result, err);
    if (rc == 0 && result.rows == 1 && row != NULL)
        from_cells(row, result.cells, &lease);
    if (rc == 0 && result.rows == 1 &&
        lk_cell_text(&result.cells[LK_INFO_QUEUE]) != NULL) {
        *queue = strdup(result.cells[LK_INFO_QUEUE].text);
        if (*queue == NULL)
            rc = lk_error_nomem(err);
    }
    sqlock_result_clear(&result);
    return rc;
}

int64_t lk_row_token(const struct lk_row *row, uint32_t ttl_ms)
{
    return row->token != 0 ? row->token
                           : row->expires_at_us - (int64_t)ttl_ms * 1000;
}

const struct lk_row *lk_row_of(const struct lk_batch *batch, const char *key)
{
    const sqlock_value value = {.type = SQLOCK_TEXT, .text = key};
    const struct lk_item *item = lk_batch_find(batch, &value);

    return item != NULL ? &item->row : NULL;
}

int64_t lk_row_blocked_ns(const struct lk_row *row)
{
    return row->is_taken ? lk_after_us(LK_NS_PER_US, row->remaining_us) : 0;
}

bool lk_row_is_of_peer(const struct lk_store *store, const struct lk_row *row)
{
    /* On Spring's layouts sqlock polls as peers do, and need not know. */
    return row->is_taken && !row->is_sqlocks &&
           store->layout == SQLOCK_LAYOUT_SQLOCK;
}
