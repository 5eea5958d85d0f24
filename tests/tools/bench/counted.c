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
    sqlock_wait_queue wait_queue;
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

/* SQLite's queue lock is a lock on a file, for which nothing is sent. */
static void count_at_queue(void)
{
    if (!now->real->has_one_writer)
        atomic_fetch_add(&sent, 1);
}

static int counted_queue(void *connection, int64_t queue, int64_t until_ns,
                         sqlock_error *err)
{
    count_at_queue();
    return now->real->wait_queue->enqueue(connection, queue, until_ns, err);
}

static int counted_listen(void *connection, int64_t queue, int64_t deadline_ns,
                          sqlock_error *err)
{
    count_at_queue();
    return now->real->wait_queue->subscribe(connection, queue, deadline_ns,
                                            err);
}

static int counted_leave(void *connection, int64_t queue, int64_t deadline_ns,
                         sqlock_error *err)
{
    count_at_queue();
    return now->real->wait_queue->leave(connection, queue, deadline_ns, err);
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
    if (real->wait_queue == NULL)
        return;
    counted->wait_queue = *real->wait_queue;
    counted->wait_queue.enqueue = counted_queue;
    if (counted->wait_queue.subscribe != NULL)
        counted->wait_queue.subscribe = counted_listen;
    counted->wait_queue.leave = counted_leave;
    counted->driver.wait_queue = &counted->wait_queue;
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
