/*
 * pool.c - keep connections
 *
 * The connection used last is taken first, so that the others can stay idle.  A
 * server may have closed an idle connection (F45): taking it finds this out
 * without a round trip, and opens another one instead.
 */
#include "db/db.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/service.h"
#include "base/thread.h"

/* How long to wait for a connection in use before trying again to open one on a
 * server that is full. */
#define FULL_PAUSE_MS 50

bool lk_is_outage(int rc)
{
    return rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE;
}

void lk_pool_init(struct lk_pool *pool, struct lk_db *db,
                  const struct lk_pool_options *options)
{
    memset(pool, 0, sizeof *pool);
    pool->db = db;
    pool->options = *options;
    (void)pthread_mutex_init(&pool->mutex, NULL);
    lk_condition_init(&pool->given_back);
    lk_condition_init(&pool->returned);
    lk_condition_init(&pool->at_last);
}

static void free_connection(struct lk_pool *pool,
                            struct lk_connection *connection)
{
    if (connection == NULL)
        return;
    if (connection->state != NULL)
        pool->db->driver->close(connection->state);
    free(connection->state);
    free(connection);
}

void lk_pool_clear(struct lk_pool *pool)
{
    if (pool->db == NULL)
        return;
    while (pool->idle != NULL) {
        struct lk_connection *connection = pool->idle;

        pool->idle = connection->next_idle;
        free_connection(pool, connection);
    }
    (void)pthread_cond_destroy(&pool->given_back);
    (void)pthread_cond_destroy(&pool->returned);
    (void)pthread_cond_destroy(&pool->at_last);
    (void)pthread_mutex_destroy(&pool->mutex);
    pool->db = NULL;
}

/* Return the result of a failed attempt to connect: it is a limit where
 * descriptors are missing, whatever the client library makes of that. */
static int blame_limit(int rc, sqlock_error *err)
{
    int error = lk_error_descriptors_missing();

    bool may_be_limit = rc == SQLOCK_EUNREACHABLE || rc == SQLOCK_ERESOURCE ||
                        rc == SQLOCK_ENOMEM || rc == SQLOCK_EDATABASE;

    return error == 0 || !may_be_limit
               ? rc
               : lk_error_limit(err, "cannot open a connection", error);
}

static int open_connection(struct lk_pool *pool, int64_t deadline_ns,
                           struct lk_connection **out, sqlock_error *err)
{
    sqlock_connect how = {
        .deadline_ns = deadline_ns,
        .dog = &pool->db->dog,
        .statement_timeout_ms =
            lk_server_timeout_ms(pool->options.statement_timeout_ms),
        .lock_timeout_ms = pool->options.lock_timeout_ms,
        .idle_ms = pool->options.idle_ms,
        .may_create = pool->options.may_create,
        .was_there = lk_stats_count(&pool->db->stats, LK_COUNT_OPENED) > 0,
    };
    struct lk_connection *connection = calloc(1, sizeof *connection);
    int rc;

    if (connection == NULL)
        return lk_error_nomem(err);
    connection->state = calloc(1, pool->db->driver->connection_bytes);
    if (connection->state == NULL) {
        free(connection);
        return lk_error_nomem(err);
    }
    rc = pool->db->driver->open(connection->state, &pool->db->url, &how, err);
    /* No statement has been sent yet, so none is in doubt. */
    if (rc == SQLOCK_ECANCELED || rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "the database did not accept a connection in time");
    if (rc < 0) {
        free_connection(pool, connection);
        return blame_limit(rc, err);
    }
    *out = connection;
    return 0;
}

/* --- the caller holds the mutex --- */

static void signal_change(struct lk_pool *pool)
{
    if (pool->urgent > 0) {
        pthread_cond_broadcast(&pool->at_last);
        return;
    }
    /* That one may not want what has become free. */
    if (pool->choosy > 0 || pool->hearer_use != LK_HEARER_FREE)
        pthread_cond_broadcast(&pool->given_back);
    else
        pthread_cond_signal(&pool->given_back);
    pthread_cond_signal(&pool->returned);
}

