/*
 * pool.c - keeping connections.  The one used last is taken first, so that the
 * rest can go idle; but last of all the one that somebody will ask for.  A server may have closed an idle one (F45): that shows
 * without a round trip, and another is opened instead.
 */
#include "db/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

bool lk_is_outage(int rc)
{
    return rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE;
}

int lk_pool_init(struct lk_pool *pool, const sqlock_driver *driver,
                 struct lk_watchdog *dog, struct lk_epoch *epoch,
                 const char *url, const struct lk_pool_options *options)
{
    memset(pool, 0, sizeof *pool);
    pool->url = strdup(url);
    if (pool->url == NULL)
        return SQLOCK_ENOMEM;
    pool->driver = driver;
    pool->dog = dog;
    pool->epoch = epoch;
    pool->options = *options;
    (void)pthread_mutex_init(&pool->mutex, NULL);
    lk_condition_init(&pool->given_back);
    return 0;
}

static void free_connection(struct lk_pool *pool,
                            struct lk_connection *connection)
{
    if (connection == NULL)
        return;
    if (connection->state != NULL)
        pool->driver->close(connection->state);
    free(connection->state);
    free(connection);
}

void lk_pool_clear(struct lk_pool *pool)
{
    if (pool->url == NULL)
        return;
    while (pool->idle != NULL) {
        struct lk_connection *connection = pool->idle;

        pool->idle = connection->next_idle;
        free_connection(pool, connection);
    }
    (void)pthread_cond_destroy(&pool->given_back);
    (void)pthread_mutex_destroy(&pool->mutex);
    explicit_bzero(pool->url, strlen(pool->url)); /* it may have a password */
    free(pool->url);
    pool->url = NULL;
}

static int open_connection(struct lk_pool *pool, int64_t deadline_ns,
                           struct lk_connection **out, sqlock_error *err)
{
    int64_t latest =
        lk_after_ms(sqlock_monotonic_ns(), pool->options.connect_timeout_ms);
    sqlock_connect how = {
        .size = sizeof how,
        .deadline_ns = lk_sooner(deadline_ns, latest),
        /* The server gives up before the client does, so that a claim that
         * was given up here does not go through there (F39). */
        .statement_timeout_ms = pool->options.statement_timeout_ms * 9 / 10,
        .lock_timeout_ms = pool->options.lock_timeout_ms,
        .may_create = pool->options.may_create,
    };
    struct lk_connection *connection = calloc(1, sizeof *connection);
    int rc;

    if (connection == NULL)
        return lk_error_nomem(err);
    connection->state = calloc(1, pool->driver->connection_bytes);
    if (connection->state == NULL) {
        free(connection);
        return lk_error_nomem(err);
    }
    lk_watchdog_arm(pool->dog, &connection->watch, connection->state,
                    how.deadline_ns);
    rc = pool->driver->open(connection->state, pool->url, &how, err);
    lk_watchdog_disarm(pool->dog, &connection->watch);
    /* Nothing of ours has been sent yet, whatever ended it. */
    if (rc == SQLOCK_ECANCELED || rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "the database did not answer in time to a connection");
    if (rc < 0) {
        free_connection(pool, connection);
        return rc;
    }
    *out = connection;
    return 0;
}

/* Called with the mutex held, both. */
static void note_taken(struct lk_pool *pool, struct lk_connection *connection)
{
    connection->next_taken = pool->taken;
    pool->taken = connection;
}

static void forget_taken(struct lk_pool *pool,
                         const struct lk_connection *connection)
{
    struct lk_connection **at = &pool->taken;

    while (*at != NULL && *at != connection)
        at = &(*at)->next_taken;
    if (*at != NULL)
        *at = connection->next_taken;
}

/* Called with the mutex held. */
static struct lk_connection *take_idle(struct lk_pool *pool, uint64_t preferred)
{
    struct lk_connection **at = &pool->idle;
    struct lk_connection *connection;

    while (preferred != 0 && *at != NULL && (*at)->number != preferred)
        at = &(*at)->next_idle;
    if (*at == NULL)
        at = &pool->idle;
    connection = *at;
    if (connection != NULL) {
        *at = connection->next_idle;
        note_taken(pool, connection);
    }
    return connection;
}

/* Called with the mutex held: an idle connection, or NULL and the right to open
 * one. */
