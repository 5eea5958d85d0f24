/*
 * adopt.c - join a transaction that the application has begun on its own
 * sqlite3 handle
 *
 * A file has one write lock, which excludes all other writers: to lock a name
 * or to guard a lease in a transaction is to take that lock.  Our SQL functions
 * and handlers are not installed on the application's handle, since SQLite
 * cannot say which ones to restore afterwards.  So times come from SQLite's own
 * functions, in ms.
 */
#include "base/error.h"
#include "drivers/sqlite/connection.h"

static int adopt(void *connection, void *native, sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    int rc;

    if (sqlite3_db_readonly(native, "main") < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "the SQLite connection is not open");
    rc = lk_sqlite_check_locks(native, err);
    if (rc < 0)
        return rc;
    if (pthread_mutex_init(&c->guard, NULL) != 0)
        return lk_error_nomem(err);
    c->db = native;
    c->is_adopted = true;
    lk_sqlite_turn_open(c);
    rc = lk_sqlite_check_identity(c, err);
    if (rc < 0) {
        lk_sqlite_turn_close(c);
        c->db = NULL;
        return rc;
    }
    atomic_store(&c->can_be_aborted, true);
    return 0;
}

/* Return whether a statement may be freed: the handle is the caller's to use,
 * or has a mutex of its own.  While it has statements it exists, closed or
 * not; and one that is left behind would keep a closed one open. */
static bool may_finalize(sqlite3_stmt *statement, bool may_use)
{
    return may_use || sqlite3_db_mutex(sqlite3_db_handle(statement)) != NULL;
}

static void unadopt(void *connection, bool may_use)
{
    struct lk_sqlite *c = connection;

    lk_sqlite_turn_close(c);
    (void)pthread_mutex_lock(&c->guard);
    c->db = NULL;
    (void)pthread_mutex_unlock(&c->guard);
    for (size_t i = 0; i < LK_SQLITE_STATEMENTS; i++) {
        if (c->prepared[i] != NULL && may_finalize(c->prepared[i], may_use))
            (void)sqlite3_finalize(c->prepared[i]);
        c->prepared[i] = NULL;
    }
    atomic_store(&c->can_be_aborted, false);
}

static sqlock_tx_state state(void *connection)
{
    const struct lk_sqlite *c = connection;

    if (c->db == NULL || c->is_broken)
        return SQLOCK_TX_GONE;
    return sqlite3_get_autocommit(c->db) != 0 ? SQLOCK_TX_NONE : SQLOCK_TX_OPEN;
}

/* Set the handle's busy timeout to 0, so that statements do not wait for the
 * file's lock, and keep the old value for unlimit().  If that is 0, there is
 * no timeout, or the application has a busy handler, which is left alone. */
static int limit(void *connection, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    sqlite3_stmt *statement = NULL;

    (void)wait_ms;
    (void)deadline_ns;
    c->busy_timeout_ms = 0;
    if (sqlite3_prepare_v2(c->db, "PRAGMA busy_timeout", -1, &statement,
                           NULL) != SQLITE_OK)
        return lk_sqlite_failure(c, err);
    if (sqlite3_step(statement) == SQLITE_ROW)
        c->busy_timeout_ms = sqlite3_column_int(statement, 0);
    (void)sqlite3_finalize(statement);
    if (c->busy_timeout_ms > 0)
        (void)sqlite3_busy_timeout(c->db, 0);
    return 0;
}

static int unlimit(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_sqlite *c = connection;

    (void)deadline_ns;
    (void)err;
    if (c->busy_timeout_ms > 0)
        (void)sqlite3_busy_timeout(c->db, c->busy_timeout_ms);
    c->busy_timeout_ms = 0;
    return 0;
}

/* clang-format off */
#define IN_US(date)                                                            \
    "CAST(round((julianday(" date ") - 2440587.5) * 86400000.0) "              \
    "AS INTEGER) * 1000"
/* 'now' is truncated to ms.  One ms is added, so that the time is never too
 * early: an expired lease is not guarded. */
#define NOW "(" IN_US("'now'") " + 1000)"
/* clang-format on */

const sqlock_transactions lk_sqlite_transactions = {
    .timestamp_us = IN_US("{column}"),
    .next_timestamp =
        "strftime('%Y-%m-%d %H:%M:%f', "
        "max(julianday('now'), julianday({column}) + 1.0 / 86400000))",
    .same_text = "{column} COLLATE BINARY = {value}",
    .adopt = adopt,
    .unadopt = unadopt,
    .state = state,
    .limit = limit,
    .unlimit = unlimit,
    .unprepares = true,
};