static void note_taken(struct lk_pool *pool, struct lk_connection *connection)
{
    connection->next_taken = pool->taken;
    pool->taken = connection;
    lk_count(&pool->db->stats, LK_COUNT_TAKEN);
}

static void forget_taken(struct lk_pool *pool, struct lk_connection *connection)
{
    struct lk_connection **at = &pool->taken;

    while (*at != NULL && *at != connection)
        at = &(*at)->next_taken;
    if (*at != NULL) {
        *at = connection->next_taken;
        lk_count(&pool->db->stats, LK_COUNT_GIVEN);
    }
    if (connection->use == LK_USE_LENT)
        pool->lent--;
    else if (connection->use == LK_USE_KEPT)
        pool->kept--;
    connection->use = LK_USE_CALL;
}

/* Return how many connections the pool may have: its size, one more for
 * statements of locks while transactions have borrowed as many as the size, the
 * hearer, and those that are kept for leases, up to LK_POOL_KEPT_MAX. */
static uint32_t limit_of(const struct lk_pool *pool)
{
    uint32_t size = pool->options.size;

    return size + (pool->lent >= size ? 1 : 0) +
           (pool->hearer != NULL && pool->hearer_use != LK_HEARER_FREE ? 1
                                                                       : 0) +
           (pool->kept < LK_POOL_KEPT_MAX ? pool->kept : LK_POOL_KEPT_MAX);
}

/* Return whether the hearer may be taken. */
static bool may_use_hearer(const struct lk_pool *pool,
                           const struct lk_wish *wish)
{
    switch (pool->hearer_use) {
    case LK_HEARER_FREE:
        return !wish->is_lent;
    case LK_HEARER_BRIEF:
        return wish->is_brief || wish->is_open;
    case LK_HEARER_ALONE:
    default:
        return false;
    }
}

static bool is_wanted(const struct lk_connection *connection,
                      const struct lk_wish *wish)
{
    const struct lk_pool *pool = connection->pool;

    if (wish->hears && (wish->is_open || pool->hearer != NULL))
        return connection == pool->hearer;
    if (connection == pool->hearer && !may_use_hearer(pool, wish))
        return false;
    return !wish->is_proven || atomic_load(&connection->has_written);
}

/* Take the first idle connection that is wanted (NULL: any), or return NULL. */
static struct lk_connection *take_idle(struct lk_pool *pool,
                                       const struct lk_wish *wish)
{
    struct lk_connection **at = &pool->idle;
    struct lk_connection *connection;

    while (*at != NULL && wish != NULL && !is_wanted(*at, wish))
        at = &(*at)->next_idle;
    connection = *at;
    if (connection != NULL) {
        *at = connection->next_idle;
        if (wish != NULL && wish->hears)
            connection->use = LK_USE_HEARD;
        note_taken(pool, connection);
    }
    return connection;
}

/* Return whether one more may be opened.  The hearer is neither there for
 * transactions, nor in the way of a hearer. */
static bool may_open(const struct lk_pool *pool, const struct lk_wish *wish)
{
    bool is_beside = wish->hears || (wish->is_lent && pool->hearer != NULL &&
                                     pool->hearer_use == LK_HEARER_FREE);

    return !wish->is_open && pool->count < limit_of(pool) + (is_beside ? 1 : 0);
}

/* Take an idle connection into *out; or take the right to open one, and set
 * *out to NULL.  Return false if neither is possible. */
static bool find_place(struct lk_pool *pool, const struct lk_wish *wish,
                       struct lk_connection **out)
{
    *out = NULL;
    if (wish->is_lent && pool->lent >= pool->options.size)
        return false;
    if (pool->urgent > 0 && !wish->is_urgent && !wish->hears)
        return false;
    *out = take_idle(pool, wish);
    if (*out != NULL)
        return true;
    if (!may_open(pool, wish))
        return false;
    pool->count++;
    pool->opening++;
    return true;
}

