/*
 * stock.c - the contract of sqlock_stock.h, before its strategies are built:
 * every operation is refused
 */
#include "sqlock_stock.h"

#include "base/error.h"

#define REFUSED(err) lk_error((err), SQLOCK_ENOTSUP, "no stock in this build")

int sqlock_stock_open(sqlock_stock **out, sqlock_registry *registry,
                      const sqlock_stock_options *options, sqlock_error *err)
{
    (void)out;
    (void)registry;
    (void)options;
    if (out != NULL)
        *out = NULL;
    return REFUSED(err);
}

int sqlock_stock_deduct(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                        const char *item, int64_t quantity,
                        sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)item;
    (void)quantity;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_restore(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         const char *item, int64_t quantity,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)item;
    (void)quantity;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_set(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                     const char *item, int64_t quantity,
                     sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)item;
    (void)quantity;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_read(sqlock_stock *stock, sqlock_tx *tx, const char *item,
                      int64_t *quantity, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)item;
    (void)quantity;
    return REFUSED(err);
}

int sqlock_stock_deduct_many(sqlock_stock *stock, sqlock_tx *tx,
                             const char *order, sqlock_stock_line *lines,
                             size_t count, sqlock_stock_answer *answer,
                             sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)lines;
    (void)count;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_restore_many(sqlock_stock *stock, sqlock_tx *tx,
                              const char *order, sqlock_stock_line *lines,
                              size_t count, sqlock_stock_answer *answer,
                              sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)lines;
    (void)count;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_reserve(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         sqlock_stock_line *lines, size_t count, int64_t ttl_ms,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)lines;
    (void)count;
    (void)ttl_ms;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_claim(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                       sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_cancel(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                        sqlock_stock_answer *answer, sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)answer;
    return REFUSED(err);
}

int sqlock_stock_expire(sqlock_stock *stock, int64_t *expired,
                        sqlock_error *err)
{
    (void)stock;
    (void)expired;
    return REFUSED(err);
}

int sqlock_stock_look(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                      sqlock_stock_state *state, int64_t *remaining_ms,
                      sqlock_error *err)
{
    (void)stock;
    (void)tx;
    (void)order;
    (void)state;
    (void)remaining_ms;
    return REFUSED(err);
}

int sqlock_stock_schema_text(char **text, const char *url,
                             const sqlock_options *options, sqlock_error *err)
{
    (void)text;
    (void)url;
    (void)options;
    if (text != NULL)
        *text = NULL;
    return REFUSED(err);
}

int sqlock_stock_schema_create(const char *url, const sqlock_options *options,
                               sqlock_error *err)
{
    (void)url;
    (void)options;
    return REFUSED(err);
}

void sqlock_stock_close(sqlock_stock *stock)
{
    (void)stock;
}

void sqlock_stock_statistics(sqlock_stock *stock, sqlock_stock_stats *stats)
{
    (void)stock;
    (void)stats;
}

const char *sqlock_stock_strategy_name(sqlock_stock_strategy strategy)
{
    static const char *const names[SQLOCK_STOCK_STRATEGIES] = {
        "conditional", "pessimistic", "optimistic",
        "advisory",    "buckets",     "coalesced",
    };

    if ((int)strategy < 0 || strategy >= SQLOCK_STOCK_STRATEGIES)
        return NULL;
    return names[strategy];
}
