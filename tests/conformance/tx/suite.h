/*
 * suite.h - shared by tests of transactions on the application's tables
 *
 * A test names the databases and the layouts of the lock table that it runs on;
 * the default is all databases, with sqlock's layout.
 */
#ifndef TESTS_TX_SUITE_H
#define TESTS_TX_SUITE_H

#include "sqlock/tx.h"
#include "support/app.h"
#include "support/app_table.h"
#include "support/suite_main.h"
#include "support/workers.h"

/* An application with its own connection, and the library's transaction on
 * it. */
struct session {
    struct app app;
    sqlock_tx *tx; /* NULL when the test has ended it */
};

/* Connect, run `begin` (NULL: nothing), and adopt the connection with
 * fixture->a; a failure fails the test. */
void session_open(struct fixture *f, struct session *s, const char *begin);
/* Roll back the transaction, if there is one, and disconnect. */
void session_close(struct session *s);

/* Assert that the commit succeeds, or returns that code.  s->tx is NULL
 * afterwards. */
#define session_commit(f, s) session_end((f), (s), 0, __FILE__, __LINE__)
#define session_commit_fails(code, f, s)                                       \
    session_end((f), (s), (code), __FILE__, __LINE__)
void session_end(struct fixture *f, struct session *s, int code,
                 const char *file, int line);

/* Assert that all settings of the application's session are as in `before`, the
 * text of app_settings(), which is freed. */
void settings_compare(struct app *app, char *before);

/* Two sessions, each in a transaction that the adoption has begun. */
void sessions_open(struct fixture *f, struct session *a, struct session *b);
void sessions_close(struct session *a, struct session *b);

/* Begin on a connection of fixture->a, or adopt the application's; a failure
 * fails the test. */
sqlock_tx *tx_begin(struct fixture *f);
sqlock_tx *tx_adopt(struct fixture *f, struct app *app);

/* Lock one name by sqlock_tx_lock(), and return its result. */
int lock_one(struct session *s, const char *name, int64_t wait_ms,
             sqlock_error *err);

/* A session that waits for a name in a thread of its own.  The thread's body,
 * session_wait(), leaves the result in `rc` and `err`. */
struct waiter {
    struct session *session;
    const char *name;
    int64_t wait_ms;
    int rc;
    sqlock_error err;
};
int session_wait(struct worker *worker);

/* Return whether that session waits for a row lock, as its server sees it. */
bool session_is_waiting(struct fixture *f, struct session *s);

#endif
