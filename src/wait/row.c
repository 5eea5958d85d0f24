/*
 * row.c - see row.h.  Nothing here locks a row.
 */
#include "wait/row.h"

#include "base/clock.h"
#include "base/error.h"
#include "lease/observe.h"

int64_t lk_wait_statement_deadline(const struct lk_store *store,
                                   const struct lk_waiter *self)
{
    uint32_t statement_ms = store->options.statement_timeout_ms;

    if (self->wait_ms == 0) /* a single attempt, whenever it is made */
        return lk_store_deadline(store);
    return lk_sooner(lk_store_deadline(store),
                     lk_after_ms(self->deadline_ns, statement_ms));
}

/* Read the part's row now.  *left_ns: how long it is not to be claimed; 0:
 * claim it.  Results as lk_row_read(). */
static int look(struct lk_part *part, int64_t *left_ns, sqlock_error *err)
{
    struct lk_store *store = part->entry->store;
    struct lk_row row;
    int rc;

    rc =
        lk_row_read(store, part->entry->key,
                    lk_wait_statement_deadline(store, part->waiter), &row, err);
    if (rc == 0)
        *left_ns = lk_row_blocked_ns(store, &part->seen, &row);
    return rc;
}

int lk_rows_look(struct lk_store *store, struct lk_batch *batch,
                 struct lk_part **blocked, sqlock_error *err)
{
    int rc;

    *blocked = NULL;
    batch->deadline_ns = lk_store_deadline(store);
    rc = lk_rows_read(store, batch, err);
    /* Observe all rows, also those after the first that is taken, so that each
     * has been observed when it may be claimed. */
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        const struct lk_item *item = &batch->items[i];
        struct lk_part *part = item->owner;

        part->rc = lk_row_blocked_ns(store, &part->seen, &item->row) > 0
                       ? SQLOCK_EBUSY
                       : 0;
        if (part->rc < 0 && *blocked == NULL)
            *blocked = part;
    }
    return rc;
}

int lk_row_begin_poll(struct lk_part *part, enum lk_poll_until until,
                      sqlock_error *err)
{
    return lk_poller_begin(&part->entry->all->poller, part->entry, part->waiter,
                           until, &part->seen, err);
}

int lk_row_await_poll(struct lk_part *part, sqlock_error *err)
{
    struct lk_waiter *self = part->waiter;
    int64_t left_ns = 0;
    int rc;

    if (lk_waiter_park(self, self->deadline_ns) != 0)
        return LK_SUSPENDED;
    lk_poller_end(&part->entry->all->poller, self);
    if (lk_waiter_is_cancelled(self))
        return lk_canceled(err);
    if (lk_waiter_reason(self) == LK_WAKE_ROW) {
        if (self->row_rc < 0 && err != NULL)
            *err = self->row_err;
        return self->row_rc;
    }
    /* Read once more at the end: the row may have become free. */
    rc = look(part, &left_ns, err);
    return rc == 0 && left_ns > 0 ? lk_not_in_time(self->wait_ms, err) : rc;
}
