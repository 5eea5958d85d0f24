/*
 * tx.h - the struct of a transaction; for src/tx and src/stock
 *
 * begin.c begins a transaction, adopt.c joins or begins one on a connection of
 * the application, run.c sends its statements, end.c ends it, lock.c locks
 * names and rows, guard.c guards leases, table.c checks and quotes the names of
 * the application's tables, value.c checks its values, fence.c and version.c
 * write to those tables, and retry.c runs a function in one transaction after
 * another.
 */
#ifndef LK_TX_H
#define LK_TX_H

#include <stdio.h>

#include "base/retry.h"
#include "lock/guarded.h"
#include "sqlock/tx.h"

/* Rows that a statement of the transaction sees. */
enum lk_tx_view {
    /* rows committed before the statement; no gaps are locked */
    LK_TX_FRESH = 0,
    LK_TX_SNAPSHOT, /* rows committed before the first statement */
    LK_TX_EITHER,   /* unknown */
    LK_TX_NOT_ASKED /* known to lk_tx_see() */
};

/* Whether the transaction certainly keeps its locks until it ends. */
enum lk_tx_hold {
    LK_TX_CERTAIN = 0, /* nothing was sent that could release locks */
    /* the application may have released locks: by a savepoint, or a commit */
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
    const sqlock_transactions *part; /* the driver's part in transactions */
    struct lk_connection *connection;
    char *region; /* region of the rows of names: "<region>#tx" */

    bool is_adopted;
    bool is_identified;    /* known to be in the registry's database */
    struct lk_known known; /* of an adopted connection */
    bool has_prepared; /* the guard's statements on it, when it was adopted */
    enum lk_tx_view view;
    bool is_limited; /* between lk_tx_limit() and lk_tx_unlimit() */
    bool has_begun;  /* a statement that fails may have ended it */
    int over;        /* code that ended the transaction; 0: not over */
    /* over because a statement failed: ROLLBACK TO SAVEPOINT revives it */
    bool is_aborted;
    sqlock_error why;

    uint32_t idle_ms; /* the server ends it when it is idle for so long */
    struct lk_tx_guard *guards;
    size_t guard_count;
    enum lk_tx_hold hold;
    /* The application's statements may have changed the session; then the
     * registry discards the connection at the end. */
    bool is_altered;
    bool is_on_standby; /* the server has refused to write */
};

/* --- begin.c --- */

/* Make a transaction that has no connection yet, or free one that has none any
 * more.  Return 0, EINVAL, ENOTSUP, ENOMEM, or as lk_store_check(). */
int lk_tx_new(sqlock_tx **out, struct lk_store *store, bool is_adopted,
              sqlock_error *err);
void lk_tx_free(sqlock_tx *tx);

/* Begin the transaction.  On a database with one writer at a time, wait for the
 * present writer until the deadline. */
int lk_tx_start(sqlock_tx *tx, sqlock_error *err);

/* --- adopt.c --- */

/* Leave the connection to the application: without may_use, do not touch it. */
void lk_tx_let_go(sqlock_tx *tx, bool may_use);

/* Remember what was learnt of an adopted connection. */
void lk_tx_remember(sqlock_tx *tx);

/* Find out, unless it is known, whether the transaction has a snapshot that
 * hides newer rows.  Takes no snapshot.  Return 0 or an error. */
int lk_tx_see(sqlock_tx *tx, sqlock_error *err);

/* --- run.c --- */

/* Check that a statement may be sent.  Return 0, the code that ended the
 * transaction, EINVAL for NULL, or EFORK in a child process. */
int lk_tx_check(sqlock_tx *tx, sqlock_error *err);

/* Return whether there is a transaction that ROLLBACK TO SAVEPOINT may save. */
bool lk_tx_may_go_back(const sqlock_tx *tx);

/* End the transaction with rc, and return rc: from here on it can only be
 * rolled back, all of it.  Later calls return the first such rc, and the error
 * `why` (NULL: a text for rc). */
int lk_tx_end(sqlock_tx *tx, int rc, const sqlock_error *why);

/* End a transaction in which a statement has written what it should not have
 * written; `why` is the message.  Return EINVAL. */
int lk_tx_spoil(sqlock_tx *tx, const char *why, sqlock_error *err);

