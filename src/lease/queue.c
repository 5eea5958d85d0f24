/*
 * queue.c - the database's wait queue: whether it can be used, and the queue
 * lock of a lease
 */
#include "lease/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Stands for the session that sends all claims, where there is one writer. */
#define THE_WRITER UINT64_MAX

const sqlock_wait_queue *lk_wait_queue_of(const struct lk_store *store)
{
    const sqlock_wait_queue *wait_queue = store->db.driver->wait_queue;

    if (wait_queue == NULL ||
        (wait_queue->layouts & (1u << store->layout)) == 0)
        return NULL;
    return wait_queue;
}

static bool has_one_writer(const struct lk_store *store)
{
    return (store->db.driver->capabilities & SQLOCK_CAP_ONE_WRITER) != 0;
}

int lk_queue_call(struct lk_store *store, struct lk_connection *connection,
                  lk_queue_fn function, int64_t queue, int64_t deadline_ns)
{
    int rc;

    lk_watchdog_arm(&store->db.dog, &connection->watch, connection->state,
                    deadline_ns);
    rc = function(connection->state, queue, deadline_ns, NULL);
    lk_watchdog_disarm(&store->db.dog, &connection->watch);
    return rc;
}

/* --- whose the sessions are --- */

static int name_session(struct lk_store *store,
                        struct lk_connection *connection, int64_t deadline_ns,
                        char out[64])
{
    const sqlock_statement statement = {.text =
                                            lk_wait_queue_of(store)->session};
    sqlock_result result = {0};
    int rc;

    rc = store->db.driver->execute(connection->state, &statement, NULL, 0,
                                   deadline_ns, &result, NULL);
    if (rc == 0)
        (void)snprintf(out, 64, "%s",
                       result.rows == 1 && result.cells[0].type == SQLOCK_TEXT
                           ? result.cells[0].text
                           : "");
    sqlock_result_clear(&result);
    return rc;
}

#define COMPARISONS 8

/* Compare two sessions to detect a proxy.  A proxy that lends server sessions
 * to transactions gives the last one used to `other`, which keeps it; `one`
 * then gets a different session. */
static enum lk_own_sessions compare_names(struct lk_store *store,
                                          struct lk_connection *one,
                                          struct lk_connection *other,
                                          int64_t deadline_ns)
{
    const sqlock_driver *driver = store->db.driver;
    char before[64] = "";
    char theirs[64] = "";
    char after[64] = "";
    int rc;

    rc = name_session(store, one, deadline_ns, before);
    if (rc == 0)
        rc = driver->begin(other->state, deadline_ns, NULL);
    if (rc < 0)
        return LK_SESSIONS_UNKNOWN;
    rc = name_session(store, other, deadline_ns, theirs);
    if (rc == 0)
        rc = name_session(store, one, deadline_ns, after);
    (void)driver->rollback(other->state, deadline_ns, NULL);
    if (rc < 0)
        return LK_SESSIONS_UNKNOWN;
    return strcmp(before, after) == 0 && strcmp(before, theirs) != 0
               ? LK_SESSIONS_OWN
               : LK_SESSIONS_SHARED;
}

static enum lk_own_sessions compare_sessions(struct lk_store *store,
                                             struct lk_connection *one,
                                             struct lk_connection *other,
                                             int64_t deadline_ns)
{
    struct lk_watchdog *dog = &store->db.dog;
    enum lk_own_sessions found;

    lk_watchdog_arm(dog, &one->watch, one->state, deadline_ns);
    lk_watchdog_arm(dog, &other->watch, other->state, deadline_ns);
    found = compare_names(store, one, other, deadline_ns);
    lk_watchdog_disarm(dog, &other->watch);
    lk_watchdog_disarm(dog, &one->watch);
    return found;
}

/* Compare several times: with other clients on the proxy, a single comparison
 * may look as if there were no proxy. */
