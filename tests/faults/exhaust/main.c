/*
 * main.c - the exhaust suite: calls by which the library gets memory, a
 * descriptor or a thread, or waits, fail one after another, on every database
 * (see support/suite_main.h)
 */
#include "exhaust.h"

static void begin(struct fixture *fixture)
{
    (void)fixture;
    exhaust_report();
}

static const struct suite_main suite = {
    .name = "exhaust",
    .about = "what comes of memory, threads and descriptors that are not there",
    .lanes = 3,
    .campaign_seconds = 600,
    .begin = begin,
    .close = begin,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
