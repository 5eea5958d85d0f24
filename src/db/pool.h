/*
 * pool.h - a bounded number of connections to one database
 *
 * A thread takes a connection, uses it, and gives it back, or discards it if it
 * is broken.  Taking an idle connection sends nothing.
 */
#ifndef LK_POOL_H
#define LK_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "db/driver.h"

struct lk_db;
struct lk_handler;

/* The purpose of a connection that was taken. */
enum lk_use {
    LK_USE_CALL, /* one call, which gives it back soon */
    LK_USE_LENT, /* a transaction: lk_wish.is_lent */
    LK_USE_KEPT, /* a lease, for as long as it lasts: lk_pool_keep() */
    LK_USE_HEARD /* to read its rings: lk_wish.hears */
};

/* The other uses of the connection that hears rings. */
enum lk_hearer_use {
    LK_HEARER_FREE,  /* nobody waits for a ring: all but the application's
                        transactions, if no other connection is idle */
    LK_HEARER_BRIEF, /* statements that read, likewise; and what may open none.
                        It does not count against the pool's size */
    LK_HEARER_ALONE  /* nothing, as the driver demands; likewise */
};

/* This many kept connections do not count against the pool's size. */
#define LK_POOL_KEPT_MAX 16

struct lk_connection {
    struct lk_connection *next_idle;
    struct lk_pool *pool;
    void *state; /* the driver's */
    /* how long its taker waited, if that was for a connection to be opened;
     * otherwise about 0 */
    int64_t late_ns;
    /* a statement that writes has succeeded on it: lk_db_take() */
    atomic_bool has_written;
    bool is_checked;  /* lk_epoch.check has found that it may grant leases */
    uint32_t changes; /* of the epoch, until it was opened, or checked */
    /* guarded by the pool's mutex */
    enum lk_use use;
    struct lk_connection *next_taken;
};

/* The time after which the server ends a statement that the client gives up
 * after statement_timeout_ms: earlier, so that the server does not carry out a
 * claim later that the client has given up (F39). */
static inline uint32_t lk_server_timeout_ms(uint32_t statement_timeout_ms)
{
    return (uint32_t)((uint64_t)statement_timeout_ms * 9 / 10);
}

struct lk_pool_options {
    uint32_t size; /* connections at most */
    uint32_t connect_timeout_ms;
    /* as connect_timeout_ms, for renewals; 0: the same */
    uint32_t renewal_connect_ms;
    uint32_t statement_timeout_ms;
    uint32_t lock_timeout_ms;
    uint32_t idle_ms; /* as in sqlock_connect */
    bool may_create;  /* as in sqlock_connect */
};

struct lk_pool {
    struct lk_db *db; /* whose pool it is: driver, URL, epoch, outage, stats */
    struct lk_pool_options options;
    pthread_mutex_t mutex;
    pthread_cond_t given_back; /* wakes threads that take */
    uint32_t choosy;           /* of those: how many may open none */
    pthread_cond_t returned;   /* wakes threads that borrow: is_lent */
    pthread_cond_t at_last;    /* wakes threads that go before these */
    uint32_t urgent;           /* of those: how many wait */
    struct lk_connection *idle;
    uint32_t opening; /* connections that are being opened */
    uint32_t count;   /* of all: idle, taken and being opened */
    uint32_t lent;    /* at most `size`, while `count` may be one more */
    /* kept for leases; LK_POOL_KEPT_MAX of them do not count against `size` */
    uint32_t kept;
    struct lk_connection *taken;
    /* one of the connections: lk_pool_hear(); NULL: none */
    struct lk_connection *hearer;
    enum lk_hearer_use hearer_use;
    struct lk_handler *ear; /* woken when somebody has used or lost it */
    /* as the last one that was opened says (sqlock_description) */
    atomic_bool is_narrow, returns_no_rows;
};

/* Return whether a result means that the connection is broken and the database
 * cannot be expected to answer now. */
bool lk_is_outage(int rc);

/* Initialize a pool of the database, without opening a connection.  `options`
 * is copied. */
void lk_pool_init(struct lk_pool *pool, struct lk_db *db,
                  const struct lk_pool_options *options);

/* Close the idle connections, and free the pool.  The caller has given back or
 * discarded all others.  A pool that is all zero, or was cleared, is left as it
 * is. */
void lk_pool_clear(struct lk_pool *pool);

/* How to take a connection. */
struct lk_wish {
    /* CLOCK_MONOTONIC: until when to wait for one in use; 0: do not wait */
    int64_t wait_until_ns;
    /* until when to wait for one to be opened, connect_timeout_ms at most,
     * whatever wait_until_ns is; the time taken is stored in late_ns */
    int64_t latest_ns;
    /* for a transaction during which other calls of the thread may take more:
     * while `size` connections are lent, the pool opens one more, which is
     * never lent, so that those calls can finish */
    bool is_lent;
    bool is_open; /* open none */
    /* rather than open one, take one that has_written, of either pool
     * (lk_db_take()) */
    bool is_wary;
    bool is_proven; /* take only one that has_written; with is_open */
    bool is_brief;  /* for a statement that waits for no row lock */
    /* take the hearer alone; if there is none, any, but none with is_open */
    bool hears;
    /* go before all that are not urgent, and count all waiting in late_ns */
    bool is_urgent;
};

/* Return whether a taken or kept connection can be used: it is alive, and no
 * other server has answered since it was opened or checked.  A lease that is
 * renewed on a server that others have left keeps nobody from the lock. */
bool lk_pool_is_usable(const struct lk_connection *connection);

/* Take a connection.  Return 0; SQLOCK_ERESOURCE if all were in use until the
 * deadline, or, with is_open, at once if the pool has no such; or a result of
 * the driver's open.  Give the connection back by a function below. */
int lk_pool_take_as(struct lk_pool *pool, const struct lk_wish *wish,
                    struct lk_connection **out, sqlock_error *err);
/* Take any connection; latest_ns is connect_timeout_ms after the deadline. */
int lk_pool_take(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err);
/* Let a taken connection be the hearer, and a handler be woken when others have
 * used or lost it while it is not FREE. */
void lk_pool_hear(struct lk_pool *pool, struct lk_connection *connection,
                  struct lk_handler *ear);
/* Set what the hearer is used for, also one that comes later. */
void lk_pool_use_hearer(struct lk_pool *pool, enum lk_hearer_use use);
bool lk_pool_has_hearer(struct lk_pool *pool);
/* Keep a taken connection for a lease, without counting it against the pool's
 * size.  It is given back or discarded like any other. */
void lk_pool_keep(struct lk_pool *pool, struct lk_connection *connection);
/* Give back a connection that is not broken. */
void lk_pool_give(struct lk_pool *pool, struct lk_connection *connection);
/* Give a connection back, or discard it if it is broken. */
void lk_pool_return(struct lk_pool *pool, struct lk_connection *connection);
/* Close the idle connections. */
void lk_pool_drain(struct lk_pool *pool);
/* Close the idle connections that are not alive. */
void lk_pool_sweep(struct lk_pool *pool);
/* Close a taken connection, and free it. */
void lk_pool_discard(struct lk_pool *pool, struct lk_connection *connection);

#endif
