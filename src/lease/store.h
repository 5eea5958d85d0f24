/*
 * store.h - an open lock table: database, table, layout, statements, region and
 * the identity of this process as a holder
 *
 * Leases, transactions, stock and administration work on a store.  A registry
 * begins with a store and adds threads, locks and waiters, which a store does
 * not know.
 */
#ifndef LK_STORE_H
#define LK_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/service.h"
#include "db/db.h"
#include "db/table.h"
#include "lease/together.h"
#include "lease/options.h"
#include "lease/resolver.h"
#include "sqlock.h"
#include "sqlock/event.h"

#define LK_HOLDER_SIZE 256 /* HOLDER VARCHAR(255): CLIENT_ID, ' ', identity */
#define LK_IDENTITY_SIZE (LK_HOLDER_SIZE - SQLOCK_KEY_SIZE)

/* The row of INT_LOCK_SERVER, as far as it is known (grace.h). */
struct lk_grace {
    bool is_kept;    /* the table is there, and this login may read it */
    bool is_written; /* ... and write it */
    atomic_bool sees_crashes;      /* the epoch changes with a crash, too */
    _Atomic int64_t longest_ms;    /* no lease is longer, by the row */
    _Atomic int64_t allowed_ms;    /* nor a new one than this */
    _Atomic int64_t allowed_at_ns; /* when that was read; 0: never */
    _Atomic int64_t looked_ns;     /* when the row was read, CLOCK_BOOTTIME */
    pthread_mutex_t mutex;         /* guards the following fields; innermost */
    char epoch[SQLOCK_EPOCH_SIZE]; /* for which it was read; "": for none */
    /* the server that was seen last, as the row names it */
    char server[SQLOCK_EPOCH_SIZE + 24];
    /* SINCE of the row that was read last, the latest of all, and until when a
     * server with an earlier one grants nothing, CLOCK_BOOTTIME */
    char newest[SQLOCK_EPOCH_SIZE];
    int64_t since_us, newest_us, older_until_ns;
};

/* Whether row locks exclude sessions on all nodes of the database. */
enum lk_row_lock_reach {
    LK_ROW_LOCKS_UNKNOWN, /* not tested yet */
    LK_ROW_LOCKS_GLOBAL,
    /* a cluster that detects conflicts only at commit */
    LK_ROW_LOCKS_OF_NODE
};

struct lk_store {
    /* the process that opened it, the only one that may use it */
    pid_t pid;
    sqlock_options options;
    char *region, *prefix;           /* `options` points to these copies */
    char identity[LK_IDENTITY_SIZE]; /* "user@host pid command (note)" */
    char number[14]; /* random: the first 13 bytes of its CLIENT_IDs */
    char acts_for[SQLOCK_KEY_SIZE]; /* sqlock_act_for(); "": nobody */
    atomic_uint client_ids;         /* how many were made */
    sqlock_layout layout;
    struct lk_table table;
    struct lk_db db;
    struct lk_statement statements[SQLOCK_SQL_KINDS];
    /* Runs the statements of the resolver and of the poller (src/lock), for
     * which no thread of the application waits, one after another. */
    struct lk_service background;
    struct lk_resolver resolver;
    struct lk_crew together; /* together.h */
    /* when the last statement began that timed out, CLOCK_MONOTONIC; 0 once a
     * later one was answered */
    _Atomic int64_t in_vain_since_ns;
    /* when the closing of the registry began, CLOCK_MONOTONIC; 0: not yet */
    _Atomic int64_t closing_since_ns;
    /* open transactions and stocks, which use the store until they end */
    atomic_uint users;
    struct lk_grace grace;
    pthread_mutex_t mutex; /* guards the following fields; innermost */
    enum lk_row_lock_reach row_locks;
    /* identity of server and table, read by the first transaction on a
     * connection of the application; NULL: not yet */
    char *database_identity;
    uint32_t identity_number; /* of this one among all that it has had */
    uint32_t identity_epoch;  /* the changes of the epoch until then */
};

