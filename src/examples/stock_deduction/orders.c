/*
 * orders.c - the orders that come in, the same for every way to sell
 *
 * Any worker can draw any order: it depends on the seed and the position alone.
 */
#include "demo.h"

enum {
    DRAWS = 5,           /* of each position */
    REPEATED = 6,        /* of 100 orders so many come in again, */
    REPEATED_AFTER = 40, /* so many orders later at most: often at once */
    CANCELLED = 6,       /* of 100 */
    HOT = 40             /* of 100 want the hot item */
};

/* The numbers of SplitMix64, by position. */
static uint64_t draw(uint64_t seed, uint64_t position)
{
    uint64_t z = seed + (position + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number below @p limit. */
static int64_t pick(const struct settings *settings, int64_t position,
                    unsigned which, int64_t limit)
{
    uint64_t at = (uint64_t)position * DRAWS + which;

    return (int64_t)(draw(settings->seed, at) % (uint64_t)limit);
}

/* The position at which the order came in first; the first two, see nothing.c,
   come in once. */
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
    /* The two that meet find enough.  The others want a tenth more than there
       is. */
    for (int64_t item = HOT_ITEM; item < settings->items; item++)
        quantities[item] -= quantities[item] / 10;
}
