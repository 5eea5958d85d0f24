/*
 * pool.h - a bounded handful of connections to one database
 *
 * A connection is taken, used by one thread, and given back, or discarded when
 * it is of no use any more.  Nothing is sent on taking one that is idle.
 */
#ifndef LK_POOL_H
#define LK_POOL_H

#include <pthread.h>

#include "db/epoch.h"
#include "db/watchdog.h"
#include "sqlock_driver.h"

struct lk_connection {
    struct lk_connection *next_idle;
    struct lk_watch watch;
    void *state;      /* the driver's */
    uint64_t number;  /* from 1, never twice in a pool */
    bool is_forsaken; /* under the pool's mutex */
    struct lk_connection *next_taken;
};

struct lk_pool_options {
    uint32_t size; /* connections at most */
    uint32_t connect_timeout_ms;
    uint32_t statement_timeout_ms;
    uint32_t lock_timeout_ms;
    bool may_create; /* as in sqlock_connect */
};

struct lk_pool {
    const sqlock_driver *driver;
    struct lk_watchdog *dog;
    struct lk_epoch *epoch; /* told of each new connection's */
    char *url;
    struct lk_pool_options options;
    pthread_mutex_t mutex;
    pthread_cond_t given_back;
    struct lk_connection *idle;
    uint32_t count; /* idle, taken and being opened */
    uint64_t last_number;
    struct lk_connection *taken;
};

/* Whether with that result of a call its connection is of no use any more, and
 * the database cannot be expected to answer now. */
bool lk_is_outage(int rc);

/* Opens nothing yet.  0, ENOMEM. */
int lk_pool_init(struct lk_pool *pool, const sqlock_driver *driver,
                 struct lk_watchdog *dog, struct lk_epoch *epoch,
                 const char *url, const struct lk_pool_options *options);

/* Ends the idle connections; none may be taken. */
void lk_pool_clear(struct lk_pool *pool);

/* 0, ERESOURCE (all in use until the deadline), or as the driver's open.
 * `preferred` is the number of the one that is taken if it is idle; 0: any. */
int lk_pool_take_one(struct lk_pool *pool, uint64_t preferred,
                     int64_t deadline_ns, struct lk_connection **out,
                     sqlock_error *err);
int lk_pool_take(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err);
void lk_pool_give(struct lk_pool *pool, struct lk_connection *connection);
/* The same, when it will be preferred again soon: others take it last. */
void lk_pool_lay_by(struct lk_pool *pool, struct lk_connection *connection);
/* The same, but without waiting for one: ERESOURCE. */
int lk_pool_try(struct lk_pool *pool, int64_t deadline_ns,
                struct lk_connection **out, sqlock_error *err);
/* End that connection, now or when it is given back. */
void lk_pool_forsake(struct lk_pool *pool, uint64_t number);
void lk_pool_discard(struct lk_pool *pool, struct lk_connection *connection);

#endif
