/*
 * main.c - the suite of background renewal, of how a loss is told, and of many
 * locks at a time, on every database (see support/suite_main.h)
 */
#include "renewer.h"

static const struct topic *const topics[] = {
    &topic_crowd,
    &topic_ending,
    &topic_flight,
    &topic_renew,
    &topic_told,
    &topic_stranger,
    &topic_outage,
    &topic_clock,
    &topic_many,
    &topic_late,
    &topic_group,
    &topic_overlap,
    &topic_margin,
    &topic_doubt,
    &topic_crosswise,
    &topic_writer,
    &topic_threads,
    &topic_handed,
    &topic_release,
    &topic_callback,
    &topic_full,
    &topic_counted,
    NULL,
};

static void open_registries(struct fixture *fixture)
{
    sqlock_options options = renewer_options(fixture);

    registry_end(fixture->a);
    registry_end(fixture->b);
    fixture->a = fixture_registry(fixture, &options);
    fixture->b = fixture_registry(fixture, &options);
}

static const struct suite_main suite = {
    .name = "renewer",
    .about =
        "renewal in the background, how a loss is told, many locks at a time",
    .topics = topics,
    .lanes = 4,
    .campaign_seconds = 6000,
    .open = open_registries,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
