/*
 * refusal.c - what an action of `sqlock stock` says when it is refused
 */
#include "stock.h"

int stock_refuse(const sqlock_error *err)
{
    int status = cli_fail(err);

    return err->code == SQLOCK_EEXPIRED ? CLI_NO : status;
}

int stock_misuse(const stock_till *used, const char *what)
{
    cli_error("stock %s: %s; see `sqlock stock --help`", used->app->args[0],
              what);
    return CLI_USAGE;
}
