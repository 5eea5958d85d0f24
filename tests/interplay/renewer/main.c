/*
 * main.c - the suite `renewer`: background renewal as it is inside, on every
 * database (see support/suite_main.h); tests/scenes has what holders may expect
 * of it
 */
#include "renewer.h"

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
        "renewal in the background, and how a loss is told, from the inside",
    .lanes = 4,
    .campaign_seconds = 6000,
    .open = open_registries,
};

int main(int argc, char **argv)
{
    return suite_main(&suite, argc, argv);
}
