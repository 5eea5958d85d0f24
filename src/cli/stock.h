/*
 * stock.h - declarations that the files of `sqlock stock` share
 */
#ifndef SQLOCK_CLI_STOCK_H
#define SQLOCK_CLI_STOCK_H

#include "cli.h"
#include "sqlock/stock.h"

/* The context of an action. */
typedef struct stock_till {
    const cli *app;
    const char *action;
    const char **args; /* the words after the action's name */
    size_t count;
    const char *order;      /* --order, or NULL */
    const char *hold;       /* --for, or NULL */
    const char *older_than; /* --older-than, or NULL */
    bool is_dry_run;
    sqlock_stock *stock;
} stock_till;

/** Report a failure.  An overdue reservation is not reported as a lost lease.
 *  @return the exit status */
int stock_refuse(const sqlock_error *err);

/** Report wrong arguments.  @return CLI_USAGE */
int stock_misuse(const stock_till *till, const char *what);

/* The actions.  @return CLI_OK, or an exit status after a message */
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