/* Note the result of a driver's call with that deadline.  Return rc; but
 * ETIMEDOUT instead of ECANCELED, with the words that are in *err, if the
 * registry's own limit of time has ended the call. */
int lk_tx_note(sqlock_tx *tx, int rc, int64_t deadline_ns, sqlock_error *err);

/* Send a statement with the driver's own placeholders.  If the connection is
 * lost, return ELOST: nothing of the transaction is committed.  `result` may be
 * NULL; clear it afterwards in any case. */
int lk_tx_send(sqlock_tx *tx, const sqlock_statement *statement,
               const sqlock_value *values, size_t count, int64_t deadline_ns,
               sqlock_result *result, sqlock_error *err);
/* Send a text, in which `?` placeholders are replaced by the driver's. */
int lk_tx_query(sqlock_tx *tx, const char *text, const sqlock_value *values,
                size_t count, sqlock_result *result, sqlock_error *err);
/* As lk_tx_query(), for a statement with a deadline of its own. */
int lk_tx_query_at(sqlock_tx *tx, sqlock_statement statement,
                   const sqlock_value *values, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err);
/* Return whether the database has the statement. */
bool lk_tx_has(const sqlock_tx *tx, sqlock_statement_kind kind);
/* The statements that a connection keeps which is adopted again, if the
 * database has them; the first one is its proof. */
#define LK_TX_PREPARED 2
extern const sqlock_statement_kind lk_tx_prepared[LK_TX_PREPARED];

/* Return whether an adopted connection has that statement prepared since an
 * earlier adoption. */
bool lk_tx_is_prepared(const sqlock_tx *tx, sqlock_statement_kind kind);
/* Set *out to a statement about the lock table as the driver gets it: on an
 * adopted connection without a number, if it would be prepared now and outlive
 * the transaction. */
void lk_tx_statement(const sqlock_tx *tx, sqlock_statement_kind kind,
                     sqlock_statement *out);
/* Send the statement of that kind. */
int lk_tx_run(sqlock_tx *tx, sqlock_statement_kind kind,
              const struct lk_arguments *arguments, int64_t deadline_ns,
              sqlock_result *result, sqlock_error *err);
/* Send the statement of that kind on another connection, one of the registry's,
 * where it is committed at once.  Return EUNREACHABLE instead of EUNCERTAIN:
 * the statement may be repeated. */
int lk_tx_run_apart(sqlock_tx *tx, sqlock_statement_kind kind,
                    const struct lk_arguments *arguments, sqlock_result *result,
                    sqlock_error *err);

/* Commit, without a look at the guards.  Return as the driver's commit, and as
 * lk_tx_note(). */
int lk_tx_send_commit(sqlock_tx *tx, sqlock_error *err);

/* Return the deadline of a statement that is sent now; LK_NEVER on an adopted
 * connection, where the application's own limits hold. */
int64_t lk_tx_deadline(const sqlock_tx *tx);

/* Let the next statements wait for row locks up to wait_ms, whatever limits the
 * application has set, until lk_tx_unlimit() restores those.  Both functions do
 * nothing where no limit is needed.  Return 0 or an error. */
int lk_tx_limit(sqlock_tx *tx, int64_t wait_ms, sqlock_error *err);
int lk_tx_unlimit(sqlock_tx *tx, sqlock_error *err);

/* Let the transaction be idle for that long: sqlock_transactions.outlast.
 * Return 0 or an error. */
int lk_tx_outlast(sqlock_tx *tx, uint32_t idle_ms, sqlock_error *err);

/* Check that the connection leads to the registry's database.  Return 0, EINVAL
 * if it leads to another one, or why that could not be found out. */
int lk_tx_identify(sqlock_tx *tx, sqlock_error *err);

/* Return whether an identity with that number, which was found before, is still
 * that of the registry's database. */
bool lk_tx_is_identity(sqlock_tx *tx, uint32_t number);

/* --- guard.c --- */

/* Check that the guarded leases are still ours, and lock their rows again,
 * which the application's savepoints and commits release.  Return 0; ELOST if a
 * lease is lost; ERETRY if the leases are ours, but another session has a row
 * locked at present; or another error of the statement. */
int lk_tx_check_guards(sqlock_tx *tx, sqlock_error *err);

/* Commit only if the guarded leases are still ours, which is checked if locks
 * may have been released.  Return as lk_tx_send_commit(), or as
 * lk_tx_check_guards(). */
