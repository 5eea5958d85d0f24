/*
 * refusal.c - what an action of `sqlock stock` says when it is refused
 */
#include "stock.h"

int stock_refuse(const sqlock_error *err)
{
    int status = cli_fail(err);

    switch (err->code) {
    case SQLOCK_EEXPIRED:
        return CLI_NO;
    case SQLOCK_ERETRY:
        return CLI_BUSY;
    case SQLOCK_EUNCERTAIN:
        return CLI_UNCERTAIN;
    default:
        return status;
    }
}

int stock_misuse(const stock_till *used, const char *what)
{
    cli_error("stock %s: %s; see `sqlock stock --help`", used->app->args[0],
              what);
    return CLI_USAGE;
}
