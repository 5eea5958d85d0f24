/*
 * way.h - a way to sell: one row of the demo's table
 *
 * Every way sells the same orders.  The worker chooses the items, and how often
 * an order comes in; a way has to answer each order once and for all, and to
 * leave the stock right.
 */
#ifndef DEMO_WAY_H
#define DEMO_WAY_H

#include <stdbool.h>

#include "demo.h"
#include "sqlock/stock.h"

/* A process's means to sell, shared by its threads. */
struct seller {
    const struct run *run;
    sqlock_registry *registry;
    sqlock_stock *stock;
};

struct deal {
    bool is_done;   /* deducted or given back, now or earlier; else refused */
    bool is_repeat; /* it had been answered before */
};

struct way {
    const char *name;
    sqlock_stock_strategy strategy; /* that the stock is opened with */
    bool is_control;                /* it has to lose something */

    /** Deduct an order.  @return 0, or as sqlock gave it */
    int (*sell)(const struct seller *seller, const struct order *order,
                struct deal *out, sqlock_error *err);

    /** Take back an order that was done. */
    int (*cancel)(const struct seller *seller, const struct order *order,
                  struct deal *out, sqlock_error *err);
};

/** All ways, the control first, the last one with a NULL name. */
extern const struct way ways[];

/** Open the means, in the process that uses them. */
int seller_open(struct seller *seller, const struct run *run,
                sqlock_error *err);
void seller_close(struct seller *seller);

/* Names of items and orders: each way has its own, so that all can have the
   same tables. */
enum { NAME_SIZE = 64 };
void name_item(char *to, const struct way *way, int64_t item);
void name_order(char *to, const struct way *way, const struct order *order);

/* nothing.c */
int nothing_sell(const struct seller *seller, const struct order *order,
                 struct deal *out, sqlock_error *err);
int nothing_cancel(const struct seller *seller, const struct order *order,
                   struct deal *out, sqlock_error *err);

/* locked.c */
int locked_sell(const struct seller *seller, const struct order *order,
                struct deal *out, sqlock_error *err);
int locked_cancel(const struct seller *seller, const struct order *order,
                  struct deal *out, sqlock_error *err);

#endif /* DEMO_WAY_H */
