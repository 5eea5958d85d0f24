/*
 * orders.c - the orders that come in, the same for every way to sell
 *
 * An order depends on the seed and its position alone, so that any worker can
 * compute any order.
 */
#include "demo.h"

enum {
    DRAWS = 5,           /* of each position */
    REPEATED = 6,        /* of 100 positions repeat an order from before, */
    REPEATED_AFTER = 40, /* at most so far back: often still under way */
    CANCELLED = 6,       /* of 100 */
    HOT = 40             /* of 100 want the hot item */
};

/* Return the number at a position of the random numbers of SplitMix64. */
static uint64_t draw(uint64_t seed, uint64_t position)
{
    uint64_t z = seed + (position + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Draw a number below @p limit: number @p which, from 0, of a position. */
static int64_t pick(const struct settings *settings, int64_t position,
                    unsigned which, int64_t limit)
{
    uint64_t at = (uint64_t)position * DRAWS + which;

    return (int64_t)(draw(settings->seed, at) % (uint64_t)limit);
}

/* Return the position at which the order comes in first.  The first two orders,
   see nothing.c, come in once. */
static int64_t first_position(const struct settings *settings, int64_t position)
{
    while (position > 2 && pick(settings, position, 0, 100) < REPEATED) {
        int64_t back = 1 + pick(settings, position, 1, REPEATED_AFTER);

        position = position - back < 2 ? 2 : position - back;
    }
    return position;
}

struct order order_at(const struct settings *settings, int64_t position)
{
    int64_t first = first_position(settings, position);
    int64_t cold = settings->items - 2;
    struct order order = {.id = first};

    order.units = 1 + pick(settings, first, 2, UNITS_MAX);
    if (first < 2)
        return order; /* of item 0 */
    order.item = HOT_ITEM;
    if (pick(settings, first, 3, 100) >= HOT)
        order.item += 1 + pick(settings, first, 1, cold);
    order.is_cancelled = pick(settings, first, 4, 100) < CANCELLED;
    return order;
}

void order_first_stock(const struct settings *settings, int64_t *quantities)
{
    for (int64_t i = 0; i < settings->orders; i++) {
        struct order order = order_at(settings, i);

        if (order.id == i)
            quantities[order.item] += order.units;
    }
    /* Item 0 suffices for the two orders that meet.  Of the other items there
       is a tenth less than is wanted. */
    for (int64_t item = HOT_ITEM; item < settings->items; item++)
        quantities[item] -= quantities[item] / 10;
}