static enum lk_own_sessions find_out_sessions(struct lk_store *store,
                                              struct lk_connection *one,
                                              struct lk_connection *other,
                                              int64_t deadline_ns)
{
    enum lk_own_sessions found = LK_SESSIONS_OWN;

    for (int i = 0; i < COMPARISONS && found == LK_SESSIONS_OWN; i++)
        found = compare_sessions(store, one, other, deadline_ns);
    return found;
}

void lk_queue_put_back(struct lk_pool *pool, struct lk_connection *connection)
{
    if (pool->driver->is_alive(connection->state))
        lk_pool_give(pool, connection);
    else
        lk_pool_discard(pool, connection);
}

bool lk_queue_has_own_sessions(struct lk_store *store,
                               struct lk_connection *connection,
                               int64_t deadline_ns)
{
    struct lk_pool *pool = &store->db.pool;
    enum lk_own_sessions found;
    struct lk_connection *other;

    pthread_mutex_lock(&store->mutex);
    found = lk_wait_queue_of(store)->session == NULL ? LK_SESSIONS_OWN
                                                     : store->own_sessions;
    pthread_mutex_unlock(&store->mutex);
    if (found != LK_SESSIONS_UNKNOWN)
        return found == LK_SESSIONS_OWN;
    if (lk_pool_try(pool, deadline_ns, &other, NULL) < 0)
        return false;
    found = find_out_sessions(store, connection, other, deadline_ns);
    lk_queue_put_back(pool, other);
    pthread_mutex_lock(&store->mutex);
    if (store->own_sessions == LK_SESSIONS_UNKNOWN)
        store->own_sessions = found;
    pthread_mutex_unlock(&store->mutex);
    return found == LK_SESSIONS_OWN;
}

/* --- a lease --- */

bool lk_queue_is_of_claim(const struct lk_store *store)
{
    const sqlock_wait_queue *wait_queue = lk_wait_queue_of(store);

    return wait_queue != NULL && wait_queue->holders_keep_it;
}

void lk_queue_of_claim(const struct lk_store *store, struct lk_place *place,
                       uint64_t session)
{
    place->connection = NULL;
    place->session = 0;
    if (lk_queue_is_of_claim(store))
        place->session = has_one_writer(store) ? THE_WRITER : session;
}

/* Give up the queue lock of a lease whose release did not. */
static void give_up(struct lk_store *store, const char *key, uint64_t session)
{
    struct lk_connection *writer;

    if (session != THE_WRITER) {
        lk_pool_forsake(&store->db.pool, session);
        return;
    }
    if (lk_pool_take(&store->db.reserved, lk_store_deadline(store), &writer,
                     NULL) < 0)
        return;
    (void)lk_queue_call(store, writer, lk_wait_queue_of(store)->leave,
                        lk_queue_number(store, key), lk_store_deadline(store));
    lk_queue_put_back(&store->db.reserved, writer);
}

int lk_queue_release(struct lk_store *store, const struct lk_place *place,
                     struct lk_run *run, sqlock_result *result,
                     sqlock_error *err)
{
    const struct lk_statement *own =
        &store->statements[SQLOCK_SQL_RELEASE_NOTIFY];

    if (has_one_writer(store) ||
        !store->db.driver->is_alive(place->connection->state))
        return SQLOCK_EUNREACHABLE;
    run->statement =
        own->text != NULL ? own : &store->statements[SQLOCK_SQL_RELEASE];
    return lk_db_run_on(&store->db, place->connection, run, result, err);
}

bool lk_queue_end(struct lk_store *store, const char *key,
                  struct lk_place *place, bool has_notified, bool is_outage)
{
    struct lk_connection *connection = place->connection;

    if (connection != NULL) {
        if (!has_notified && !is_outage)
            is_outage =
                lk_queue_call(store, connection, lk_wait_queue_of(store)->leave,
                              lk_queue_number(store, key),
                              lk_store_deadline(store)) < 0;
        if (!has_notified && is_outage)
            lk_pool_discard(&store->db.waiting, connection);
        else
            lk_queue_put_back(&store->db.waiting, connection);
    } else if (!has_notified && place->session != 0) {
        give_up(store, key, place->session);
    }
    place->connection = NULL;
    place->session = 0;
    return is_outage;
}
