/*
 * connection.h - the state of one connection, and the functions that the files
 * of the SQLite driver offer each other
 */
#ifndef LK_SQLITE_CONNECTION_H
#define LK_SQLITE_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "base/thread.h"
#include "db/driver.h"

/* Ids of the driver's own prepared statements, behind those of the library. */
enum {
    LK_SQLITE_BEGIN = SQLOCK_STATEMENT_IDS + 1,
    LK_SQLITE_COMMIT,
    LK_SQLITE_ROLLBACK,
    LK_SQLITE_STATEMENTS
};

/* A file, as stat(2) describes it. */
struct lk_sqlite_place {
    int error; /* errno; then the rest is not set */
    dev_t device;
    ino_t number;
    unsigned links;
    bool is_regular;
    bool is_mounted; /* a mount point by itself */
};

/* The files beside a database that its connections share. */
enum lk_sqlite_beside { LK_SQLITE_WAL, LK_SQLITE_SHM, LK_SQLITE_BESIDE_KINDS };

struct lk_sqlite {
    sqlite3 *db;
    char *path;   /* as it was given; NULL: SQLite's own */
    dev_t device; /* with number: the file that was opened; 0: none yet */
    ino_t number;
    bool has_read;  /* the log, if there is one, was opened for it */
    bool is_reader; /* counted as one in `file` */
    sqlite3_stmt *prepared[LK_SQLITE_STATEMENTS]; /* by id */
    /* limit of a wait for SQLite's write lock; 0: the deadline alone */
    int64_t lock_timeout_ms;
    bool is_broken;      /* of no use any more: every call is refused */
    bool is_adopted;     /* the application's handle, without our handlers */
    int busy_timeout_ms; /* the application's, while limit() has set it to 0 */

    /* The call in progress; only the thread that makes the call uses these. */
    int64_t deadline_ns;
    int64_t give_up_ns; /* when its wait for SQLite's write lock ends */
    int64_t now_us;     /* sqlock_now() in this statement; 0: not read yet */
    sqlite3_stmt *running;
    struct lk_held_signal too_large; /* SIGXFSZ, if there is such a limit */
    bool has_size_limit;

    /* abort() may be called by any thread.  abort() and close() lock this
     * mutex, so that no closed handle is interrupted.  "Guarded": changed with
     * the mutex locked, since other threads read or change it. */
    pthread_mutex_t guard;
    atomic_bool can_be_aborted;  /* the mutex is initialized */
    bool is_in_call;             /* guarded */
    pthread_cond_t changed;      /* signalled: a wait is over, or aborted */
    struct lk_sqlite_bell *bell; /* bell.c: at which others ring; or NULL */
    /* rings of statements that are not committed yet */
    struct lk_sqlite_ring *rings;
    size_t ring_count;
    size_t ring_size;
    struct lk_sqlite_file *file; /* its queue in turn.c; NULL: none */
    struct lk_sqlite *behind;    /* the next one in that queue, or NULL */
    bool has_turn;               /* guarded: the queue has come to this one */
    /* guarded: abort() was called.  The end of the aborted call resets this;
     * set between two calls it stays, and the connection is lost. */
    atomic_bool is_aborted;
};

/* call.c: one call of the driver.  Between begin and end, abort() or the
 * deadline ends a statement or a wait.  Begin returns 0, SQLOCK_ECANCELED
 * (past the deadline, or aborted before) or SQLOCK_EUNREACHABLE (the connection
 * is closed or broken); call end only after 0. */
int lk_sqlite_call_begin(struct lk_sqlite *c, int64_t deadline_ns,
                         sqlock_error *err);
void lk_sqlite_call_end(struct lk_sqlite *c);
/* For what writes to the file outside of a call: its opening and closing. */
void lk_sqlite_size_hold(struct lk_sqlite *c);
void lk_sqlite_size_release(struct lk_sqlite *c);
/* Install the busy handler and the progress handler on an open handle. */
void lk_sqlite_call_install(struct lk_sqlite *c);
/* Sleep briefly before trying for the file's lock again, after so many refusals
 * before this one.  Return false, without sleeping, if the wait is to end: its
 * time is over, or it was aborted. */
bool lk_sqlite_call_nap(struct lk_sqlite *c, int refusals);

/* execute.c: run a statement to its end, within a call.  Return 0 or a code of
 * db/driver.h.  @p result may be NULL; on success its earlier contents are
 * freed and replaced, on failure it is unchanged. */
