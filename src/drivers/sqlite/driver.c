/*
 * driver.c - the SQLite driver: one connection is one sqlite3 handle on one
 * file.  execute.c runs statements, call.c keeps their limits.
 *
 * A missing file is created only if tables are to be created in it
 * (sqlock_connect.may_create); otherwise it is an error, so that a mistake in a
 * path is noticed.
 *
 * fork() and POSIX locks (F17, F70).  SQLite guards a file with fcntl() locks,
 * which belong to a process and are dropped when that process closes ANY
 * descriptor of the file.  So nothing but SQLite may open the database file in
 * a process that uses it, not to copy it nor to look at it, and a program must
 * not be linked with two copies of SQLite: an open()+close() elsewhere silently
 * takes away the lock under which a transaction writes.  A child of fork() has
 * none of its parent's locks; the library never calls close() for an inherited
 * connection there, and when the kernel closes the child's copies of the
 * descriptors at its exit, the parent keeps its locks.
 */
#include "drivers/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "drivers/sqlite/connection.h"

#define OLDEST_VERSION 3035000 /* the first with RETURNING */

static char client_text[64];

static void write_client_text(void)
{
    (void)snprintf(client_text, sizeof client_text, "SQLite %s",
                   sqlite3_libversion());
}

/* Return the version of the library that was loaded, not of the header. */
static const char *sqlite_client(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, write_client_text);
    return client_text;
}

static int check_library(sqlock_error *err)
{
    if (sqlite3_libversion_number() < OLDEST_VERSION)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "SQLite %s is too old: 3.35 or later is needed",
                        sqlite3_libversion());
    if (sqlite3_threadsafe() == 0)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "this SQLite was built without support for threads");
    return 0;
}

/* Open the file, without SQLite's own mutex: by the contract of a driver one
 * thread at a time uses a connection, and SQLite allows sqlite3_interrupt()
 * from another thread all the same. */
static int open_file(struct lk_sqlite *c, bool may_create, sqlock_error *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                      (may_create ? SQLITE_OPEN_CREATE : 0);
    sqlock_error cause;
    int rc;

    /* "unix": the application may have made another VFS the default, such as
     * unix-none, which takes no locks. */
    rc = sqlite3_open_v2(c->path, &c->db, flags, "unix");
    if (c->db == NULL)
        return lk_error_nomem(err);
    if (rc != SQLITE_OK) {
        rc = lk_sqlite_failure(c, &cause);
        return sqlock_error_set(err, rc, cause.native, NULL, "%s: %s",
                                cause.message, c->path);
    }
    (void)sqlite3_extended_result_codes(c->db, 1);
    if (lk_sqlite_add_functions(c) != SQLITE_OK)
        return lk_sqlite_failure(c, err);
    lk_sqlite_call_install(c);
    lk_sqlite_turn_open(c);
    return 0;
}

/*
 * Run the first statement, which sets `synchronous`.  SQLite reads the file for
 * it, so a file that is not a database is noticed here.
 *
 * With NORMAL, a commit in WAL mode does not wait for the disk.  The commit
 * survives the death of the process, but a power failure may undo the last
 * commits.  All holders of a lock in a local file die in that failure, too, and
 * tokens keep rising, since they follow the clock.  FULL is for data that must
 * survive a power failure: stock that was sold, work recorded as done once.
 */
