/*
 * main.c - the command suite: the command of `sqlock run` and its descendants,
 * when sqlock, the database or the network between them fails (see
 * support/suite_main.h)
 */
#include "command.h"

#include <string.h>

static const struct suite_main suite = {
    .name = "command",
    .about = "`sqlock run` when servers, holders and supervisors end or stop",
    .lanes = 3,
    .stops_servers = true,
    .campaign_seconds = 6000,
};

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], FAMILY_FACE) == 0)
        family_main(argv + 2);
    return suite_main(&suite, argc, argv);
}
