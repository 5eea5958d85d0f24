/*
 * floor.c - connections of the floor drivers; the cases of bare statements,
 * without sqlock
 */
#include "floor.h"
#include "cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_SIZE 640

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

const struct floor_driver *floor_driver_find(const char *database)
{
    size_t i;

    for (i = 0; drivers[i] != NULL; i++) {
        if (strcmp(drivers[i]->database, database) == 0)
            return drivers[i];
    }
    return NULL;
}

/* ---------------------------------------------------------- connections -- */

int floor_open(struct floor_connection *connection,
               const struct bench_target *target, unsigned number,
               struct bench_failure *failure)
{
    const struct floor_driver *driver = target->floor;
    const char *prefix = target->floor_prefix;

    connection->driver = driver;
    (void)snprintf(connection->key, sizeof connection->key, "%036u", number);
    if (driver->open(&connection->client, target->url, failure) != 0)
        return -1;
    /* a row as wide as that of a held lock */
    if (floor_run(connection, failure,
                  "%s INTO %sLOCK (LOCK_KEY, REGION, CLIENT_ID, FENCE, "
                  "LOCK_NAME, HOLDER, CREATED_DATE, EXPIRED_AFTER) VALUES "
                  "('%s', '" FLOOR_REGION
                  "', '00000000-0000-4000-8000-000000000000', 1, "
                  "'bench client', "
                  "'00000000-0000-4000-8000-000000000000 host 1 bench', %s)%s",
                  driver->insert, prefix, connection->key, driver->times,
                  driver->unless) != 0)
        return -1;
    return floor_prepare(connection, FLOOR_UPDATE, failure,
                         "UPDATE %sLOCK SET FENCE = FENCE + 1 "
                         "WHERE LOCK_KEY = %s AND REGION = %s",
                         prefix, driver->places[0], driver->places[1]);
}

void floor_close(struct floor_connection *connection)
{
    if (connection->client != NULL)
        connection->driver->close(connection->client);
    memset(connection, 0, sizeof *connection);
}

int floor_update(struct floor_connection *connection,
                 struct bench_failure *failure)
{
    const char *const values[] = {connection->key, FLOOR_REGION};

    return connection->driver->execute(connection->client, FLOOR_UPDATE, values,
                                       2, failure);
}

/* Begin or commit. */
static int bound(struct floor_connection *connection,
                 enum floor_statement which, const char *text,
                 struct bench_failure *failure)
{
    const struct floor_driver *driver = connection->driver;

    return driver->prepares_all
               ? driver->execute(connection->client, which, NULL, 0, failure)
               : driver->run(connection->client, text, failure);
}

int floor_begin(struct floor_connection *connection,
                struct bench_failure *failure)
{
    return bound(connection, FLOOR_BEGIN, connection->driver->begin, failure);
}

int floor_commit(struct floor_connection *connection,
                 struct bench_failure *failure)
{
    return bound(connection, FLOOR_COMMIT, "COMMIT", failure);
}

int floor_prepare(struct floor_connection *connection,
                  enum floor_statement which, struct bench_failure *failure,
                  const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return connection->driver->prepare(connection->client, which, text,
                                       failure);
}

int floor_execute(struct floor_connection *connection,
                  enum floor_statement which, const char *value,
                  struct bench_failure *failure)
{
    return connection->driver->execute(connection->client, which, &value,
                                       value != NULL ? 1 : 0, failure);
}

int floor_run(struct floor_connection *connection,
              struct bench_failure *failure, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return connection->driver->run(connection->client, text, failure);
}

int floor_number(struct floor_connection *connection, const char *text,
                 int64_t *number, struct bench_failure *failure)
{
    char cells[FLOOR_CELLS][FLOOR_CELL_SIZE];
    int count =
        connection->driver->row(connection->client, text, cells, failure);

    if (count > 0)
        *number = strtoll(cells[count - 1], NULL, 10);
    return count > 0 ? 0 : -1;
}

int floor_clients_open(struct floor_clients *clients,
                       const struct bench_target *target,
                       struct bench_failure *failure)
{
    int rc = 0;

    for (unsigned i = 0; i < target->clients && rc == 0; i++) {
        clients->count = i + 1;
        rc =
            floor_open(&clients->client[i], target, target->first + i, failure);
    }
    return rc;
}

void floor_clients_close(struct floor_clients *clients)
{
    for (unsigned i = 0; i < clients->count; i++)
        floor_close(&clients->client[i]);
}

/* ---------------------------------------------------------------- cases -- */

int floor_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    struct floor_clients *clients = calloc(1, sizeof *clients);

    *out = clients;
    if (clients == NULL)
        return bench_fail(failure, "out of memory");
    return floor_clients_open(clients, target, failure);
}

void floor_teardown(void *opaque)
{
    if (opaque != NULL)
        floor_clients_close(opaque);
    free(opaque);
}

int floor_two_updates(void *opaque, unsigned client,
                      struct bench_failure *failure)
{
    struct floor_clients *clients = opaque;
    struct floor_connection *connection = &clients->client[client];

    if (floor_update(connection, failure) != 0)
        return -1;
    return floor_update(connection, failure);
}

/* BEGIN, the UPDATE and COMMIT. */
int floor_transaction(void *opaque, unsigned client,
                      struct bench_failure *failure)
{
    struct floor_clients *clients = opaque;
    struct floor_connection *connection = &clients->client[client];

    if (floor_begin(connection, failure) != 0 ||
        floor_update(connection, failure) != 0)
        return -1;
    return floor_commit(connection, failure);
}
