/*
 * tx.h - what a transaction is made of; for src/tx only
 *
 * tx.c begins and ends it, run.c sends statements, lock.c locks names and rows,
 * guard.c guards leases, table.c knows the application's tables, fence.c and
 * version.c write to them, retry.c begins again.
 */
#ifndef LK_TX_H
#define LK_TX_H

#include <stdio.h>

#include "base/retry.h"
#include "locks/guarded.h"
#include "sqlock/tx.h"

/* Statements about the lock table: the driver's, and those made of its
 * words. */
enum lk_tx_kind {
    LK_TX_SEED = SQLOCK_TX_SQL_SEED,
    LK_TX_GUARD = SQLOCK_TX_SQL_GUARD,
    LK_TX_ASSERT = SQLOCK_TX_SQL_ASSERT,
    LK_TX_REAP = SQLOCK_TX_SQL_REAP, /* sent by sqlock_reap() */
    /* Lock the row {1}{2} against all others until the transaction ends, unless
     * somebody has it locked: no row then, or where the transaction's snapshot
     * has none. */
    LK_TX_LOCK = SQLOCK_TX_KINDS,
    /* The same, but wait for whoever has it. */
    LK_TX_WAIT,
    /* Gives the row {1}{2}, whoever has it locked. */
    LK_TX_LOOK,
    LK_TX_KINDS
};

/* Which rows the transaction's statements see. */
enum lk_tx_view {
    LK_TX_FRESH = 0, /* what is committed when they begin; no gaps are locked */
    LK_TX_SNAPSHOT,  /* what was when its first statement began */
    LK_TX_EITHER     /* not to be found out */
};

/* Whether the locks that the transaction has taken are certain to be its own
 * until it ends. */
enum lk_tx_hold {
    LK_TX_CERTAIN = 0, /* nothing was sent that could let go of them */
    LK_TX_LOOSE /* the application may have: by a savepoint, by a commit */
};

/* A lease that the transaction keeps as it is. */
struct lk_tx_guard {
    sqlock_lock *lock;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    int lost; /* what the commit has found out: 0, ELOST */
};

struct sqlock_tx {
    struct lk_store *store;
    const sqlock_driver *driver;
    const sqlock_transactions *part; /* the driver's */
    struct lk_connection *connection;
    struct lk_statement statements[LK_TX_KINDS];
    char *region; /* of names: "<region>#tx" */

    bool is_adopted;
    bool is_identified; /* known to be on the registry's database */
    enum lk_tx_view view;
    bool is_shielded; /* within a savepoint: a statement may fail */
    bool is_limited;  /* until lk_tx_unlimit() */
    int over;         /* what ended it, and every later call gets */
    sqlock_error why;

    struct lk_tx_guard *guards;
    size_t guard_count;
    enum lk_tx_hold hold;
};

/* --- run.c --- */

/* Check that a statement may be sent. 0, or the code that ended the
 * transaction. */
int lk_tx_check(sqlock_tx *tx, sqlock_error *err);

/* End the transaction with rc: from here on it can only be rolled back. */
int lk_tx_end(sqlock_tx *tx, int rc, const sqlock_error *why);

/* End a transaction in which a statement has written what it should not
 * have. */
int lk_tx_spoil(sqlock_tx *tx, const char *why, sqlock_error *err);

/* Send a statement with the driver's own placeholders.  A lost connection is
 * ELOST: nothing of the transaction is committed.  `result` is to be
 * cleared. */
int lk_tx_send(sqlock_tx *tx, const sqlock_statement *statement,
               const sqlock_value *values, size_t count, int64_t deadline_ns,
               sqlock_result *result, sqlock_error *err);
/* Send a text, whose `?` placeholders become the driver's. */
int lk_tx_query(sqlock_tx *tx, const char *text, const sqlock_value *values,
                size_t count, sqlock_result *result, sqlock_error *err);
/* Send a text that refuses to wait for a row lock. */
int lk_tx_query_nowait(sqlock_tx *tx, const char *text,
                       const sqlock_value *values, size_t count,
                       sqlock_result *result, sqlock_error *err);
/* Send the statement of that kind. */
int lk_tx_run(sqlock_tx *tx, enum lk_tx_kind kind,
              const struct lk_arguments *arguments, int64_t deadline_ns,
              sqlock_result *result, sqlock_error *err);
