/*
 * pool.h - a bounded number of connections to one database
 *
 * A connection is taken, used by one thread, and given back, or discarded if it
 * is broken.  Taking an idle one sends nothing.
 */
#ifndef LK_POOL_H
#define LK_POOL_H

#include <pthread.h>

#include "base/stats.h"
#include "db/epoch.h"
#include "db/outage.h"
#include "db/watchdog.h"
#include "sqlock/driver.h"

/* The purpose of a connection that was taken. */
enum lk_use {
    LK_USE_CALL, /* one call, which gives it back soon */
    LK_USE_LENT, /* a transaction, which took it by lk_pool_lend() */
    LK_USE_KEPT  /* a lease, for as long as it lasts: lk_pool_keep() */
};

/* This many kept connections do not count against the pool's size. */
#define LK_POOL_KEPT_MAX 16

struct lk_connection {
    struct lk_connection *next_idle;
    struct lk_watch watch;
    void *state;     /* the driver's */
    uint64_t number; /* from 1, unique in the pool */
    int64_t late_ns; /* how long its taker waited for it to be opened */
    /* guarded by the pool's mutex */
    enum lk_use use;
    bool is_forsaken;
    struct lk_connection *next_taken;
};

struct lk_pool_options {
    uint32_t size; /* connections at most */
    uint32_t connect_timeout_ms;
    /* as connect_timeout_ms, for renewals; 0: the same */
    uint32_t renewal_connect_ms;
    uint32_t statement_timeout_ms;
    uint32_t lock_timeout_ms;
    bool may_create; /* as in sqlock_connect */
};

struct lk_pool {
    const sqlock_driver *driver;
    struct lk_watchdog *dog;
    struct lk_epoch *epoch; /* gets the epoch of each new connection */
    struct lk_outage *outage;
    struct lk_stats *stats;
    char *url;
    struct lk_pool_options options;
    pthread_mutex_t mutex;
    pthread_cond_t given_back; /* wakes those who take one */
    pthread_cond_t returned;   /* wakes those who want one lent */
    struct lk_connection *idle;
    uint32_t opening; /* of these, being opened */
    uint32_t count;   /* idle, taken and being opened */
    uint32_t lent;    /* at most `size`, while `count` may be one more */
    /* at most LK_POOL_KEPT_MAX; `count` may exceed `size` by as many */
    uint32_t kept;
    uint64_t last_number;
    struct lk_connection *taken;
};

/* Tell whether a result means that the connection is broken and the database
 * cannot be expected to answer now. */
bool lk_is_outage(int rc);

/* Initialize a pool, without opening a connection. 0, ENOMEM. */
int lk_pool_init(struct lk_pool *pool, const sqlock_driver *driver,
                 struct lk_watchdog *dog, struct lk_epoch *epoch,
                 struct lk_outage *outage, struct lk_stats *stats,
                 const char *url, const struct lk_pool_options *options);

/* End the idle connections, and free the pool.  No connection may be taken. */
void lk_pool_clear(struct lk_pool *pool);

/* Take a connection: 0, ERESOURCE (all in use until the deadline), or a result
 * of the driver's open.  `preferred` is the number of the one to take if it is
 * idle; 0: any.  Opening one, or waiting for one that is being opened, has
 * connect_timeout_ms of its own, whatever the deadline, but ends at latest_ns;
 * the connection's late_ns tells how long it took. */
int lk_pool_take_one(struct lk_pool *pool, uint64_t preferred,
                     int64_t deadline_ns, int64_t latest_ns,
                     struct lk_connection **out, sqlock_error *err);
int lk_pool_take(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err);
/* Take a connection for long, while its taker's other calls may take more. When
 * all are lent, the pool opens one above its size, which is never lent, so that
 * those calls can finish. */
int lk_pool_lend(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err);
/* Keep a taken connection in use for long, without counting it against the
 * pool's size.  It is given back or discarded like any other. */
void lk_pool_keep(struct lk_pool *pool, struct lk_connection *connection);
void lk_pool_give(struct lk_pool *pool, struct lk_connection *connection);
/* Give a connection back, or discard it if it is broken. */
void lk_pool_return(struct lk_pool *pool, struct lk_connection *connection);
/* Give back a connection that its user will soon prefer: others take it
 * last. */
void lk_pool_lay_by(struct lk_pool *pool, struct lk_connection *connection);
/* Take a connection without waiting for one in use: ERESOURCE. */
int lk_pool_try(struct lk_pool *pool, int64_t latest_ns,
                struct lk_connection **out, sqlock_error *err);
/* End the connection with that number, now or when it is given back. */
void lk_pool_forsake(struct lk_pool *pool, uint64_t number);
/* End the idle connections. */
void lk_pool_drain(struct lk_pool *pool);
void lk_pool_discard(struct lk_pool *pool, struct lk_connection *connection);

#endif