int lk_sqlite_run(struct lk_sqlite *c, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  sqlock_result *result, sqlock_error *err);

/* turn.c: let this process's connections to a file write one after another,
 * from open to close.  Take and give enclose, within a call, a statement that
 * takes SQLite's write lock.  Take also returns if the turn has not come by
 * give_up_ns, or on abort(): run the statement and give all the same; SQLite
 * then finds the file free or locked. */
void lk_sqlite_turn_open(struct lk_sqlite *c);
void lk_sqlite_turn_close(struct lk_sqlite *c);
void lk_sqlite_turn_take(struct lk_sqlite *c);
void lk_sqlite_turn_give(struct lk_sqlite *c);

/* Look at the file of that kind, at that path, and return the one that this
 * process's connections to the database have open: the one that was found first
 * by a connection that had read.  links == 0: none, and *found may be unset. */
struct lk_sqlite_place lk_sqlite_turn_note(struct lk_sqlite *c,
                                           enum lk_sqlite_beside which,
                                           const char *path,
                                           struct lk_sqlite_place *found);

/* identity.c: return what stat(2) says about the file at that path, or about
 * the link if flags has AT_SYMLINK_NOFOLLOW. */
struct lk_sqlite_place lk_sqlite_place_of(const char *path, int flags);
/* Check that whoever opens the connection's file by its name shares
 * the database with it.  Return 0, SQLOCK_EUNREACHABLE if the name leads to
 * other files by now, SQLOCK_ENOTSUP if the file has other names, or
 * SQLOCK_EINVAL if there is no file. */
int lk_sqlite_check_identity(struct lk_sqlite *c, sqlock_error *err);
/* Return 0, or SQLOCK_ENOTSUP if the handle takes no locks on its file, or not
 * those that a connection of sqlock takes. */
int lk_sqlite_check_locks(sqlite3 *db, sqlock_error *err);

/* failure.c: classify SQLite's last error on the connection: fill in *err and
 * return its code; mark the connection broken if it cannot be used any more.
 * Call it before the handle is used again, which replaces the error. */
int lk_sqlite_failure(struct lk_sqlite *c, sqlock_error *err);
/* As lk_sqlite_failure(), for a statement that cannot have written anything:
 * never return SQLOCK_EUNCERTAIN. */
int lk_sqlite_failure_to_read(struct lk_sqlite *c, sqlock_error *err);

/* functions.c: add the SQL functions of the dialect to the handle.  Return a
 * result code of SQLite. */
int lk_sqlite_add_functions(struct lk_sqlite *c);

/* bell.c: hearing of other processes, and ringing at theirs. */
extern const sqlock_bell lk_sqlite_bell;
/* The SQL function sqlock_ring(NAME, TEXT): ring at that bell once the
 * statement is committed, and return null. */
void lk_sqlite_ring(sqlite3_context *context, int argc, sqlite3_value **argv);
/* The SQL function sqlock_tell(TEXT): ring at all bells, and return 1. */
void lk_sqlite_tell(sqlite3_context *context, int argc, sqlite3_value **argv);
/* Settle the rings, except the first `from`, when their statements are
 * committed or undone: send them, or forget them if is_undone. */
void lk_sqlite_bell_settle(struct lk_sqlite *c, size_t from, bool is_undone);
/* End hearing, and forget all rings. */
void lk_sqlite_bell_close(struct lk_sqlite *c);

/* adopt.c: transactions of the application on its own handle. */
extern const sqlock_transactions lk_sqlite_transactions;

extern const sqlock_stock_dialect lk_sqlite_stock;

/* file.c: sqlock_driver.check_url */
int lk_sqlite_check_url(struct lk_url *url, sqlock_error *err);
/* Return whether commits wait for the disk. */
bool lk_sqlite_waits_for_disk(const struct lk_url *url);

/* Check that the path leads to a file in which locks work or, with may_create,
 * to a place where one can be created.  Return 0 or a code of db/driver.h.
 */
int lk_sqlite_check_file(const char *path, const sqlock_connect *how,
                         sqlock_error *err);
/* Create the file if it is missing, with mode 0666 less the umask: SQLite would
 * create it with 0644 at most, and its group could not write.  Errors are
 * ignored, since opening the file reports them. */
void lk_sqlite_make_file(const char *path);
bool lk_sqlite_is_network(unsigned long file_system); /* statfs.f_type */

#endif
