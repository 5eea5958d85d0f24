/*
 * connection.h - the state of one connection, which the files of the SQLite
 * driver share, and who does what with it
 */
#ifndef LK_SQLITE_CONNECTION_H
#define LK_SQLITE_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>

#include <sqlite3.h>

#include "sqlock/driver.h"

/* Statements of the driver itself, kept behind those of the library. */
enum {
    LK_SQLITE_BEGIN = SQLOCK_STATEMENT_IDS + 1,
    LK_SQLITE_COMMIT,
    LK_SQLITE_ROLLBACK,
    LK_SQLITE_STATEMENTS
};

struct lk_sqlite {
    sqlite3 *db;
    sqlite3_stmt *prepared[LK_SQLITE_STATEMENTS]; /* by id */
    int64_t lock_timeout_ms;                      /* 0: the deadline alone */
    bool is_broken;      /* of no use any more: every call is refused */
    bool is_adopted;     /* the application's: waits as that has set it up */
    int busy_timeout_ms; /* of the application's, while it is taken away */

    /* The call in flight; only its own thread reads or writes these. */
    int64_t deadline_ns;
    int64_t give_up_ns; /* waiting for the file's lock */
    int64_t now_us;     /* sqlock_now() in this statement; 0: not read yet */
    sqlite3_stmt *running;

    /* abort() comes from any thread.  The mutex keeps it and close() apart, so
     * that no closed handle is ever interrupted. */
    pthread_mutex_t guard;
    atomic_bool can_be_aborted; /* the mutex exists */
    bool is_in_call;            /* under the guard */
    pthread_cond_t changed;     /* a wait is over, or aborted */
    bool is_wait_over;          /* under the guard: the helper has an answer */
    int queue_errno;            /* which is this */
    int64_t next_byte;          /* under the guard while a helper waits: of the
                                   queue whose next waiter this is; 0: none */
    int queue_file;             /* queue.c */
    int queue_file_errno;       /* why it could not be opened last */
    bool has_queue_file;
    /* queues taken by statements that are not committed yet */
    int64_t *taken;
    size_t taken_count;
    size_t taken_size;
    struct lk_sqlite_file *file; /* turn.c; NULL: it takes no turns */
    struct lk_sqlite *behind;    /* whose turn is after this one's */
    bool has_turn;               /* under the guard, by who called it */
    atomic_bool is_aborted;      /* written under the guard: the call in flight,
                                   or for good */
};

/* call.c: one call, from its deadline to its outcome.  The part between
 * begin and end is stopped by abort() and, in busy and progress handlers, by
 * the deadline. */
int lk_sqlite_call_begin(struct lk_sqlite *c, int64_t deadline_ns,
                         sqlock_error *err);
void lk_sqlite_call_end(struct lk_sqlite *c);
void lk_sqlite_call_install(struct lk_sqlite *c);
/* Wait a moment for the file's lock; false when it is time to give up. */
bool lk_sqlite_call_nap(struct lk_sqlite *c);

/* execute.c: run a statement to its end, within a call.  @p result may be
 * NULL. */
int lk_sqlite_run(struct lk_sqlite *c, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  sqlock_result *result, sqlock_error *err);

/* turn.c: take turns with this process's other connections to the file, from
 * open to close; a turn lasts within a call.  A turn that did not come in time
 * is given back like any other: SQLite then tells whether the file is free. */
void lk_sqlite_turn_open(struct lk_sqlite *c);
void lk_sqlite_turn_close(struct lk_sqlite *c);
void lk_sqlite_turn_take(struct lk_sqlite *c);
void lk_sqlite_turn_give(struct lk_sqlite *c);

/* failure.c: the meaning of SQLite's last error on the connection.  Call it
 * before anything else is done with the connection. */
int lk_sqlite_failure(struct lk_sqlite *c, sqlock_error *err);
/* The meaning of SQLite's last error where nothing can have been written: it
 * is never uncertain. */
int lk_sqlite_failure_to_read(struct lk_sqlite *c, sqlock_error *err);

/* functions.c: the SQL functions of the dialect.  An SQLite code. */
int lk_sqlite_add_functions(struct lk_sqlite *c);

/* queue.c: waiting for another process. */
extern const sqlock_wait_queue lk_sqlite_wait_queue;
/* Take the queue lock if it is free and no waiter is next: true if so.  Give it
 * back.  End all use of it by the connection. */
bool lk_sqlite_queue_take(struct lk_sqlite *c, int64_t queue);
void lk_sqlite_queue_notify(struct lk_sqlite *c, int64_t queue);
/* Forget the queue locks that a transaction took after its first `from`, or
 * give them back if their statements were undone. */
void lk_sqlite_queue_settle(struct lk_sqlite *c, size_t from, bool is_undone);
void lk_sqlite_queue_close(struct lk_sqlite *c);
#define LK_SQLITE_QUEUE_SUFFIX "-sqlock" /* of its file */

/* waiters.c: sqlock_waiters() in SQL: a JSON array with the byte of the file
 * that each waiting request is for. */
void lk_sqlite_waiters(sqlite3_context *context, int argc,
                       sqlite3_value **argv);

/* adopt.c: transactions of the application. */
extern const sqlock_transactions lk_sqlite_transactions;

extern const sqlock_stock_dialect lk_sqlite_stock;

/* file.c: from a URL to a file that can hold locks, and whether its commits are
 * to wait for the disk. */
int lk_sqlite_path(char **path, bool *waits_for_disk, const char *url,
                   sqlock_error *err);

/* Make a URL with an absolute path, *out; NULL when it has one.  Connections
 * are opened at different times, and the working directory may change
 * between. */
int lk_sqlite_resolve(const char *url, char **out, sqlock_error *err);
int lk_sqlite_check_file(const char *path, bool may_create, sqlock_error *err);
/* Make the file where it is missing, with the mode that the umask leaves it:
 * SQLite makes it 0644 at most, which shuts its group out. */
void lk_sqlite_make_file(const char *path);
bool lk_sqlite_is_network(unsigned long file_system); /* statfs.f_type */

#endif
