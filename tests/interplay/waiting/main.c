/*
 * main.c - the suite `waiting`: waiting for a lock, and who is next, on each
 * database (see support/suite_main.h)
 */
#include "suite.h"

static const struct topic *const topics[] = {
    &topic_handoff, &topic_cancel,     &topic_queue,   &topic_crowd,
    &topic_request, &topic_standstill, &topic_hollow,  &topic_stranger,
    &topic_outage,  &topic_late,       &topic_abandon, NULL,
};

/* One lane: tests ask the server which sessions wait in its queues. */
static const struct suite_main suite = {
    .name = "waiting",
    .about = "who gets a lock that several wait for, and how a wait ends",
    .topics = topics,
    .stops_servers = true, /* it counts the server's statements */
    .campaign_seconds = 5000,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