/* Send the statement of that kind on a connection of the registry, committed
 * by itself. */
int lk_tx_run_apart(sqlock_tx *tx, enum lk_tx_kind kind,
                    const struct lk_arguments *arguments, sqlock_result *result,
                    sqlock_error *err);

/* The time at which a statement of this transaction is given up. */
int64_t lk_tx_deadline(const sqlock_tx *tx);

/* A function of the driver, within its deadline. */
typedef int (*lk_tx_call_fn)(void *connection, int64_t deadline_ns,
                             sqlock_error *err);
int lk_tx_call(sqlock_tx *tx, lk_tx_call_fn function, int64_t deadline_ns,
               sqlock_error *err);

/* Begin and end a part whose statements do not wait for locks by the
 * application's settings. */
int lk_tx_limit(sqlock_tx *tx, int64_t wait_ms, sqlock_error *err);
int lk_tx_unlimit(sqlock_tx *tx, sqlock_error *err);

/* Refuse a connection of another database.  0, EINVAL. */
int lk_tx_identify(sqlock_tx *tx, sqlock_error *err);

/* --- guard.c --- */

/* Check that the leases that were guarded are still ours, and their rows
 * locked by this transaction: savepoints and commits behind the library's
 * back let them go. 0; ELOST; ERETRY: the leases are ours, but somebody has
 * a row locked at this moment. */
int lk_tx_check_guards(sqlock_tx *tx, sqlock_error *err);

/* Commit only if the guards hold, which is asked where locks may have been
 * let go of.  Results as of the driver's commit, and as above. */
int lk_tx_commit_guarded(sqlock_tx *tx, sqlock_error *err);

/* --- nodes.c --- */

/* Refuse row locks that would hold on one node of several.  Asks once for
 * each registry. 0, ENOTSUP. */
int lk_tx_check_nodes(sqlock_tx *tx, sqlock_error *err);

/* Waiting for what others have locked, look by look. */
extern const struct lk_retry_policy lk_tx_waiting;

/* --- table.c --- */

/* Which columns of a sqlock_table are wanted besides the key. */
enum {
    LK_TX_KEY = 0,
    LK_TX_VERSION = 1 << 0,
    LK_TX_FENCE = 1 << 1,
};

#define LK_QUOTED_SIZE (2 * (LK_IDENTIFIER_MAX + 2) + 2)

/* Checked and quoted. */
struct lk_tx_table {
    char name[LK_QUOTED_SIZE];
    char key[LK_QUOTED_SIZE];
    char version[LK_QUOTED_SIZE];
    char fence[LK_QUOTED_SIZE];
    char owner[LK_QUOTED_SIZE];
    sqlock_version_kind kind;
};

int lk_tx_table_read(struct lk_tx_table *out, const sqlock_table *table,
                     unsigned wanted, const sqlock_dialect *dialect,
                     sqlock_error *err);

/* Quote a name. 0, EINVAL. */
int lk_tx_quote(char out[LK_QUOTED_SIZE], const char *what, const char *name,
                const sqlock_dialect *dialect, sqlock_error *err);

/* Write a template about a column as an expression. */
void lk_tx_write_expression(FILE *out, const char *template,
                            const char *column);

/* Check that a value can be bound. 0, EINVAL. */
int lk_tx_check_value(const char *what, const sqlock_value *value,
                      sqlock_error *err);

/* --- placeholders.c --- */

/* Tell whether a text of SQL begins with a word for reading or writing
 * rows.  Such a statement lets go of no lock, neither by itself nor by a
 * function or trigger that it calls. */
bool lk_is_about_rows(const char *sql);

/* Number the placeholders: each `?` of a text of SQL, but not within quotes
 * and comments, becomes $N, `??` becomes `?`. *count is how many.  To be
 * freed; NULL when out of memory. */
char *lk_placeholders_number(const char *sql, size_t *count);

/* Begin, or run again and again, on a store that was checked:
 * sqlock_tx_begin() and sqlock_tx_retry(). */
int lk_tx_begin(sqlock_tx **out, struct lk_store *store, sqlock_error *err);
int lk_tx_retry(struct lk_store *store, sqlock_tx_fn fn, void *context,
                const sqlock_retry_options *options, sqlock_retry_stats *stats,
                sqlock_error *err);

#endif