int lk_tx_commit_guarded(sqlock_tx *tx, sqlock_error *err);

/* --- nodes.c --- */

/* Check that row locks hold on all nodes of the database.  The server is asked
 * once per registry.  Return 0, ENOTSUP if they hold on one node only, or why
 * that could not be found out. */
int lk_tx_check_nodes(sqlock_tx *tx, sqlock_error *err);

/* Pauses between attempts at a row that another session has locked (run.c). */
extern const struct lk_retry_policy lk_tx_waiting;

/* --- table.c --- */

/* Columns of a sqlock_table that are needed besides the key. */
enum {
    LK_TX_KEY = 0,
    LK_TX_VERSION = 1 << 0,
    LK_TX_FENCE = 1 << 1,
};

#define LK_QUOTED_SIZE (2 * (LK_IDENTIFIER_MAX + 2) + 2)

/* Names of a table and its columns, checked and quoted. */
struct lk_tx_table {
    char name[LK_QUOTED_SIZE];
    char key[LK_QUOTED_SIZE];
    char version[LK_QUOTED_SIZE];
    char fence[LK_QUOTED_SIZE];
    char owner[LK_QUOTED_SIZE];
    sqlock_version_kind kind;
};

/* Check a table of the application, and quote its names: those of the table and
 * its key, and of the columns in `wanted` (LK_TX_VERSION | LK_TX_FENCE).
 * Return 0 or EINVAL. */
int lk_tx_table_read(struct lk_tx_table *out, const sqlock_table *table,
                     unsigned wanted, const sqlock_dialect *dialect,
                     sqlock_error *err);

/* Check and quote a name; `what` stands for it in the message.  Return 0 or
 * EINVAL. */
int lk_tx_quote(char out[LK_QUOTED_SIZE], const char *what, const char *name,
                const sqlock_dialect *dialect, sqlock_error *err);

/* Return whether two names in quotes are those of one column. */
bool lk_tx_is_same(const char *one, const char *other,
                   const sqlock_dialect *dialect);

/* A column's role, and its name in quotes; "" is none. */
struct lk_tx_role {
    const char *what;
    const char *quoted;
};

/* Check that no column has two roles: a statement that assigns it twice would
 * keep one value, or add both.  Return 0 or EINVAL. */
int lk_tx_check_roles(const struct lk_tx_role *roles, size_t count,
                      const sqlock_dialect *dialect, sqlock_error *err);

/* Write an SQL expression of the driver about that column. */
void lk_tx_write_expression(FILE *out, const char *expression,
                            const char *column);

/* A row of the application: its table, and its key as that is sent. */
struct lk_tx_row {
    struct lk_tx_table table;
    sqlock_value key;
    char digits[24]; /* of the key */
};

/* Check the transaction, the table, of which those columns are wanted, and the
 * key.  Return 0 or an error of lk_tx_check() or lk_tx_table_read(). */
int lk_tx_row_read(struct lk_tx_row *out, sqlock_tx *tx,
                   const sqlock_table *table, unsigned wanted,
                   const sqlock_value *key, sqlock_error *err);

/* --- placeholders.c --- */

/* Number the placeholders: each `?` in the SQL text, outside quotes and
 * comments, becomes $N, and `??` becomes `?`.  *count is the number of
 * placeholders.  Return the new text, which the caller frees; NULL: out of
 * memory. */
char *lk_placeholders_number(const char *sql, size_t *count);

/* --- classify.c --- */

/* Return whether a statement certainly only reads, writes or describes rows, or
 * makes or forgets a savepoint: it releases no lock, neither itself nor by a
 * function or trigger that it calls, and nothing of it outlives the
 * transaction. */
bool lk_keeps_locks(const char *sql);
/* Return whether a statement certainly rolls back, all or to a savepoint: it
 * commits nothing and changes no setting of the session. */
bool lk_rolls_back(const char *sql);

/* Return whether the text certainly changes rows, and returns none. */
bool lk_returns_nothing(const char *sql);

/* Do as sqlock_tx_begin() and sqlock_tx_retry(), on a store that was
 * checked. */
int lk_tx_begin(sqlock_tx **out, struct lk_store *store, sqlock_error *err);
int lk_tx_retry(struct lk_store *store, sqlock_tx_fn fn, void *context,
                const sqlock_retry_options *options, sqlock_error *err);

#endif
