/*
 * main.c - the polling suite: URLs with waiting=poll, on databases where nobody
 * may ring or take an advisory lock (with.sh)
 */
#include "support/suite_main.h"

static const struct suite_main suite = {
    .name = "polling",
    .about = "waiting on a server that has nothing to wake a waiter with",
    .layouts = IN_ALL,
    .test_seconds = 150,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
