/*
 * counted.c - a driver around a driver, which counts the statements that are
 * sent through it
 *
 * Connections are the real driver's own; some of its functions are replaced.
 * Databases are measured one after another, so one real driver is in use at a
 * time.
 */
#include "counted.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/drivers.h"

#define PREFIX "counted+"
#define DATABASES 4

struct counted {
    const sqlock_driver *real;
    sqlock_driver driver;
    sqlock_bell bell;
    char name[32];
    char scheme[32];
};

static struct counted all[DATABASES];
static const struct counted *now; /* of the database that is measured */
static atomic_ullong sent;

static int counted_execute(void *connection, const sqlock_statement *statement,
                           const sqlock_value *parameters, size_t count,
                           int64_t deadline_ns, sqlock_result *result,
                           sqlock_error *err)
{
    atomic_fetch_add(&sent, 1);
    return now->real->execute(connection, statement, parameters, count,
                              deadline_ns, result, err);
}

/* A bell of one waits by a statement; SQLite's is a socket, for which nothing
 * is sent. */
static int counted_begin(void *connection, const char *name, int64_t until_ns,
                         int64_t deadline_ns, sqlock_error *err)
{
    if (!now->real->has_one_writer)
        atomic_fetch_add(&sent, 1);
    return now->real->bell->begin(connection, name, until_ns, deadline_ns, err);
}

static void wrap(struct counted *counted, const sqlock_driver *real,
                 const char *url)
{
    counted->real = real;
    (void)snprintf(counted->name, sizeof counted->name, PREFIX "%s",
                   real->name);
    (void)snprintf(counted->scheme, sizeof counted->scheme, PREFIX "%.*s",
                   (int)strcspn(url, ":"), url);
    counted->driver = *real;
    counted->driver.name = counted->name;
    counted->driver.schemes = counted->scheme;
    counted->driver.execute = counted_execute;
    if (real->bell == NULL)
        return;
    counted->bell = *real->bell;
    counted->bell.begin = counted_begin;
    counted->driver.bell = &counted->bell;
}

int bench_counted_url(char out[COUNTED_URL_SIZE], const char *url,
                      struct bench_failure *failure)
{
    const sqlock_driver *real;
    sqlock_error err = {0};
    size_t i = 0;

    if (lk_driver_find(&real, url, &err) < 0)
        return bench_fail(failure, "%s", err.message);
    while (i < DATABASES && all[i].real != NULL && all[i].real != real)
        i++;
    if (i == DATABASES)
        return bench_fail(failure, "more databases than can be counted");
    now = &all[i];
    if (all[i].real == NULL) {
        wrap(&all[i], real, url);
        if (!lk_driver_add(&all[i].driver))
            return bench_fail(failure, "the list of drivers is full");
    }
    if (snprintf(out, COUNTED_URL_SIZE, PREFIX "%s", url) >= COUNTED_URL_SIZE)
        return bench_fail(failure, "the URL is too long to be counted");
    return 0;
}

uint64_t bench_counted(void)
{
    return atomic_load(&sent);
}
