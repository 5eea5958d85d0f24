/*
 * take.c - take a connection of either pool: a lease is renewed and released
 * over any connection that can
 *
 * A session that is open may be able to do more than one that is opened later:
 * the login has lost its password or a right since, the server is full, or the
 * address leads to another one.  So a new connection has to carry out a write
 * first; what it refuses before is sent on one that has.
 */
#include "base/clock.h"
#include "db/db.h"

/* Return whether a statement of `pool` may be sent on a connection of the other
 * pool, where it cannot open one of its own because of rc. */
static bool may_borrow(const struct lk_db *db, const struct lk_pool *pool,
                       int rc)
{
    return rc < 0 && (pool == &db->reserved || !lk_is_outage(rc));
}

/* Take a connection that one of the pools has idle, or is given back until
 * until_ns; is_proven: one that has written. */
static int take_open(struct lk_pool *pool, const struct lk_wish *wish,
                     bool is_proven, int64_t until_ns,
                     struct lk_connection **out)
{
    const struct lk_wish open = {.wait_until_ns = until_ns,
                                 .latest_ns = until_ns,
                                 /* renewals go before releases */
                                 .is_urgent = !is_proven && wish->is_urgent &&
                                              pool == &pool->db->pool,
                                 .is_proven = is_proven,
                                 .is_open = true};

    return lk_pool_take_as(pool, &open, out, NULL);
}

static struct lk_pool *other_than(struct lk_db *db, const struct lk_pool *pool)
{
    return pool == &db->reserved ? &db->pool : &db->reserved;
}

int lk_db_take(struct lk_db *db, struct lk_pool *pool,
               const struct lk_wish *wish, struct lk_connection **out,
               sqlock_error *err)
{
    struct lk_pool *other = other_than(db, pool);
    int64_t begun_ns = sqlock_monotonic_ns();
    int64_t until_ns;
    int rc;

    if ((wish->is_wary || may_borrow(db, pool, lk_outage_lasts(&db->outage))) &&
        (take_open(pool, wish, wish->is_wary, begun_ns, out) == 0 ||
         take_open(other, wish, wish->is_wary, begun_ns, out) == 0))
        return 0;
    rc = lk_pool_take_as(pool, wish, out, err);
    if (!may_borrow(db, pool, rc))
        return rc;
    until_ns =
        lk_after_ns(wish->wait_until_ns, sqlock_monotonic_ns() - begun_ns);
    until_ns = lk_sooner(until_ns, wish->latest_ns);
    /* One is given back sooner to the pool that most statements use: in the
     * other, an attempt to connect that fails may be all that there is. */
    if (take_open(&db->reserved, wish, false, 0, out) < 0 &&
        take_open(&db->pool, wish, false, until_ns, out) < 0 &&
        take_open(&db->reserved, wish, false, until_ns, out) < 0)
        return rc;
    (*out)->late_ns = sqlock_monotonic_ns() - begun_ns;
    return 0;
}

bool lk_db_is_unproven(const struct lk_connection *connection, int rc)
{
    return rc < 0 && rc != SQLOCK_EBUSY && rc != SQLOCK_ERETRY &&
           rc != SQLOCK_ECANCELED && rc != SQLOCK_EUNCERTAIN &&
           !atomic_load(&connection->has_written);
}

bool lk_db_replace(struct lk_db *db, const struct lk_wish *wish, int rc,
                   struct lk_connection **connection)
{
    struct lk_pool *pool = (*connection)->pool;
    struct lk_pool *other = other_than(db, pool);
    struct lk_connection *better = NULL;
    int64_t until_ns = lk_sooner(wish->wait_until_ns, wish->latest_ns);

    if (!lk_db_is_unproven(*connection, rc) || !may_borrow(db, pool, rc))
        return false;
    if (take_open(pool, wish, true, 0, &better) < 0 &&
        take_open(other, wish, true, until_ns, &better) < 0 &&
        take_open(pool, wish, true, until_ns, &better) < 0)
        return false;
    lk_count(&db->stats, LK_COUNT_BROKEN);
    lk_pool_discard(pool, *connection);
    *connection = better;
    return true;
}
