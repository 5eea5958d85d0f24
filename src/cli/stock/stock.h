/*
 * stock.h - declarations that the files of `sqlock stock` share
 */
#ifndef SQLOCK_CLI_STOCK_H
#define SQLOCK_CLI_STOCK_H

#include "cli/cli.h"
#include "sqlock/stock.h"

/* The arguments and options of an action, and the stock that it works on. */
typedef struct stock_till {
    const cli *app;
    const char **args; /* the words after the action's name */
    size_t count;
    const char *order;    /* --order, or NULL */
    int64_t hold_ms;      /* --for, or -1 */
    int64_t retention_ms; /* --older-than, or the default */
    bool is_dry_run;
    sqlock_stock *stock;
} stock_till;

/** Print the error of a stock operation.  @return the exit status, as by
 *  cli_fail(), but CLI_NO for SQLOCK_EEXPIRED, which is here an overdue
 *  reservation and not a lost lease */
int stock_refuse(const sqlock_error *err);

/** Print that the arguments are wrong, and @p what is.  @return CLI_USAGE */
int stock_misuse(const stock_till *till, const char *what);

/* The actions, which print their results.  Those that take a fixed number of
 * arguments are called with that number only.  @return CLI_OK, or an exit
 * status after a message */
int stock_deduct(const stock_till *till);
int stock_restore(const stock_till *till);
int stock_set(const stock_till *till);
int stock_reserve(const stock_till *till);
int stock_show(const stock_till *till);
int stock_ls(const stock_till *till);
int stock_claim(const stock_till *till);
int stock_cancel(const stock_till *till);
int stock_look(const stock_till *till);
int stock_expire(const stock_till *till);
int stock_reap(const stock_till *till);

#endif
