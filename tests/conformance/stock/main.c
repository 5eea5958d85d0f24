/*
 * main.c - the suite of stock, on every database (see support/suite_main.h)
 */
#include "suite.h"

#include <string.h>

static const struct suite_main suite = {
    .name = "stock",
    .about = "stock that many take from: exact counts, nothing oversold",
    .stops_servers = true,
    .campaign_seconds = 6000,
    .open = shop_create,
    .close = shop_drop,
};

/* A suite of which three tests fail on purpose. */
static const struct suite_main limping = {
    .name = "limping",
    .about = "tests that fail, for limping.sh",
    .set = SET_LIMPING,
    .test_seconds = 4,
    .open = shop_create,
    .close = shop_drop,
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--limp") == 0)
        return suite_main(&limping, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--sell") == 0)
        return sell(argc - 2, argv + 2);
    return suite_main(&suite, argc, argv);
}