/* Sleep until something may have changed, or until_ns. */
static void await_change(struct lk_pool *pool, const struct lk_wish *wish,
                         int64_t until_ns)
{
    struct timespec at = lk_timespec(until_ns);

    if (!wish->is_urgent) {
        pool->choosy += wish->is_open;
        (void)pthread_cond_timedwait(wish->is_lent ? &pool->returned
                                                   : &pool->given_back,
                                     &pool->mutex, &at);
        pool->choosy -= wish->is_open;
        return;
    }
    pool->urgent++;
    (void)pthread_cond_timedwait(&pool->at_last, &pool->mutex, &at);
    pool->urgent--;
}

/* Pass on to the others what became free while urgent threads waited, which
 * were woken for it. */
static void pass_on(struct lk_pool *pool)
{
    const struct lk_connection *at;

    if (pool->count < limit_of(pool))
        signal_change(pool);
    for (at = pool->idle; at != NULL; at = at->next_idle)
        signal_change(pool);
}

/* Return whether a connection as the wish wants it may be given back. */
static bool has_such(const struct lk_pool *pool, const struct lk_wish *wish)
{
    const struct lk_connection *at = pool->taken;

    while (at != NULL && ((wish->is_proven && at->use == LK_USE_LENT) ||
                          !is_wanted(at, wish)))
        at = at->next_taken;
    return at != NULL || (!wish->is_proven && pool->opening > 0);
}

/* As find_place(), and wait as long as the wish allows.  Return 0, and in
 * *begun_ns when the wait began, 0: there was none; or return SQLOCK_ERESOURCE
 * if neither became possible in time. */
static int wait_for_place(struct lk_pool *pool, const struct lk_wish *wish,
                          int64_t *begun_ns, struct lk_connection **out)
{
    int rc = 0;

    *begun_ns = 0;
    while (rc == 0 && !find_place(pool, wish, out)) {
        bool may_come = pool->opening > 0 && wish->wait_until_ns > 0;
        int64_t until_ns = may_come ? wish->latest_ns : wish->wait_until_ns;
        int64_t now = sqlock_monotonic_ns();

        if (*begun_ns == 0)
            *begun_ns = now;
        if (now >= until_ns || (wish->is_open && !has_such(pool, wish)))
            rc = SQLOCK_ERESOURCE;
        else
            await_change(pool, wish, until_ns);
    }
    if (wish->is_urgent && *begun_ns != 0)
        pass_on(pool);
    if (rc < 0)
        return rc;
    if (!wish->is_lent)
        return 0;
    pool->lent++;
    if (*out != NULL)
        (*out)->use = LK_USE_LENT;
    if (pool->lent >= pool->options.size) /* one more may be opened now */
        signal_change(pool);
    return 0;
}

/* --- taking and giving back --- */

/* Try to open a connection.  While the database is away, only one thread of the
 * registry tries at a time. */
static int try_to_open(struct lk_pool *pool, int64_t latest_ns,
                       struct lk_connection **out, sqlock_error *err)
{
    int64_t deadline_ns = lk_sooner(
        lk_after_ms(sqlock_monotonic_ns(), pool->options.connect_timeout_ms),
        latest_ns);
    sqlock_description description = {.connection_id = 0};
    uint32_t changes = atomic_load(&pool->db->epoch.changes);
    sqlock_error why = {0};
    int rc;

    rc = lk_outage_enter(&pool->db->outage, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = open_connection(pool, deadline_ns, out, &why);
    rc = lk_outage_leave(&pool->db->outage, rc, &why);
    if (rc < 0) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    pool->db->driver->describe((*out)->state, &description);
    atomic_store(&pool->is_narrow, description.is_narrow);
    atomic_store(&pool->returns_no_rows, description.returns_no_rows);
    if (!lk_epoch_note(&pool->db->epoch, description.epoch, &changes)) {
        free_connection(pool, *out);
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the login has ended at a server that was left for "
                        "another one meanwhile");
    }
    (*out)->changes = changes;
    lk_epoch_note_settings(&pool->db->epoch, description.forgets);
    return 0;
}

static int open_one(struct lk_pool *pool, const struct lk_wish *wish,
                    struct lk_connection **out, sqlock_error *err)
{
    int rc = try_to_open(pool, wish->latest_ns, out, err);

