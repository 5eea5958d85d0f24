/*
 * floor.c - the cases of two bare statements, without sqlock; and the list of
 * floor drivers
 */
#include "floor.h"
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A database for which the build has no sqlock driver has no floor driver. */
static const struct floor_driver *const drivers[] = {
#ifdef SQLOCK_WITH_POSTGRES
    &floor_postgres,
#endif
#ifdef SQLOCK_WITH_MYSQL
    &floor_mysql,
#endif
#ifdef SQLOCK_WITH_SQLITE
    &floor_sqlite,
#endif
    NULL,
};

struct floor_state {
    const struct floor_driver *driver;
    unsigned clients;
    void *connections[BENCH_CLIENTS_MAX];
};

const struct floor_driver *floor_driver_find(const char *database)
{
    size_t i;

    for (i = 0; drivers[i] != NULL; i++) {
        if (strcmp(drivers[i]->database, database) == 0)
            return drivers[i];
    }
    return NULL;
}

void floor_sale_texts(struct floor_sale *to, const struct bench_target *target,
                      const char *item, const char *locking,
                      const char *parameter)
{
    const char *prefix = target->floor_prefix;

    (void)snprintf(to->select, sizeof to->select,
                   "SELECT QUANTITY FROM %sITEM WHERE ITEM = '%s'%s", prefix,
                   item, locking);
    (void)snprintf(
        to->update, sizeof to->update,
        "UPDATE %sITEM SET QUANTITY = QUANTITY - 1 WHERE ITEM = '%s'", prefix,
        item);
    (void)snprintf(to->insert, sizeof to->insert,
                   "INSERT INTO %sSALE (ORDER_ID, ITEM, QUANTITY) "
                   "VALUES (%s, '%s', 1)",
                   prefix, parameter, item);
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
        rc = state->driver->open(&state->connections[i], target,
                                 target->first + i, failure);
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
