/*
 * main.c - the suite of transactions on the application's tables, on every
 * database (see support/suite_main.h); what sessions may expect of each other
 * is in tests/scenes
 */
#include "suite.h"

static const struct suite_main suite = {
    .name = "tx",
    .about = "transactions on the application's own tables",
    .lanes = 2,
    .stops_servers = true,
    .campaign_seconds = 5000,
    .open = stock_create,
    .close = stock_drop,
    .begin = stock_fill,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