    pthread_mutex_lock(&pool->mutex);
    pool->opening--;
    if (rc == 0) {
        lk_count_opened(&pool->db->stats);
        (*out)->pool = pool;
        (*out)->use = wish->is_lent ? LK_USE_LENT : LK_USE_CALL;
        note_taken(pool, *out);
    } else {
        pool->count--;
        if (wish->is_lent)
            pool->lent--;
    }
    /* Wake all: threads past their deadline waited for this connection alone,
     * and give up now unless they get it. */
    pthread_cond_broadcast(&pool->given_back);
    pthread_cond_broadcast(&pool->returned);
    pthread_cond_broadcast(&pool->at_last);
    pthread_mutex_unlock(&pool->mutex);
    return rc;
}

bool lk_pool_is_usable(const struct lk_connection *connection)
{
    const struct lk_db *db = connection->pool->db;

    return connection->changes == atomic_load(&db->epoch.changes) &&
           db->driver->is_alive(connection->state);
}

/* Note how long the taker of a connection has waited since begun_ns, 0: not at
 * all.  It counts as late only if that was until after since_ns. */
static void note_delay(const struct lk_pool *pool,
                       struct lk_connection *connection, int64_t begun_ns,
                       int64_t since_ns)
{
    int64_t now = begun_ns != 0 ? sqlock_monotonic_ns() : 0;

    connection->late_ns = now > since_ns ? now - begun_ns : 0;
    lk_count_time(&pool->db->stats.pool_wait, now - begun_ns);
}

/* The server is full.  Wait a moment for one of the pool's connections to be
 * given back to a transaction, which is not begun again (lk_db_run() tries
 * others again).  Return false if there is no time left or none in use. */
static bool await_return(struct lk_pool *pool, const struct lk_wish *wish)
{
    int64_t until_ns = lk_sooner(
        wish->wait_until_ns, lk_after_ms(sqlock_monotonic_ns(), FULL_PAUSE_MS));
    struct timespec at = lk_timespec(until_ns);
    bool may_come;

    pthread_mutex_lock(&pool->mutex);
    may_come = wish->is_lent && pool->count > 0;
    if (may_come && pool->idle == NULL)
        (void)pthread_cond_timedwait(&pool->returned, &pool->mutex, &at);
    pthread_mutex_unlock(&pool->mutex);
    return may_come && sqlock_monotonic_ns() < wish->wait_until_ns;
}

int lk_pool_take_as(struct lk_pool *pool, const struct lk_wish *wish,
                    struct lk_connection **out, sqlock_error *err)
{
    for (;;) {
        struct lk_connection *connection;
        int64_t begun_ns;
        int rc;

        pthread_mutex_lock(&pool->mutex);
        rc = wait_for_place(pool, wish, &begun_ns, &connection);
        pthread_mutex_unlock(&pool->mutex);
        if (rc < 0)
            return lk_error(err, rc,
                            "all %u connections of this registry were in use "
                            "until the deadline: raise pool_size",
                            pool->options.size);
        if (connection == NULL) {
            if (begun_ns == 0)
                begun_ns = sqlock_monotonic_ns();
            rc = open_one(pool, wish, out, err);
            if (rc == 0)
                note_delay(pool, *out, begun_ns, begun_ns);
            if (rc == SQLOCK_ERESOURCE && await_return(pool, wish))
                continue;
            return rc;
        }
        /* Without the mutex, since is_alive() makes a system call. */
        if (lk_pool_is_usable(connection)) {
            note_delay(pool, connection, begun_ns,
                       wish->is_urgent ? begun_ns : wish->wait_until_ns);
            *out = connection;
            return 0;
        }
        lk_count(&pool->db->stats, LK_COUNT_BROKEN);
        lk_pool_discard(pool, connection);
    }
}

int lk_pool_take(struct lk_pool *pool, int64_t deadline_ns,
                 struct lk_connection **out, sqlock_error *err)
{
    const struct lk_wish wish = {
        .wait_until_ns = deadline_ns,
        .latest_ns = lk_after_ms(deadline_ns, pool->options.connect_timeout_ms),
    };

