/*
 * functions.c - the SQL functions the dialect is written with.
 *
 * SQLite's own clocks do not do: CURRENT_TIMESTAMP counts whole seconds, and
 * unixepoch('subsec') is NULL before 3.42 (F14).
 */
#include <time.h>

#include "drivers/sqlite/connection.h"

/*
 * sqlock_now(): microseconds since 1970 UTC, one value for all of a statement.
 *
 * It is not declared deterministic, so SQLite neither computes it while it
 * prepares a statement nor moves it before the statement's OP_Transaction.
 * That opcode is where a statement waits for the file's write lock; hence the
 * clock is read when the lock is ours, however long the wait was, and the
 * lease that is written is a whole one.  The driver suite holds it to this.
 */
static void sql_now(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct lk_sqlite *c = sqlite3_user_data(context);
    int64_t now_us = c->now_us;

    (void)argc;
    (void)argv;
    if (now_us == 0) {
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        /* Statements that the application runs on the native handle are not
         * seen to begin and end here: they get a fresh value each time. */
        if (c->is_in_call)
            c->now_us = now_us;
    }
    sqlite3_result_int64(context, now_us);
}

/* sqlock_readonly(): 1 when the file cannot be written, or else 0. */
static void sql_readonly(sqlite3_context *context, int argc,
                         sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(context);

    (void)argc;
    (void)argv;
    sqlite3_result_int(context, sqlite3_db_readonly(db, "main") == 1);
}

/* sqlock_enqueue(number): 1 when somebody else has it, or there is none;
 * sqlock_notify(number): null. */
static void sql_enqueue(sqlite3_context *context, int argc,
                        sqlite3_value **argv)
{
    (void)argc;
    sqlite3_result_int(context,
                       !lk_sqlite_queue_take(sqlite3_user_data(context),
                                             sqlite3_value_int64(argv[0])));
}

static void sql_notify(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    lk_sqlite_queue_notify(sqlite3_user_data(context),
                           sqlite3_value_int64(argv[0]));
    sqlite3_result_null(context);
}

int lk_sqlite_add_functions(struct lk_sqlite *c)
{
    /* Not for use in triggers and views of whoever made the file. */
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    int rc;

    rc = sqlite3_create_function(c->db, "sqlock_now", 0, flags, c, sql_now,
                                 NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(c->db, "sqlock_enqueue", 1, flags, c,
                                     sql_enqueue, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(c->db, "sqlock_notify", 1, flags, c,
                                     sql_notify, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(c->db, "sqlock_waiters", 0, flags, c,
                                     lk_sqlite_waiters, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    return sqlite3_create_function(c->db, "sqlock_readonly", 0, flags, c,
                                   sql_readonly, NULL, NULL);
}
