/*
 * peer.c - see peer.h
 */
#include "peer.h"

#include <stdio.h>

/* SQL of this Spring: the time column that decides expiry, the value that it
 * writes there, the limit before which a row has expired, and the present
 * time. */
struct terms {
    const char *column;
    char written[160];
    char limit[160];
    char now[160];
};

static void terms_of(const struct peer *peer, struct terms *terms)
{
    bool four = peer->fixture->layout == SQLOCK_LAYOUT_SPRING6;
    int64_t ttl_us = (int64_t)peer->ttl_ms * 1000;

    terms->column = four ? "CREATED_DATE" : "EXPIRED_AFTER";
    (void)fixture_time(peer->fixture, terms->written, four ? 0 : ttl_us);
    (void)fixture_time(peer->fixture, terms->limit, four ? -ttl_us : 0);
    (void)fixture_time(peer->fixture, terms->now, 0);
}

static void key_of(const char *name, char key[SQLOCK_KEY_SIZE])
{
    if (sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, NULL) < 0)
        key[0] = '\0';
}

static int update(const struct peer *peer, const struct terms *terms,
                  const char *key, int64_t *affected)
{
    return sql_try(peer->sql, affected,
                   "UPDATE %s SET CLIENT_ID = '%s', %s = %s"
                   " WHERE REGION = 'DEFAULT' AND LOCK_KEY = '%s'"
                   " AND (CLIENT_ID = '%s' OR %s < %s)",
                   peer->fixture->table, peer->client, terms->column,
                   terms->written, key, peer->client, terms->column,
                   terms->limit);
}

static int insert(const struct peer *peer, const struct terms *terms,
                  const char *key)
{
    bool four = peer->fixture->layout == SQLOCK_LAYOUT_SPRING6;

    return sql_try(peer->sql, NULL,
                   "INSERT INTO %s (REGION, LOCK_KEY, CLIENT_ID,"
                   " CREATED_DATE%s) VALUES ('DEFAULT', '%s', '%s', %s%s%s)",
                   peer->fixture->table, four ? "" : ", EXPIRED_AFTER", key,
                   peer->client, terms->now, four ? "" : ", ",
                   four ? "" : terms->written);
}

int peer_acquire(const struct peer *peer, const char *name)
{
    struct terms terms;
    char key[SQLOCK_KEY_SIZE];
    int64_t affected = 0;
    int rc;

    key_of(name, key);
    terms_of(peer, &terms);
    rc = sql_begin(peer->sql);
    if (rc < 0)
        return rc;
    rc = update(peer, &terms, key, &affected);
    if (rc == 0 && affected == 0)
        rc = insert(peer, &terms, key);
    if (rc == 0)
        rc = sql_commit(peer->sql);
    if (rc == 0)
        return 1;
    (void)sql_rollback(peer->sql);
    /* EBUSY, a duplicate key: another holder has the row. */
    return rc == SQLOCK_EBUSY ? 0 : rc;
}

/* Change the service's own row of that name; return as peer_release(). */
static int change_own(const struct peer *peer, const char *name,
                      const char *change)
{
    char key[SQLOCK_KEY_SIZE];
    int64_t affected = 0;
    int rc;

    key_of(name, key);
    rc = sql_try(peer->sql, &affected,
                 "%s WHERE REGION = 'DEFAULT' AND LOCK_KEY = '%s'"
                 " AND CLIENT_ID = '%s'",
                 change, key, peer->client);
    return rc < 0 ? rc : (int)affected;
}

int peer_release(const struct peer *peer, const char *name)
{
    char change[80];

    (void)snprintf(change, sizeof change, "DELETE FROM %s",
                   peer->fixture->table);
    return change_own(peer, name, change);
}

int peer_renew(const struct peer *peer, const char *name)
{
    struct terms terms;
    char change[320];

    terms_of(peer, &terms);
    (void)snprintf(change, sizeof change, "UPDATE %s SET %s = %s",
                   peer->fixture->table, terms.column, terms.written);
    return change_own(peer, name, change);
}