    return lk_pool_take_as(pool, &wish, out, err);
}

void lk_pool_keep(struct lk_pool *pool, struct lk_connection *connection)
{
    pthread_mutex_lock(&pool->mutex);
    connection->use = LK_USE_KEPT;
    pool->kept++;
    signal_change(pool);
    pthread_mutex_unlock(&pool->mutex);
}

/* Tell the bell, if it relies on that connection, that others have ended using
 * it, or have closed it.  The caller holds the mutex. */
static void tell(const struct lk_pool *pool,
                 const struct lk_connection *connection)
{
    if (connection == pool->hearer && connection->use != LK_USE_HEARD &&
        pool->hearer_use != LK_HEARER_FREE)
        lk_handler_wake(pool->ear);
}

/* Give a connection back, to be the next or the last one that is taken.  The
 * hearer is always the last. */
static void give(struct lk_pool *pool, struct lk_connection *connection,
                 bool puts_last)
{
    struct lk_connection **at = &pool->idle;
    bool was_kept;
    bool is_over; /* the connection is not to be used again */

    pthread_mutex_lock(&pool->mutex);
    was_kept = connection->use == LK_USE_KEPT;
    puts_last = puts_last || connection == pool->hearer;
    tell(pool, connection);
    forget_taken(pool, connection);
    is_over = was_kept && pool->count > limit_of(pool);
    if (!is_over) {
        while (puts_last && *at != NULL)
            at = &(*at)->next_idle;
        connection->next_idle = *at;
        *at = connection;
        signal_change(pool);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (is_over)
        lk_pool_discard(pool, connection);
}

void lk_pool_give(struct lk_pool *pool, struct lk_connection *connection)
{
    give(pool, connection, false);
}

void lk_pool_discard(struct lk_pool *pool, struct lk_connection *connection)
{
    pthread_mutex_lock(&pool->mutex);
    tell(pool, connection);
    if (connection == pool->hearer)
        pool->hearer = NULL;
    forget_taken(pool, connection);
    pthread_mutex_unlock(&pool->mutex);
    free_connection(pool, connection);
    lk_count(&pool->db->stats, LK_COUNT_CLOSED);
    pthread_mutex_lock(&pool->mutex);
    pool->count--;
    signal_change(pool);
    pthread_mutex_unlock(&pool->mutex);
}

/* Give a connection back, unless it is dead. */
static void give_if_alive(struct lk_pool *pool,
                          struct lk_connection *connection, bool puts_last)
{
    if (pool->db->driver->is_alive(connection->state)) {
        give(pool, connection, puts_last);
    } else {
        lk_count(&pool->db->stats, LK_COUNT_BROKEN);
        lk_pool_discard(pool, connection);
    }
}

void lk_pool_return(struct lk_pool *pool, struct lk_connection *connection)
{
    give_if_alive(pool, connection, false);
}

/* Take an idle connection, or return NULL. */
static struct lk_connection *take_any(struct lk_pool *pool)
{
    struct lk_connection *connection;

    pthread_mutex_lock(&pool->mutex);
    connection = take_idle(pool, NULL);
    pthread_mutex_unlock(&pool->mutex);
    return connection;
}

void lk_pool_drain(struct lk_pool *pool)
{
    struct lk_connection *connection;

    while ((connection = take_any(pool)) != NULL)
        lk_pool_discard(pool, connection);
}

static uint32_t count_idle(struct lk_pool *pool)
{
    uint32_t count = 0;

    pthread_mutex_lock(&pool->mutex);
    for (struct lk_connection *at = pool->idle; at != NULL; at = at->next_idle)
        count++;
    pthread_mutex_unlock(&pool->mutex);
    return count;
}

void lk_pool_sweep(struct lk_pool *pool)
{
    for (uint32_t left = count_idle(pool); left > 0; left--) {
        struct lk_connection *connection = take_any(pool);

        if (connection == NULL)
            return;
        give_if_alive(pool, connection, true); /* behind those to look at */
    }
}
