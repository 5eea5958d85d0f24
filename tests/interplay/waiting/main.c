/*
 * main.c - the suite `waiting`: waiting for a lock, and who is next, on each
 * database (see support/suite_main.h)
 */
#include "suite.h"

static const struct suite_main suite = {
    .name = "waiting",
    .about = "who gets a lock that several wait for, and how a wait ends",
    .campaign_seconds = 5000,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
