/*
 * tx.h - the struct of a transaction; for src/tx only
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
 * fragments. */
enum lk_tx_kind {
    LK_TX_SEED = SQLOCK_TX_SQL_SEED,
    LK_TX_GUARD = SQLOCK_TX_SQL_GUARD,
    LK_TX_ASSERT = SQLOCK_TX_SQL_ASSERT,
    LK_TX_REAP = SQLOCK_TX_SQL_REAP, /* sent by sqlock_reap() */
    /* Lock the row {1}{2} until the transaction ends, unless another session
     * has it locked: then no row, as when the transaction's snapshot lacks
     * it. */
    LK_TX_LOCK = SQLOCK_TX_KINDS,
    /* Lock the row, and wait for another session that has it. */
    LK_TX_WAIT,
    /* Return the row {1}{2}, even if it is locked. */
    LK_TX_LOOK,
    LK_TX_KINDS
};

/* The rows that the transaction's statements see. */
enum lk_tx_view {
    /* those committed when they begin; no gaps are locked */
    LK_TX_FRESH = 0,
    LK_TX_SNAPSHOT, /* those committed when its first statement began */
    LK_TX_EITHER    /* unknown */
};

/* Whether the transaction certainly keeps its locks until it ends. */
enum lk_tx_hold {
    LK_TX_CERTAIN = 0, /* nothing was sent that could release them */
    /* the application may have released them: by a savepoint, or a commit */
    LK_TX_LOOSE
};

/* A lease that the transaction guards. */
struct lk_tx_guard {
    sqlock_lock *lock;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    int lost; /* found by the commit: 0, ELOST */
};

struct sqlock_tx {
    struct lk_store *store;
    const sqlock_driver *driver;
    const sqlock_transactions *part; /* the driver's */
    struct lk_connection *connection;
    struct lk_statement statements[LK_TX_KINDS];
    char *region; /* of names: "<region>#tx" */

    bool is_adopted;
    bool is_identified; /* known to be in the registry's database */
    enum lk_tx_view view;
    bool is_shielded; /* within a savepoint: a statement may fail */
    bool is_limited;  /* until lk_tx_unlimit() */
    int over;         /* what ended it; returned by every later call */
    sqlock_error why;

    struct lk_tx_guard *guards;
    size_t guard_count;
    enum lk_tx_hold hold;
    /* The application's statements may have changed the session, which is not
     * used again by the registry. */
    bool is_altered;
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
 * ELOST: nothing of the transaction is committed.  Clear `result`. */
int lk_tx_send(sqlock_tx *tx, const sqlock_statement *statement,
               const sqlock_value *values, size_t count, int64_t deadline_ns,
               sqlock_result *result, sqlock_error *err);
/* Send a text, whose `?` placeholders become the driver's. */
int lk_tx_query(sqlock_tx *tx, const char *text, const sqlock_value *values,
                size_t count, sqlock_result *result, sqlock_error *err);
/* As lk_tx_query(), for a statement with a deadline of its own. */
int lk_tx_query_at(sqlock_tx *tx, sqlock_statement statement,
                   const sqlock_value *values, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err);
/* Send the statement of that kind. */
int lk_tx_run(sqlock_tx *tx, enum lk_tx_kind kind,
              const struct lk_arguments *arguments, int64_t deadline_ns,
              sqlock_result *result, sqlock_error *err);
/* Send the statement of that kind on a connection of the registry, committed
 * by itself. */
int lk_tx_run_apart(sqlock_tx *tx, enum lk_tx_kind kind,
                    const struct lk_arguments *arguments, sqlock_result *result,
                    sqlock_error *err);

/* Return the deadline of a statement that is sent now. */
int64_t lk_tx_deadline(const sqlock_tx *tx);

/* A function of the driver, within its deadline. */
typedef int (*lk_tx_call_fn)(void *connection, int64_t deadline_ns,
                             sqlock_error *err);
int lk_tx_call(sqlock_tx *tx, lk_tx_call_fn function, int64_t deadline_ns,
               sqlock_error *err);

/* Begin, and end, statements that wait for locks with a limit of ours instead
 * of the application's settings. */
int lk_tx_limit(sqlock_tx *tx, int64_t wait_ms, sqlock_error *err);
int lk_tx_unlimit(sqlock_tx *tx, sqlock_error *err);

/* Refuse a connection of another database.  0, EINVAL. */
int lk_tx_identify(sqlock_tx *tx, sqlock_error *err);

/* --- guard.c --- */

/* Check that the guarded leases are still ours, and their rows locked by this
 * transaction: the application's savepoints and commits release them.  0;
 * ELOST; ERETRY: the leases are ours, but another session has a row locked at
 * present. */
int lk_tx_check_guards(sqlock_tx *tx, sqlock_error *err);

/* Commit only if the guards hold, which is checked if locks may have been
 * released.  Results as the driver's commit, and as above. */
int lk_tx_commit_guarded(sqlock_tx *tx, sqlock_error *err);

/* --- nodes.c --- */

/* Refuse row locks that would hold on only one node of several.  Asks once per
 * registry.  0, ENOTSUP. */
int lk_tx_check_nodes(sqlock_tx *tx, sqlock_error *err);

/* Pauses between attempts at a row that another session has locked. */
extern const struct lk_retry_policy lk_tx_waiting;

/* --- table.c --- */

/* Columns of a sqlock_table that are needed besides the key. */
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

/* Write a template about a column as an SQL expression. */
void lk_tx_write_expression(FILE *out, const char *template,
                            const char *column);

/* Check that a value can be bound. 0, EINVAL. */
int lk_tx_check_value(const char *what, const sqlock_value *value,
                      sqlock_error *err);

/* --- placeholders.c --- */

/* Tell whether an SQL text begins with a word for reading or writing rows. Such
 * a statement releases no lock, neither itself nor by a function or trigger
 * that it calls. */
bool lk_is_about_rows(const char *sql);
/* Tell whether it begins with a word for savepoints or a rollback, which
 * commits nothing and changes no setting of the session. */
bool lk_is_about_savepoints(const char *sql);

/* Number the placeholders: each `?` in the SQL text, outside quotes and
 * comments, becomes $N, and `??` becomes `?`.  *count is their number.  The
 * caller frees it; NULL: out of memory. */
char *lk_placeholders_number(const char *sql, size_t *count);

/* As sqlock_tx_begin() and sqlock_tx_retry(), on a store that was checked. */
int lk_tx_begin(sqlock_tx **out, struct lk_store *store, sqlock_error *err);
int lk_tx_retry(struct lk_store *store, sqlock_tx_fn fn, void *context,
                const sqlock_retry_options *options, sqlock_retry_stats *stats,
                sqlock_error *err);

#endif
