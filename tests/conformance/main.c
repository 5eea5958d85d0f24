/*
 * main.c - the conformance suite: what is promised of a lock, on every database
 * and each table layout (see support/suite_main.h)
 */
#include "conformance.h"

/* Tests that stop a server run before the others, alone. */
static const struct suite_main suite = {
    .name = "conformance",
    .about = "what sqlock.h says, on each database and table layout",
    .layouts = IN_ALL,
    .lanes = 3,
    .stops_servers = true,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
