/*
 * main.c - the suite of transactions on the application's tables, on every
 * database (see support/suite_main.h)
 */
#include "suite.h"

#include <string.h>

static const struct topic *const topics[] = {
    &topic_adopt,    &topic_names,     &topic_busy,
    &topic_guard,    &topic_version,   &topic_stopped,
    &topic_input,    &topic_settings,  &topic_rights,
    &topic_retry,    &topic_nested,    &topic_recheck,
    &topic_charset,  &topic_reap,      &topic_codes,
    &topic_identity, &topic_vanished,  &topic_order,
    &topic_pooled,   &topic_savepoint, NULL,
};

static const struct suite_main suite = {
    .name = "tx",
    .about = "transactions on the application's own tables",
    .topics = topics,
    .lanes = 2,
    .stops_servers = true,
    .campaign_seconds = 5000,
    .open = stock_create,
    .close = stock_drop,
    .begin = stock_fill,
};

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--hold") == 0)
        return hold(argv + 2);
    return suite_main(&suite, argc, argv);
}
