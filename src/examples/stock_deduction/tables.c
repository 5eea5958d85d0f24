/*
 * tables.c - before and after the runs: create the tables, set the quantities,
 * compare them with the answers, drop the tables
 *
 * These are crew_jobs, each run in a process of its own, because the parent
 * touches no database.
 */
#include <stdio.h>
#include <stdlib.h>

#include "way.h"

static int complain(const char *what, const sqlock_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return -1;
}

int tables_create(int index, void *context)
{
    const struct run *run = context;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = run->settings->prefix;
    rc = sqlock_schema_create(run->settings->url, &options,
                              SQLOCK_LAYOUT_SQLOCK, &err);
    if (rc != 0)
        return complain("creating the tables", &err);
    rc = sqlock_stock_schema_create(run->settings->url, &options, &err);
    if (rc == 0)
        return 0;
    (void)complain("creating the tables", &err);
    (void)tables_drop(index, context); /* those that were made */
    return rc;
}

int tables_fill(int index, void *context)
{
    struct run *run = context;
    int64_t items = run->settings->items;
    int64_t *quantities = calloc((size_t)items, sizeof *quantities);
    struct seller seller = {0};
    sqlock_error err = {0};
    char name[NAME_SIZE];
    int rc;

    (void)index;
    if (quantities == NULL) {
        perror("calloc");
        return -1;
    }
    rc = seller_open(&seller, run, &err);
    order_first_stock(run->settings, quantities);
    for (int64_t item = 0; rc == 0 && item < items; item++) {
        name_item(name, run->way, item);
        rc = sqlock_stock_set(seller.stock, NULL, NULL, name, quantities[item],
                              NULL, &err);
    }
    if (rc != 0)
        rc = complain("filling the shelves", &err);
    seller_close(&seller);
    free(quantities);
    return rc;
}

/* Return how often something was done to an order.  If an answer was lost, the
   repeated one is the first that a worker sees, and was not counted. */
static int times(int counted, bool was_done)
{
    return counted == 0 && was_done ? 1 : counted;
}

/* Add up the units of each item that, by the answers, were deducted and not
   restored. */
static void add_up(const struct run *run, int64_t *gone)
{
    struct tally *tally = &run->board->tally;

    for (int64_t i = 0; i < run->settings->orders; i++) {
        struct order order = order_at(run->settings, i);
        const struct mark *mark = &run->board->marks[i];
        bool was_done = mark->answer == DONE;
        int deducted = times(mark->deducted, was_done);
        int restored = times(mark->restored, was_done && order.is_cancelled);

        if (order.id != i)
            continue;
        gone[order.item] += (deducted - restored) * order.units;
        tally->twice += deducted > 1 || restored > 1;
    }
}

int tables_take_stock(int index, void *context)
{
    const struct run *run = context;
    struct tally *tally = &run->board->tally;
    int64_t items = run->settings->items;
    int64_t *first = calloc((size_t)items, sizeof *first);
    int64_t *gone = calloc((size_t)items, sizeof *gone);
    struct seller seller = {0};
    sqlock_error err = {0};
    char name[NAME_SIZE];
    int rc = 0;

    (void)index;
    if (first == NULL || gone == NULL) {
        perror("calloc");
        rc = -1;
        goto out;
    }
    order_first_stock(run->settings, first);
    add_up(run, gone);
    tally->differing = run->board->differing;
    rc = seller_open(&seller, run, &err);
    for (int64_t item = 0; rc == 0 && item < items; item++) {
        int64_t left = first[item] - gone[item];
        int64_t quantity = 0;

        name_item(name, run->way, item);
        rc = sqlock_stock_read(seller.stock, NULL, name, &quantity, &err);
        tally->oversold += left < 0 ? -left : 0;
        tally->lost += llabs(quantity - left);
    }
    if (rc != 0)
        rc = complain("taking stock", &err);
    seller_close(&seller);
out:
    free(first);
    free(gone);
    return rc;
}

/* One thing that is dropped again. */
struct object {
    const char *kind;
    const char *name; /* behind the prefix */
};

/* MySQL commits at this statement by itself, which the library reports as
   EINVAL: it was executed. */
static int drop(sqlock_registry *registry, const char *prefix,
                const struct object *object, sqlock_error *err)
{
    char text[128];
    sqlock_tx *tx;
    int rc;

    (void)snprintf(text, sizeof text, "DROP %s IF EXISTS %s%s", object->kind,
                   prefix, object->name);
    rc = sqlock_tx_begin(&tx, registry, err);
    if (rc != 0)
        return rc;
    rc = sqlock_tx_execute(tx, text, NULL, 0, NULL, err);
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc == SQLOCK_EINVAL ? 0 : rc;
}

int tables_drop(int index, void *context)
{
    static const struct object made[] = {{"TABLE", "STOCK_RESERVATION"},
                                         {"TABLE", "STOCK_ENTRY"},
                                         {"TABLE", "STOCK"},
                                         {"VIEW", "LOCK_NOW"},
                                         {"TABLE", "LOCK"},
                                         {"TABLE", "LOCK_SERVER"},
                                         {"TABLE", "LOCK_MARK"}};
    const struct run *run = context;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int rc;

    (void)index;
    options.table_prefix = run->settings->prefix;
    rc = sqlock_registry_open(&registry, run->settings->url, &options, &err);
    if (rc == SQLOCK_ESCHEMA)
        return 0; /* not one of them was made */
    for (size_t i = 0; rc == 0 && i < sizeof made / sizeof made[0]; i++)
        rc = drop(registry, run->settings->prefix, &made[i], &err);
    if (rc != 0)
        rc = complain("clearing up", &err);
    (void)sqlock_registry_close(registry, NULL);
    return rc;
}
