/*
 * bell.c - doorbells: whether there are any, and that of a lease.
 */
#include "locks/bell.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* The session of all claims, where there is one writer. */
#define THE_WRITER UINT64_MAX

const sqlock_doorbells *lk_doorbells_of(const sqlock_registry *registry)
{
    const sqlock_doorbells *bells = registry->db.driver->doorbells;

    if (bells == NULL || (bells->layouts & (1u << registry->layout)) == 0)
        return NULL;
    return bells;
}

static bool has_one_writer(const sqlock_registry *registry)
{
    return (registry->db.driver->capabilities & SQLOCK_CAP_ONE_WRITER) != 0;
}

int lk_bell_call(sqlock_registry *registry, struct lk_connection *connection,
                 lk_bell_fn function, int64_t bell, int64_t deadline_ns)
{
    int rc;

    lk_watchdog_arm(&registry->db.dog, &connection->watch, connection->state,
                    deadline_ns);
    rc = function(connection->state, bell, deadline_ns, NULL);
    lk_watchdog_disarm(&registry->db.dog, &connection->watch);
    return rc;
}

/* --- whose the sessions are --- */

static int name_session(sqlock_registry *registry,
                        struct lk_connection *connection, int64_t deadline_ns,
                        char out[64])
{
    const sqlock_statement statement = {.text =
                                            lk_doorbells_of(registry)->session};
    sqlock_result result = {0};
    int rc;

    rc = registry->db.driver->execute(connection->state, &statement, NULL, 0,
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

/* A proxy that lends a session for a transaction gives the one that was used
 * last to another connection's; that one keeps it, and ours comes to another. */
static enum lk_own_sessions compare_names(sqlock_registry *registry,
                                          struct lk_connection *one,
                                          struct lk_connection *other,
                                          int64_t deadline_ns)
{
    const sqlock_driver *driver = registry->db.driver;
    char before[64] = "";
    char theirs[64] = "";
    char after[64] = "";
    int rc;

    rc = name_session(registry, one, deadline_ns, before);
    if (rc == 0)
        rc = driver->begin(other->state, deadline_ns, NULL);
    if (rc < 0)
        return LK_SESSIONS_UNKNOWN;
    rc = name_session(registry, other, deadline_ns, theirs);
    if (rc == 0)
        rc = name_session(registry, one, deadline_ns, after);
    (void)driver->rollback(other->state, deadline_ns, NULL);
    if (rc < 0)
        return LK_SESSIONS_UNKNOWN;
    return strcmp(before, after) == 0 && strcmp(before, theirs) != 0
               ? LK_SESSIONS_OWN
               : LK_SESSIONS_SHARED;
}

static enum lk_own_sessions compare_sessions(sqlock_registry *registry,
                                             struct lk_connection *one,
                                             struct lk_connection *other,
                                             int64_t deadline_ns)
{
    struct lk_watchdog *dog = &registry->db.dog;
    enum lk_own_sessions found;

    lk_watchdog_arm(dog, &one->watch, one->state, deadline_ns);
    lk_watchdog_arm(dog, &other->watch, other->state, deadline_ns);
    found = compare_names(registry, one, other, deadline_ns);
    lk_watchdog_disarm(dog, &other->watch);
    lk_watchdog_disarm(dog, &one->watch);
    return found;
}

/* Where others use the proxy, too, one comparison may find what it would find
 * without a proxy; so many do not. */
static enum lk_own_sessions find_out_sessions(sqlock_registry *registry,
                                              struct lk_connection *one,
                                              struct lk_connection *other,
                                              int64_t deadline_ns)
{
    enum lk_own_sessions found = LK_SESSIONS_OWN;

    for (int i = 0; i < COMPARISONS && found == LK_SESSIONS_OWN; i++)
        found = compare_sessions(registry, one, other, deadline_ns);
    return found;
}

void lk_bell_put_back(struct lk_pool *pool, struct lk_connection *connection)
{
    if (pool->driver->is_alive(connection->state))
        lk_pool_give(pool, connection);
    else
        lk_pool_discard(pool, connection);
}

bool lk_bell_has_own_sessions(sqlock_registry *registry,
                              struct lk_connection *connection,
                              int64_t deadline_ns)
{
    struct lk_pool *pool = &registry->db.pool;
    enum lk_own_sessions found;
    struct lk_connection *other;

    pthread_mutex_lock(&registry->mutex);
    found = lk_doorbells_of(registry)->session == NULL ? LK_SESSIONS_OWN
                                                       : registry->own_sessions;
    pthread_mutex_unlock(&registry->mutex);
    if (found != LK_SESSIONS_UNKNOWN)
        return found == LK_SESSIONS_OWN;
    if (lk_pool_try(pool, deadline_ns, &other, NULL) < 0)
        return false;
    found = find_out_sessions(registry, connection, other, deadline_ns);
    lk_bell_put_back(pool, other);
    pthread_mutex_lock(&registry->mutex);
    if (registry->own_sessions == LK_SESSIONS_UNKNOWN)
        registry->own_sessions = found;
    pthread_mutex_unlock(&registry->mutex);
    return found == LK_SESSIONS_OWN;
}

/* --- a lease --- */

bool lk_bell_is_of_claim(const sqlock_registry *registry)
{
    const sqlock_doorbells *bells = lk_doorbells_of(registry);

    return bells != NULL && bells->holders_have_it;
}

void lk_bell_of_claim(const sqlock_registry *registry, struct lk_bell *bell,
                      uint64_t session)
{
    bell->connection = NULL;
    bell->session = 0;
    if (lk_bell_is_of_claim(registry))
        bell->session = has_one_writer(registry) ? THE_WRITER : session;
}

/* The doorbell of a lease that was not rung by its release. */
static void give_up(sqlock_registry *registry, const char *key,
                    uint64_t session)
{
    struct lk_connection *writer;

    if (session != THE_WRITER) {
        lk_pool_forsake(&registry->db.pool, session);
        return;
    }
    if (lk_pool_take(&registry->db.reserved, lk_statement_deadline(registry),
                     &writer, NULL) < 0)
        return;
    (void)lk_bell_call(registry, writer, lk_doorbells_of(registry)->leave,
                       lk_bell_number(registry, key),
                       lk_statement_deadline(registry));
    lk_bell_put_back(&registry->db.reserved, writer);
}

int lk_bell_release(sqlock_registry *registry, const struct lk_bell *bell,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err)
{
    const struct lk_statement *own =
        &registry->statements[SQLOCK_SQL_RELEASE_BELL];

    if (has_one_writer(registry) ||
        !registry->db.driver->is_alive(bell->connection->state))
        return SQLOCK_EUNREACHABLE;
    run->statement =
        own->text != NULL ? own : &registry->statements[SQLOCK_SQL_RELEASE];
    return lk_db_run_on(&registry->db, bell->connection, run, result, err);
}

bool lk_bell_end(sqlock_registry *registry, const char *key,
                 struct lk_bell *bell, bool rang, bool is_outage)
{
    struct lk_connection *connection = bell->connection;

    if (connection != NULL) {
        if (!rang && !is_outage)
            is_outage = lk_bell_call(registry, connection,
                                     lk_doorbells_of(registry)->leave,
                                     lk_bell_number(registry, key),
                                     lk_statement_deadline(registry)) < 0;
        if (!rang && is_outage)
            lk_pool_discard(&registry->db.waiting, connection);
        else
            lk_bell_put_back(&registry->db.waiting, connection);
    } else if (!rang && bell->session != 0) {
        give_up(registry, key, bell->session);
    }
    bell->connection = NULL;
    bell->session = 0;
    return is_outage;
}
