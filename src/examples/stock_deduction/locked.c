/*
 * locked.c - read, compare, write, with a lock around it
 *
 * The way for those who have a lock and nothing better: right, and slow, since
 * one order takes about ten round trips during which nobody else gets at the
 * item.  The lease is guarded in the transaction, so that a worker that was
 * held up for too long cannot write; the answer to an order is kept beside
 * the stock, as the quantity of an item of its own.
 */
#include "way.h"

#include <stdio.h>

enum { WAIT_MS = 60000 };

/* Units that leave the stock, or come back when negative. */
struct change {
    const struct seller *seller;
    sqlock_lock *lock;
    int64_t units;
    char item[NAME_SIZE];
    char record[NAME_SIZE]; /* item whose quantity is the answer: 1 done, 0
                               refused */
    struct deal *out;
};

static int write_change(const struct change *change, sqlock_tx *tx,
                        sqlock_error *err)
{
    sqlock_stock *stock = change->seller->stock;
    int64_t quantity;
    int rc;

    rc = sqlock_stock_read(stock, tx, change->item, &quantity, err);
    if (rc != 0)
        return rc;
    change->out->is_done = quantity >= change->units;
    if (change->out->is_done)
        rc = sqlock_stock_set(stock, tx, NULL, change->item,
                              quantity - change->units, NULL, err);
    if (rc == 0)
        rc = sqlock_stock_set(stock, tx, NULL, change->record,
                              change->out->is_done ? 1 : 0, NULL, err);
    return rc;
}

/* Make a change in a transaction; a sqlock_tx_fn.  The database checks the
   lease, and gives the lock to nobody else until the commit. */
static int change_guarded(void *context, sqlock_tx *tx, sqlock_error *err)
{
    const struct change *change = context;
    int64_t record;
    int rc;

    rc = sqlock_tx_guard(tx, change->lock, err);
    if (rc != 0)
        return rc;
    rc = sqlock_stock_read(change->seller->stock, tx, change->record, &record,
                           err);
    change->out->is_repeat = rc == 0;
    if (rc == SQLOCK_ENOTFOUND)
        return write_change(change, tx, err);
    if (rc == 0)
        change->out->is_done = record == 1;
    return rc;
}

static int change_under_lock(struct change *change, sqlock_error *err)
{
    int released;
    int rc;

    rc = sqlock_obtain(&change->lock, change->seller->registry, change->item,
                       err);
    if (rc != 0)
        return rc;
    rc = sqlock_acquire(change->lock, WAIT_MS, NULL, err);
    if (rc == 0) {
        rc = sqlock_tx_retry(change->seller->registry, change_guarded, change,
                             NULL, err);
        /* Only the commit counts: losing the lease after it harms nobody, and
           a lease that could not be released expires. */
        released = sqlock_release(change->lock, NULL);
        (void)released;
    }
    (void)sqlock_drop(change->lock, NULL);
    return rc;
}

static int deal(struct change *change, sqlock_error *err)
{
    int rc;

    do {
        rc = change_under_lock(change, err);
    } while (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED);
    return rc;
}

int locked_sell(const struct seller *seller, const struct order *order,
                struct deal *out, sqlock_error *err)
{
    struct change change = {
        .seller = seller, .units = order->units, .out = out};

    name_item(change.item, seller->run->way, order->item);
    name_order(change.record, seller->run->way, order);
    return deal(&change, err);
}

int locked_cancel(const struct seller *seller, const struct order *order,
                  struct deal *out, sqlock_error *err)
{
    struct change change = {
        .seller = seller, .units = -order->units, .out = out};
    char name[NAME_SIZE];

    name_item(change.item, seller->run->way, order->item);
    name_order(name, seller->run->way, order);
    (void)snprintf(change.record, sizeof change.record, "%.50s/cancel", name);
    return deal(&change, err);
}