static int settle(struct lk_sqlite *c, bool waits_for_disk, int64_t deadline_ns,
                  sqlock_error *err)
{
    const sqlock_statement statement = {
        .text = waits_for_disk ? "PRAGMA synchronous=FULL"
                               : "PRAGMA synchronous=NORMAL"};
    sqlock_error cause;
    int rc;

    rc = lk_sqlite_call_begin(c, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = lk_sqlite_run(c, &statement, NULL, 0, NULL, &cause);
    if (rc < 0)
        (void)sqlock_error_set(err, rc, cause.native, NULL, "%s: %s",
                               cause.message, c->path);
    lk_sqlite_call_end(c);
    return rc;
}

/* How many connections there are, each counted from before its file is opened
 * until it is closed, and in which process.  SQLite keeps a record of its file
 * locks in memory.  A child of fork() inherits that record without the locks,
 * so that a file which the child opens excludes nobody; and SQLite's mutexes,
 * which another thread of the parent may have had locked.  So a child that was
 * forked while a file was open is refused. */
static atomic_int open_count;
static atomic_long open_pid;

static int check_not_forked(sqlock_error *err)
{
    if (atomic_load(&open_count) > 0 && atomic_load(&open_pid) != getpid())
        return lk_error(err, SQLOCK_EFORK,
                        "this process was forked while a SQLite registry was "
                        "open: fork before opening it, or let the child exec");
    return 0;
}

static int sqlite_open(void *connection, const struct lk_url *url,
                       const sqlock_connect *how, sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    int rc;

    rc = check_library(err);
    if (rc == 0)
        rc = check_not_forked(err);
    if (rc == 0)
        rc = lk_sqlite_check_file(url->path, how, err);
    if (rc < 0)
        return rc;
    if (how->may_create)
        lk_sqlite_make_file(url->path);
    c->path = strdup(url->path);
    if (c->path == NULL || pthread_mutex_init(&c->guard, NULL) != 0) {
        free(c->path);
        c->path = NULL;
        return lk_error_nomem(err);
    }
    lk_condition_init(&c->changed);
    c->lock_timeout_ms = how->lock_timeout_ms;
    atomic_store(&open_pid, getpid());
    atomic_fetch_add(&open_count, 1);
    lk_sqlite_size_hold(c);
    rc = open_file(c, how->may_create, err);
    lk_sqlite_size_release(c);
    atomic_store(&c->can_be_aborted, true);
    if (rc == 0)
        rc = lk_sqlite_check_identity(c, err);
    if (rc == 0)
        rc = settle(c, lk_sqlite_waits_for_disk(url), how->deadline_ns, err);
    c->has_read = rc == 0;
    return rc == 0 ? lk_sqlite_check_identity(c, err) : rc;
}

/* Keep a connection from copying its log into the database when it is closed,
 * if others do not share that log: it would undo what they have committed.
 * Return whether that is so. */
static bool forget_log(struct lk_sqlite *c)
{
    if (c->db == NULL ||
        lk_sqlite_check_identity(c, NULL) != SQLOCK_EUNREACHABLE)
        return false;
    (void)sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return true;
}

static void sqlite_close(void *connection)
{
    struct lk_sqlite *c = connection;
    sqlite3 *db = c->db;
    bool is_replaced;

    if (!atomic_load(&c->can_be_aborted))
        return;
    is_replaced = forget_log(c);
    lk_sqlite_bell_close(c);
    /* SQLite may remove the log, and another connection make a new one.  But
     * none is to join a log that is replaced, which SQLite leaves alone. */
    if (!is_replaced)
        lk_sqlite_turn_close(c);
    (void)pthread_mutex_lock(&c->guard);
    c->db = NULL;
    (void)pthread_mutex_unlock(&c->guard);
    for (size_t i = 0; i < LK_SQLITE_STATEMENTS; i++) {
        (void)sqlite3_finalize(c->prepared[i]);
        c->prepared[i] = NULL;
    }
    /* An open transaction is rolled back.  If the application still has a
     * statement on the native handle, sqlite3_close_v2() keeps the file open
     * until that statement is finalized. */
    if (db != NULL) {
        (void)sqlite3_busy_handler(db, NULL, NULL);
        sqlite3_progress_handler(db, 0, NULL, NULL);
        lk_sqlite_size_hold(c);
        (void)sqlite3_close_v2(db);
        lk_sqlite_size_release(c);
    }
    lk_sqlite_turn_close(c);
    free(c->path);
    c->path = NULL;
    atomic_fetch_sub(&open_count, 1);
    /* The mutex is not destroyed: abort() may be about to lock it, and on Linux
     * a mutex holds no resource. */
    atomic_store(&c->can_be_aborted, false);
}

/* Return whether no transaction is open, and whoever opens the file now shares
 * it with this connection.  Otherwise the next one that is opened says why. */
static bool sqlite_is_alive(void *connection)
{
    struct lk_sqlite *c = connection;

    return c->db != NULL && !c->is_broken && !atomic_load(&c->is_aborted) &&
           sqlite3_get_autocommit(c->db) != 0 &&
           lk_sqlite_check_identity(c, NULL) == 0;
}

static int roll_back(struct lk_sqlite *c, sqlock_error *err)
{
    const sqlock_statement statement = {.text = "ROLLBACK",
                                        .id = LK_SQLITE_ROLLBACK};
    int rc = 0;

    if (sqlite3_get_autocommit(c->db) == 0)
        rc = lk_sqlite_run(c, &statement, NULL, 0, NULL, err);
    lk_sqlite_bell_settle(c, 0, true);
    return rc;
}

/* Return the code for a failure with which SQLite has rolled back the whole
 * transaction, as a trigger can do.  The codes below would mean that the failed
 * statement has undone only itself: the other statements that share the
 * transaction (has_one_writer) would continue, and each would be
 * committed on its own. */
static int tell_rolled_back(int rc, sqlock_error *err)
{
    sqlock_error cause;

    if (rc != SQLOCK_EBUSY && rc != SQLOCK_EDATABASE && rc != SQLOCK_ESCHEMA &&
        rc != SQLOCK_EINVAL)
        return rc;
    if (err == NULL)
        return SQLOCK_ECANCELED;
    cause = *err;
    return sqlock_error_set(err, SQLOCK_ECANCELED, cause.native, NULL,
                            "SQLite rolled the transaction back: %s",
                            cause.message);
}

static int sqlite_execute(void *connection, const sqlock_statement *statement,
                          const sqlock_value *parameters, size_t count,
                          int64_t deadline_ns, sqlock_result *result,
                          sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    size_t rings = c->ring_count;
    bool was_in_transaction;
    bool is_over;
    int rc;

    rc = lk_sqlite_call_begin(c, deadline_ns, err);
    if (rc < 0)
        return rc;
    was_in_transaction = sqlite3_get_autocommit(c->db) == 0;
    rc = lk_sqlite_run(c, statement, parameters, count, result, err);
    is_over = sqlite3_get_autocommit(c->db) != 0;
    if (rc < 0 && was_in_transaction && is_over)
        rc = tell_rolled_back(rc, err);
    if (rc < 0 || is_over) {
        lk_sqlite_bell_settle(c, is_over ? 0 : rings, rc < 0);
    }
    /* By the contract, no transaction is open after SQLOCK_ERETRY (F69). */
    if (rc == SQLOCK_ERETRY)
        (void)roll_back(c, NULL);
    lk_sqlite_call_end(c);
    return rc;
}

/* Begin a transaction and take SQLite's write lock.  A transaction that reads
 * first and writes later may have to start over (SQLITE_BUSY_SNAPSHOT, F69). */
static int sqlite_begin(void *connection, int64_t deadline_ns,
                        sqlock_error *err)
{
    const sqlock_statement statement = {.text = "BEGIN IMMEDIATE",
                                        .id = LK_SQLITE_BEGIN};

    return sqlite_execute(connection, &statement, NULL, 0, deadline_ns, NULL,
                          err);
}

/* Roll back, even after the deadline, since a rollback waits for no lock. */
static int sqlite_rollback(void *connection, int64_t deadline_ns,
                           sqlock_error *err)
{
    struct lk_sqlite *c = connection;
    int rc;

    (void)deadline_ns;
    rc = lk_sqlite_call_begin(c, LK_NEVER, err);
    if (rc < 0)
        return rc;
    rc = roll_back(c, err);
    lk_sqlite_call_end(c);
    return rc;
}

/* Commit, unless nobody else would see it.  After a failed COMMIT, SQLite may
 * keep the transaction open for another attempt.  The contract of a driver has
 * no such state, so the transaction is rolled back. */
static int sqlite_commit(void *connection, int64_t deadline_ns,
                         sqlock_error *err)
{
    const sqlock_statement statement = {.text = "COMMIT",
                                        .id = LK_SQLITE_COMMIT};
    struct lk_sqlite *c = connection;
    int rc = 0;

    if (c->db != NULL)
        rc = lk_sqlite_check_identity(c, err);
    if (rc == 0)
        rc = sqlite_execute(connection, &statement, NULL, 0, deadline_ns, NULL,
                            err);
    if (rc < 0)
        (void)sqlite_rollback(connection, LK_NEVER, NULL);
    return rc;
}

static void sqlite_abort(void *connection)
{
    struct lk_sqlite *c = connection;

    if (!atomic_load(&c->can_be_aborted))
        return;
    (void)pthread_mutex_lock(&c->guard);
    /* sqlite3_interrupt() ends only a running statement.  The flag ends a call
     * that is about to begin (the connection is then lost), a call that has not
     * begun its statement yet, and a wait for the file's lock. */
    if (c->db != NULL)
        atomic_store(&c->is_aborted, true);
    if (c->is_in_call && c->db != NULL) {
        sqlite3_interrupt(c->db);
        (void)pthread_cond_signal(&c->changed);
    }
    (void)pthread_mutex_unlock(&c->guard);
}

static void *sqlite_native(void *connection)
{
    struct lk_sqlite *c = connection;

    return c->db;
}

static void sqlite_describe(void *connection, sqlock_description *description)
{
    const struct lk_sqlite *c = connection;

    *description = (sqlock_description){.connection_id = 0};
    if (c->number != 0)
        (void)snprintf(description->epoch, sizeof description->epoch,
                       "%llx:%llx", (unsigned long long)c->device,
                       (unsigned long long)c->number);
    (void)snprintf(description->server, sizeof description->server, "%s",
                   sqlite_client());
    (void)snprintf(description->client, sizeof description->client, "%s",
                   sqlite_client());
}

const sqlock_driver lk_driver_sqlite = {
    .name = "sqlite",
    .schemes = "sqlite",
    .connection_bytes = sizeof(struct lk_sqlite),
    .has_one_writer = true,
    .dialect = &lk_dialect_sqlite,
    .client = sqlite_client,
    .check_url = lk_sqlite_check_url,
    .open = sqlite_open,
    .close = sqlite_close,
    .is_alive = sqlite_is_alive,
    .execute = sqlite_execute,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .abort = sqlite_abort,
    .native = sqlite_native,
    .describe = sqlite_describe,
    .transactions = &lk_sqlite_transactions,
    .bell = &lk_sqlite_bell,
    .stock = &lk_sqlite_stock,
};
