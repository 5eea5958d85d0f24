/*
 * store.h - a lock table that can be reached: database, table, layout,
 * statements, region and the identity of its holder
 *
 * Leases, transactions, stock and administration work on a store.  A registry
 * begins with one and adds threads, locks and waiters, which none of them
 * knows.
 */
#ifndef LK_STORE_H
#define LK_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/service.h"
#include "db/db.h"
#include "db/table.h"
#include "lease/options.h"
#include "lease/resolver.h"
#include "sqlock.h"
#include "sqlock/event.h"

#define LK_HOLDER_SIZE 256 /* HOLDER VARCHAR(255): CLIENT_ID, ' ', identity */
#define LK_IDENTITY_SIZE (LK_HOLDER_SIZE - SQLOCK_KEY_SIZE)

/* Whether the sessions of a store's connections are their own. */
enum lk_own_sessions {
    LK_SESSIONS_UNKNOWN, /* nobody has asked yet */
    LK_SESSIONS_OWN,
    LK_SESSIONS_SHARED /* by a proxy: there is no wait queue */
};

/* Whether row locks hold on all nodes of the database. */
enum lk_row_lock_reach {
    LK_ROW_LOCKS_UNKNOWN, /* nobody has asked yet */
    LK_ROW_LOCKS_GLOBAL,
    LK_ROW_LOCKS_OF_NODE /* a cluster that certifies at the commit */
};

struct lk_store {
    pid_t pid; /* of the process that opened it, the only one to use it */
    sqlock_options options;
    char *region;                    /* options' strings are copies */
    char identity[LK_IDENTITY_SIZE]; /* "user@host pid command (note)" */
    sqlock_layout layout;
    struct lk_table table;
    struct lk_db db;
    struct lk_statement statements[SQLOCK_SQL_KINDS];
    /* Runs statements that no call waits for, one at a time and in turns: those
     * of the resolver, and those of the poller (src/wait). */
    struct lk_service background;
    struct lk_resolver resolver;
    /* When the last statement began that had all its time in vain, 0 once one
     * was answered; and when closing began, or 0.  CLOCK_MONOTONIC. */
    _Atomic int64_t in_vain_since_ns;
    _Atomic int64_t closing_since_ns;
    _Atomic int64_t skew_told_ns; /* when a row was told of (skew.h); 0 */
    pthread_mutex_t mutex;        /* of what follows; no other within it */
    enum lk_own_sessions own_sessions;
    enum lk_row_lock_reach row_locks;
    char *database_identity; /* of server and table, once a transaction asked */
};

/* A store that is closed; lk_store_clear() may follow whatever comes next. */
void lk_store_init(struct lk_store *store);

/* Connect, find the table and read it once.  0, or as
 * sqlock_registry_open(). */
int lk_store_open(struct lk_store *store, const char *url,
                  const sqlock_options *options, sqlock_error *err);

/* End its connections.  All that uses the store has ended. */
void lk_store_clear(struct lk_store *store);

/* Check that this process may use the store: 0, EFORK. */
int lk_store_check(const struct lk_store *store, sqlock_error *err);

/* The store that a registry begins with: 0, EINVAL (NULL), EFORK. */
int lk_store_of(sqlock_registry *registry, struct lk_store **out,
                sqlock_error *err);

/* Return the number of a key's wait queue, from table, region and key. */
int64_t lk_queue_number(const struct lk_store *store, const char *key);

/* Return the number of a key's wait queue in another region of the table. */
int64_t lk_queue_number_in(const struct lk_store *store, const char *region,
                           const char *key);

/* The arguments that every statement about a key of this store has. */
void lk_store_arguments(const struct lk_store *store, const char *key,
                        struct lk_arguments *out);

/* Return the deadline of a statement that is sent now. */
int64_t lk_store_deadline(const struct lk_store *store);

/* Run a statement of the store.  The result is to be cleared.
 *
 * An outage is shared: once a statement has had all its time in vain that began
 * after another was asked for (lk_run.asked_ns, or with all of them when the
 * registry began to close), that one is told EUNREACHABLE at once. */
int lk_store_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Whether the application wants to be told of such events. */
bool lk_store_tells(const struct lk_store *store, sqlock_event_kind kind);

/* Tell it: of `event` kind, lock, key, token and code count. */
void lk_store_tell(const struct lk_store *store, const sqlock_event *event,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
