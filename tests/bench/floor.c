/*
 * floor.c - the cases that do without sqlock, and finding their driver
 */
#include "floor.h"
#include "cases.h"

#include <stdlib.h>
#include <string.h>

/* A database whose driver was left out of the build has no floor either. */
extern const struct floor_driver floor_postgres __attribute__((weak));
extern const struct floor_driver floor_mysql __attribute__((weak));
extern const struct floor_driver floor_sqlite __attribute__((weak));

struct floor_state {
    const struct floor_driver *driver;
    unsigned clients;
    void *connections[BENCH_CLIENTS_MAX];
};

const struct floor_driver *floor_driver_find(const char *database)
{
    const struct floor_driver *const all[] = {&floor_postgres, &floor_mysql,
                                              &floor_sqlite};
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] != NULL && strcmp(all[i]->database, database) == 0)
            return all[i];
    }
    return NULL;
}

int floor_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    struct floor_state *state = calloc(1, sizeof *state);
    unsigned i;
    int rc = 0;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->driver = target->floor;
    state->clients = target->clients;
    for (i = 0; i < state->clients && rc == 0; i++)
        rc = state->driver->open(&state->connections[i], target, i, failure);
    return rc;
}

void floor_teardown(void *opaque)
{
    struct floor_state *state = opaque;
    unsigned i;

    if (state == NULL)
        return;
    for (i = 0; i < state->clients; i++)
        state->driver->close(state->connections[i]);
    free(state);
}

int floor_two_updates(void *opaque, unsigned client,
                      struct bench_failure *failure)
{
    struct floor_state *state = opaque;
    void *connection = state->connections[client];

    if (state->driver->update(connection, failure) != 0)
        return -1;
    return state->driver->update(connection, failure);
}

int floor_two_selects(void *opaque, unsigned client,
                      struct bench_failure *failure)
{
    struct floor_state *state = opaque;
    void *connection = state->connections[client];

    if (state->driver->select(connection, failure) != 0)
        return -1;
    return state->driver->select(connection, failure);
}
