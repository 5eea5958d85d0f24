/*
 * cases.c - the table of what can be measured
 *
 * A case whose baseline is itself shows the noise: how far apart slices of one
 * and the same work lie.
 */
#include "cases.h"

#include <string.h>

const struct bench_case bench_cases[] = {
    {
        .name = "floor",
        .what = "two prepared autocommit UPDATEs of one row, no sqlock",
        .baseline = "floor",
        .setup = floor_setup,
        .operation = floor_two_updates,
        .teardown = floor_teardown,
    },
    {
        .name = "round-trips",
        .what = "two prepared SELECT 1, no sqlock",
        .baseline = "floor",
        .setup = floor_setup,
        .operation = floor_two_selects,
        .teardown = floor_teardown,
    },
    {
        .name = "pair",
        .what = "acquire and release, every client a lock of its own",
        .baseline = "floor",
        .setup = lock_setup,
        .operation = lock_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "nested",
        .what = "the same, with another acquire and release inside",
        .baseline = "pair",
        .setup = lock_setup,
        .operation = lock_nested,
        .teardown = lock_teardown,
    },
    {.name = NULL},
};

const struct bench_case *bench_case_find(const char *name)
{
    const struct bench_case *at;

    for (at = bench_cases; at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0)
            return at;
    }
    return NULL;
}
