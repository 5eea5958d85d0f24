/*
 * nothing.c - the control: read, compare, write, with nothing to protect it
 *
 * The result is right as long as nobody else does the same to the same item in
 * between, and no order comes in twice.
 */
#include "way.h"

#include <pthread.h>

/* Orders 0 and 1 want item 0, which no other order wants, and are dealt with by
   two workers at once.  Both read what they are going to deduct from and wait
   here for each other before they write: whatever the timing, one of the two is
   lost. */
static void meet(const struct seller *seller, const struct order *order)
{
    if (order->item == 0)
        (void)pthread_barrier_wait(&seller->run->board->meet);
}

int nothing_sell(const struct seller *seller, const struct order *order,
                 struct deal *out, sqlock_error *err)
{
    char item[NAME_SIZE];
    int64_t quantity;
    int rc;

    name_item(item, seller->run->way, order->item);
    rc = sqlock_stock_read(seller->stock, NULL, item, &quantity, err);
    if (rc != 0)
        return rc;
    meet(seller, order);
    out->is_done = quantity >= order->units;
    if (!out->is_done)
        return 0;
    return sqlock_stock_set(seller->stock, NULL, NULL, item,
                            quantity - order->units, NULL, err);
}

int nothing_cancel(const struct seller *seller, const struct order *order,
                   struct deal *out, sqlock_error *err)
{
    char item[NAME_SIZE];
    int64_t quantity;
    int rc;

    name_item(item, seller->run->way, order->item);
    rc = sqlock_stock_read(seller->stock, NULL, item, &quantity, err);
    if (rc != 0)
        return rc;
    out->is_done = true;
    return sqlock_stock_set(seller->stock, NULL, NULL, item,
                            quantity + order->units, NULL, err);
}
