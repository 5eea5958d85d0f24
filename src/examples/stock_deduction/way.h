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

/* The registry and the stock of a process, shared by its threads. */
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
    bool is_control;                /* this way has to lose something */

    /** Deduct an order.  @param[out] out zeroed by the caller.  @return 0, or
     *  an error of sqlock */
    int (*sell)(const struct seller *seller, const struct order *order,
                struct deal *out, sqlock_error *err);

    /** Cancel an order that was done, in the same way. */
    int (*cancel)(const struct seller *seller, const struct order *order,
                  struct deal *out, sqlock_error *err);
};

/** All ways, the control first; a NULL name ends the array. */
extern const struct way ways[];

/** Open a registry and a stock, in the process that uses them.  @return 0, or
 *  an error of sqlock; call seller_close() in both cases */
int seller_open(struct seller *seller, const struct run *run,
                sqlock_error *err);
void seller_close(struct seller *seller);

/* Write the name of an item or an order to @p to, of NAME_SIZE bytes.  Each way
   has its own names, so that all ways can use the same tables. */
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
