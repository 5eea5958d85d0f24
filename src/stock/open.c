/*
 * open.c - open a stock: check the options, the tables and the strategy against
 * the database, so that nothing fails halfway later
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/thread.h"
#include "stock/stock.h"

#define BATCH_DEFAULT 256u
#define ATTEMPTS_DEFAULT 100u
#define DEADLINE_DEFAULT_MS 30000u

static const struct {
    const char *name;
    const struct lk_stock_strategy *strategy;
} strategies[SQLOCK_STOCK_STRATEGIES] = {
    [SQLOCK_STOCK_CONDITIONAL] = {"conditional", &lk_stock_conditional},
    [SQLOCK_STOCK_PESSIMISTIC] = {"pessimistic", &lk_stock_pessimistic},
    [SQLOCK_STOCK_OPTIMISTIC] = {"optimistic", &lk_stock_optimistic},
    [SQLOCK_STOCK_COALESCED] = {"coalesced", &lk_stock_coalesced},
};

static bool is_strategy(sqlock_stock_strategy strategy)
{
    return (int)strategy >= 0 && strategy < SQLOCK_STOCK_STRATEGIES;
}

const char *sqlock_stock_strategy_name(sqlock_stock_strategy strategy)
{
    return is_strategy(strategy) ? strategies[strategy].name : NULL;
}

/* --- options --- */

static int complete(sqlock_stock_options *out,
                    const sqlock_stock_options *given, sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_stock_options",
                                          "SQLOCK_STOCK_INIT", sizeof *out};
    int rc = lk_sized_read(out, &sized, given, err);

    if (rc < 0)
        return rc;
    if (!is_strategy(out->strategy))
        return lk_error(err, SQLOCK_EINVAL, "unknown stock strategy %d",
                        (int)out->strategy);
    if (out->table == NULL &&
        (out->item_column != NULL || out->quantity_column != NULL ||
         out->version_column != NULL))
        return lk_error(err, SQLOCK_EINVAL,
                        "columns of a stock are given without a table");
    rc = lk_check_number("batch", &out->batch, BATCH_DEFAULT, 1, 1000, err);
    if (rc == 0)
        rc = lk_check_number("attempts", &out->attempts, ATTEMPTS_DEFAULT, 1,
                             UINT32_MAX, err);
    if (rc == 0)
        rc = lk_check_number("deadline_ms", &out->deadline_ms,
                             DEADLINE_DEFAULT_MS, 10, 3600000, err);
    return rc;
}

/* --- opening and closing --- */

static sqlock_stock *make(sqlock_registry *registry,
                          const sqlock_stock_options *options)
{
    sqlock_stock *stock = calloc(1, sizeof *stock);

    if (stock == NULL)
        return NULL;
    stock->registry = registry;
    stock->options = *options;
    stock->strategy = strategies[options->strategy].strategy;
    stock->take_back = lk_stock_take_back;
    stock->name = strdup(options->table != NULL ? options->table : "");
    /* Do not keep the application's strings. */
    stock->options.table = NULL;
    stock->options.item_column = NULL;
    stock->options.quantity_column = NULL;
    stock->options.version_column = NULL;
    (void)pthread_mutex_init(&stock->mutex, NULL);
    lk_condition_init(&stock->written);
    return stock;
}

static void unmake(sqlock_stock *stock)
{
    assert(stock->queues == NULL); /* each goes with its last thread */
    free(stock->name);
    (void)pthread_cond_destroy(&stock->written);
    (void)pthread_mutex_destroy(&stock->mutex);
    free(stock);
}

int sqlock_stock_open(sqlock_stock **out, sqlock_registry *registry,
                      const sqlock_stock_options *options, sqlock_error *err)
{
    sqlock_stock_options all;
    sqlock_stock *stock;
    int rc;

    if (out == NULL)
        return lk_error_null(err, "stock");
    *out = NULL;
    rc = complete(&all, options, err);
    if (rc < 0)
        return rc;
    stock = make(registry, &all);
    if (stock == NULL || stock->name == NULL)
        rc = lk_error_nomem(err);
    else
        rc = lk_stock_tables_open(&stock->tables, registry, &all, err);
    if (rc == 0)
        *out = stock;
    else if (stock != NULL)
        unmake(stock);
    return rc;
}

void sqlock_stock_close(sqlock_stock *stock)
{
    if (stock == NULL)
        return;
    lk_stock_tables_close(&stock->tables);
    unmake(stock);
}

int sqlock_stock_statistics(sqlock_stock *stock, sqlock_stock_stats *stats,
                            sqlock_error *err)
{
    static const struct lk_sized sized = {
        "sqlock_stock_stats", "SQLOCK_STOCK_STATS_INIT", sizeof *stats};
    int rc = lk_sized_check(&sized, stats, err);

    if (rc == 0)
        rc = lk_stock_check(stock, NULL, err);
    if (rc < 0)
        return rc;
    lk_sized_write(stats, &(sqlock_stock_stats){
                              .operations = atomic_load(&stock->operations),
                              .retries = atomic_load(&stock->retries),
                              .rounds = atomic_load(&stock->rounds),
                              .combined = atomic_load(&stock->combined),
                              .most_rounds = atomic_load(&stock->most_rounds),
                          });
    return 0;
}