/* Check that this thread may use the store.  Return 0; EFORK in a child of the
 * process that opened it; or EINUSE in a callback on_event of the store.
 * lk_store_ours(), for queries, does not look at callbacks. */
int lk_store_check(const struct lk_store *store, sqlock_error *err);
int lk_store_ours(const struct lk_store *store, sqlock_error *err);

/* Get the store that a registry begins with.  Return 0, EINVAL if the registry
 * is NULL, or as lk_store_check(). */
int lk_store_of(sqlock_registry *registry, struct lk_store **out,
                sqlock_error *err);

/* Get the store of a registry, and the key of a lock's name.  Return 0, EINVAL
 * if the registry is NULL or the name is invalid, or EFORK. */
int lk_store_key(sqlock_registry *registry, const char *name,
                 struct lk_store **out, char key[SQLOCK_KEY_SIZE],
                 sqlock_error *err);

/* Say that the table has one of Spring's layouts, whose locks cannot be shared,
 * and return ENOTSUP. */
int lk_store_unshared(const struct lk_store *store, sqlock_error *err);

/* Return whether waiters have tickets in the rows of this table. */
bool lk_store_has_tickets(const struct lk_store *store);

/* Return a number for a lock, from table, region and key. */
int64_t lk_lock_number(const struct lk_store *store, const char *key);

/* Fill in the arguments common to all statements about a key of this store.
 * The text of `key` is not copied. */
void lk_store_arguments(const struct lk_store *store, const char *key,
                        struct lk_arguments *out);

/* Return the deadline of a statement that is sent now. */
int64_t lk_store_deadline(const struct lk_store *store);

/* Run the statement of that kind, of which only the number of the rows that it
 * changed is wanted.  `run` has its settings, and a deadline if that is not the
 * usual one; NULL: it may be repeated.  Return the number, or as
 * lk_db_run(). */
int lk_store_change(struct lk_store *store, sqlock_statement_kind kind,
                    const struct lk_arguments *arguments, struct lk_run *run,
                    sqlock_error *err);

/* Run the statement of that kind, with the arguments and settings of `run`.
 * Results as lk_db_run().  Clear `result` afterwards.
 *
 * An outage is shared: if a statement timed out that began after this call was
 * requested (run->asked_ns), nothing is sent, and the result is EUNREACHABLE.
 * While the registry closes, the time when closing began counts instead. */
int lk_store_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err);

/* Make the CLIENT_ID of a claim for that owner: a UUID that begins with the
 * registry's number, is random up to its last group, and has there eight digits
 * that tell the owner, unless that is a registry, and four that count.  On the
 * layout of Spring 6 it is one of version 8, whose last nine digits are the
 * option peer_ttl_ms: by which TTL the row's CREATED_DATE tells the end of the
 * lease.  Spring's own are of version 4. */
void lk_store_client_id(struct lk_store *store, uint64_t owner,
                        char out[SQLOCK_KEY_SIZE]);

/* Return the mark of an owner of this registry, or of whom it acts for, in
 * CLIENT_IDs; and the mark in a CLIENT_ID. */
uint32_t lk_store_mark(const struct lk_store *store, uint64_t owner);
uint32_t lk_client_id_mark(const char *client_id);

/* Return whether lk_store_client_id() has made this CLIENT_ID with a TTL. */
bool lk_client_id_has_ttl(const char *client_id);

/* Make the CLIENT_ID for one who keeps a row of `from` taken until its end. */
void lk_store_client_id_like(char out[SQLOCK_KEY_SIZE], const char *from);

/* Copy a text that is only shown to people, a name or a holder, to out[size],
 * truncated to fit; escaped where the database's encoding lacks characters, so
 * that the text is not in the way of the statement. */
void lk_store_shown(const struct lk_store *store, char *out, size_t size,
                    const char *text);

/* Report an event to the application: call on_event, in this thread, with a
 * copy of `event`.  Set kind, lock, key, token and code before; the text is
 * made from `format`, the rest from the kind.  Without on_event, or below
 * event_level, nothing is done. */
void lk_store_tell(const struct lk_store *store, const sqlock_event *event,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