static int wait_for_place(struct lk_pool *pool, uint64_t preferred,
                          int64_t deadline_ns, struct lk_connection **out)
{
    struct timespec at = lk_timespec(deadline_ns);

    for (;;) {
        *out = take_idle(pool, preferred);
        if (*out != NULL)
            return 0;
        if (pool->count < pool->options.size) {
            pool->count++;
            return 0;
        }
        if (pthread_cond_timedwait(&pool->given_back, &pool->mutex, &at) ==
            ETIMEDOUT)
            return SQLOCK_ERESOURCE;
    }
}

static int open_one(struct lk_pool *pool, int64_t deadline_ns,
                    struct lk_connection **out, sqlock_error *err)
{
    int rc = open_connection(pool, deadline_ns, out, err);
    sqlock_description description;

    if (rc == 0) {
        pool->driver->describe((*out)->state, &description);
        lk_epoch_note(pool->epoch, description.epoch);
    }
    pthread_mutex_lock(&pool->mutex);
    if (rc == 0) {
        (*out)->number = ++pool->last_number;
        note_taken(pool, *out);
    } else {
        pool->count--;
        pthread_cond_signal(&pool->given_back);
    }
    pthread_mutex_unlock(&pool->mutex);
    return rc;
}

static int take(struct lk_pool *pool, uint64_t preferred, int64_t wait_until_ns,
                int64_t deadline_ns, struct lk_connection **out,
                sqlock_error *err)
{
    for (;;) {
        struct lk_connection *connection;
        int rc;

        pthread_mutex_lock(&pool->mutex);
        rc = wait_for_place(pool, preferred, wait_until_ns, &connection);
        pthread_mutex_unlock(&pool->mutex);
        if (rc < 0)
            return lk_error(err, rc,
                            "all %u connections of this registry were in use "
                            "until the deadline: raise pool_size",
                            pool->options.size);
        if (connection == NULL)
            return open_one(pool, deadline_ns, out, err);
        /* Without the mutex: it asks the kernel. */
        if (pool->driver->is_alive(connection->state)) {
            *out = connection;
            return 0;
        }
        lk_pool_discard(pool, connection);
    }
}

int lk_pool_take_one(struct lk_pool *pool, uint64_t preferred,
                     int64_t deadline_ns, struct lk_connection **out,
                     sqlock_error *err)
{
    return take(pool, preferred, deadline_ns, deadline_ns, out, err);
}

int lk_pool_take(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err)
{
    return take(pool, 0, deadline_ns, deadline_ns, out, err);
}

int lk_pool_try(struct lk_pool *pool, int64_t deadline_ns,
                struct lk_connection **out, sqlock_error *err)
{
    return take(pool, 0, 0, deadline_ns, out, err);
}

static void give(struct lk_pool *pool, struct lk_connection *connection,
                 bool is_wanted_again)
{
    struct lk_connection **at = &pool->idle;
    bool is_forsaken;

    pthread_mutex_lock(&pool->mutex);
    is_forsaken = connection->is_forsaken;
    if (!is_forsaken) {
        forget_taken(pool, connection);
        while (is_wanted_again && *at != NULL)
            at = &(*at)->next_idle;
        connection->next_idle = *at;
        *at = connection;
        pthread_cond_signal(&pool->given_back);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (is_forsaken)
        lk_pool_discard(pool, connection);
}

void lk_pool_give(struct lk_pool *pool, struct lk_connection *connection)
{
    give(pool, connection, false);
}

void lk_pool_lay_by(struct lk_pool *pool, struct lk_connection *connection)
{
    give(pool, connection, true);
}

void lk_pool_forsake(struct lk_pool *pool, uint64_t number)
{
    struct lk_connection *connection = NULL;

    pthread_mutex_lock(&pool->mutex);
    for (struct lk_connection *at = pool->taken; at != NULL;
         at = at->next_taken)
        if (at->number == number)
            at->is_forsaken = true;
    for (struct lk_connection **at = &pool->idle; *at != NULL;
         at = &(*at)->next_idle)
        if ((*at)->number == number) {
            connection = *at;
            *at = connection->next_idle;
            note_taken(pool, connection);
            break;
        }
    pthread_mutex_unlock(&pool->mutex);
    if (connection != NULL)
        lk_pool_discard(pool, connection);
}

void lk_pool_discard(struct lk_pool *pool, struct lk_connection *connection)
{
    pthread_mutex_lock(&pool->mutex);
    forget_taken(pool, connection);
    pthread_mutex_unlock(&pool->mutex);
    free_connection(pool, connection);
    pthread_mutex_lock(&pool->mutex);
    pool->count--;
    pthread_cond_signal(&pool->given_back);
    pthread_mutex_unlock(&pool->mutex);
}
