/*
 * queue.c - find out whether the database's wait queue can be used, and give up
 * the queue lock of a lease
 */
#include "lease/queue.h"

#include "base/clock.h"

/* Number of the session that sends all claims, where there is one writer. */
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
    return store->db.driver->has_one_writer;
}

/* Ask the driver whether connection `one` has a server session of its own, by
 * comparing it with a second connection. */
static enum lk_own_sessions find_out_sessions(struct lk_store *store,
                                              struct lk_connection *one,
                                              int64_t deadline_ns)
{
    const struct lk_wish at_once = {.latest_ns = deadline_ns};
    struct lk_connection *other;
    int rc;

    if (lk_pool_take_as(&store->db.pool, &at_once, &other, NULL) < 0)
        return LK_SESSIONS_UNKNOWN;
    rc = lk_wait_queue_of(store)->has_own_session(one->state, other->state,
                                                  deadline_ns, NULL);
    lk_pool_return(&store->db.pool, other);
    if (rc == 0)
        return LK_SESSIONS_OWN;
    return rc == SQLOCK_EBUSY ? LK_SESSIONS_SHARED : LK_SESSIONS_UNKNOWN;
}

bool lk_queue_has_own_session(struct lk_store *store,
                              struct lk_connection *connection,
                              int64_t deadline_ns)
{
    enum lk_own_sessions found;

    if (lk_wait_queue_of(store)->has_own_session == NULL)
        return true;
    pthread_mutex_lock(&store->mutex);
    found = store->own_sessions;
    pthread_mutex_unlock(&store->mutex);
    if (found == LK_SESSIONS_UNKNOWN)
        found = find_out_sessions(store, connection, deadline_ns);
    pthread_mutex_lock(&store->mutex);
    if (store->own_sessions == LK_SESSIONS_UNKNOWN)
        store->own_sessions = found;
    pthread_mutex_unlock(&store->mutex);
    return found == LK_SESSIONS_OWN;
}

/* --- a lease --- */

/* Return whether claims take the queue lock for their sessions, so that a lease
 * is to be released on the session of its claim. */
static bool is_of_claim(const struct lk_store *store)
{
    const sqlock_wait_queue *wait_queue = lk_wait_queue_of(store);

    return wait_queue != NULL && wait_queue->holders_keep_it;
}

void lk_queue_of_claim(const struct lk_store *store, struct lk_place *place,
                       uint64_t session)
{
    if (is_of_claim(store))
        place->session = has_one_writer(store) ? THE_WRITER : session;
}

/* Give up the queue lock of a lease whose release did not do so: end its
 * session, or send a statement where there is one writer. */
static void give_up(struct lk_store *store, const char *key, uint64_t session)
{
    struct lk_connection *writer;

    if (session != THE_WRITER) {
        lk_db_forsake(&store->db, session);
        return;
    }
    if (lk_pool_take(&store->db.reserved, lk_store_deadline(store), &writer,
                     NULL) < 0)
        return;
    (void)lk_wait_queue_of(store)->leave(writer->state,
                                         lk_queue_number(store, key),
                                         lk_store_deadline(store), NULL);
    lk_pool_return(&store->db.reserved, writer);
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
            is_outage = lk_wait_queue_of(store)->leave(
                            connection->state, lk_queue_number(store, key),
                            lk_store_deadline(store), NULL) < 0;
        if (!has_notified && is_outage)
            lk_pool_discard(&store->db.waiting, connection);
        else
            lk_pool_return(&store->db.waiting, connection);
    } else if (!has_notified && place->session != 0) {
        give_up(store, key, place->session);
    }
    place->connection = NULL;
    place->session = 0;
    return is_outage;
}
