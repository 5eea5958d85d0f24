/*
 * way.c - the ways to sell, and the one that an application would take
 *
 * Start reading at stock_sell(): one call deducts an order, whatever the
 * strategy, and answers the same when it is made again.
 */
#include "way.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* POOL_MAX: the most connections that a registry can have. */
enum { POOL_MAX = 64, TTL_MS = 10000, POLL_MS = 10, HOLD_MS = 60000 };

/* On a hot item the optimistic strategy takes many attempts. */
#define ATTEMPTS_MAX 1000000

static int stock_sell(const struct seller *seller, const struct order *order,
                      struct deal *out, sqlock_error *err)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    char name[NAME_SIZE];
    char item[NAME_SIZE];
    int rc;

    name_order(name, seller->run->way, order);
    name_item(item, seller->run->way, order->item);
    if (order->is_cancelled) { /* reserved, so that it can be cancelled */
        sqlock_stock_line line = {.item = item, .quantity = order->units};

        rc = sqlock_stock_reserve(seller->stock, NULL, name, &line, 1, HOLD_MS,
                                  &answer, err);
    } else {
        rc = sqlock_stock_deduct(seller->stock, NULL, name, item, order->units,
                                 &answer, err);
    }
    if (rc != 0 && rc != SQLOCK_EINSUFFICIENT)
        return rc;
    out->is_done = rc == 0;
    out->is_repeat = answer.is_duplicate;
    return 0;
}

static int stock_cancel(const struct seller *seller, const struct order *order,
                        struct deal *out, sqlock_error *err)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    char name[NAME_SIZE];
    int rc;

    name_order(name, seller->run->way, order);
    rc = sqlock_stock_cancel(seller->stock, NULL, name, &answer, err);
    out->is_done = rc == 0;
    out->is_repeat = answer.is_duplicate;
    return rc;
}

const struct way ways[] = {
    {"nothing", SQLOCK_STOCK_CONDITIONAL, true, nothing_sell, nothing_cancel},
    {"a lock around", SQLOCK_STOCK_CONDITIONAL, false, locked_sell,
     locked_cancel},
    {"pessimistic", SQLOCK_STOCK_PESSIMISTIC, false, stock_sell, stock_cancel},
    {"optimistic", SQLOCK_STOCK_OPTIMISTIC, false, stock_sell, stock_cancel},
    {"conditional", SQLOCK_STOCK_CONDITIONAL, false, stock_sell, stock_cancel},
    {"coalesced", SQLOCK_STOCK_COALESCED, false, stock_sell, stock_cancel},
    {.name = NULL},
};

int seller_open(struct seller *seller, const struct run *run, sqlock_error *err)
{
    const struct settings *settings = run->settings;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_stock_options stock_options = SQLOCK_STOCK_INIT;
    int rc;

    memset(seller, 0, sizeof *seller);
    seller->run = run;
    options.table_prefix = settings->prefix;
    options.holder_note = "stock deduction demo";
    options.ttl_ms = TTL_MS;
    options.poll_ms = POLL_MS; /* an item is locked for a few milliseconds */
    options.pool_size = settings->threads < POOL_MAX
                            ? (uint32_t)settings->threads
                            : (uint32_t)POOL_MAX;
    rc = sqlock_registry_open(&seller->registry, settings->url, &options, err);
    if (rc != 0)
        return rc;
    stock_options.strategy = run->way->strategy;
    stock_options.attempts = ATTEMPTS_MAX;
    return sqlock_stock_open(&seller->stock, seller->registry, &stock_options,
                             err);
}

void seller_close(struct seller *seller)
{
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

    if (seller->stock != NULL) {
        (void)sqlock_stock_statistics(seller->stock, &stats, NULL);
        atomic_fetch_add(&seller->run->board->retries, (int64_t)stats.retries);
    }
    sqlock_stock_close(seller->stock);
    (void)sqlock_registry_close(seller->registry, NULL);
}

void name_item(char *to, const struct way *way, int64_t item)
{
    (void)snprintf(to, NAME_SIZE, "%s/item %" PRId64, way->name, item);
}

void name_order(char *to, const struct way *way, const struct order *order)
{
    (void)snprintf(to, NAME_SIZE, "%s/order %" PRId64, way->name, order->id);
}
