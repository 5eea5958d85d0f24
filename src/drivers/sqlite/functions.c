/*
 * functions.c - the SQL functions that the dialect uses
 *
 * SQLite's own clocks are too coarse, or too new: CURRENT_TIMESTAMP counts
 * whole seconds, and unixepoch('subsec') is NULL before 3.42 (F14).
 */
#include <sys/vfs.h>
#include <time.h>

#include "drivers/sqlite/connection.h"

/*
 * sqlock_now(): microseconds since 1970 UTC, one value throughout a statement.
 *
 * The function is not declared deterministic.  So SQLite calls it neither while
 * preparing a statement nor before the statement's opcode OP_Transaction, where
 * a statement waits for the file's write lock.  Hence the clock is read after
 * that wait, however long it was, and a lease that is written lasts for its
 * whole TTL.  The drivers' tests check this order.
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
        /* A statement that the application runs on the native handle gets a
         * fresh value each time: its beginning is not noticed here. */
        if (c->is_in_call)
            c->now_us = now_us;
    }
    sqlite3_result_int64(context, now_us);
}

/* sqlock_insert_id(id): the id, which becomes the statement's insert id. */
static void sql_insert_id(sqlite3_context *context, int argc,
                          sqlite3_value **argv)
{
    sqlite3_int64 id = sqlite3_value_int64(argv[0]);

    (void)argc;
    sqlite3_set_last_insert_rowid(sqlite3_context_db_handle(context), id);
    sqlite3_result_int64(context, id);
}

/* sqlock_readonly(): 1 if the file cannot be written, otherwise 0. */
static void sql_readonly(sqlite3_context *context, int argc,
                         sqlite3_value **argv)
{
    sqlite3 *db = sqlite3_context_db_handle(context);

    (void)argc;
    (void)argv;
    sqlite3_result_int(context, sqlite3_db_readonly(db, "main") == 1);
}

#define OVERLAY_FS 0x794c7630

/* sqlock_file_system(): 'overlay' if the file is in a layer of a container's
 * own, otherwise 'local'. */
static void sql_file_system(sqlite3_context *context, int argc,
                            sqlite3_value **argv)
{
    const char *path =
        sqlite3_db_filename(sqlite3_context_db_handle(context), "main");
    struct statfs system;
    bool is_overlay = path != NULL && statfs(path, &system) == 0 &&
                      (unsigned long)system.f_type == OVERLAY_FS;

    (void)argc;
    (void)argv;
    sqlite3_result_text(context, is_overlay ? "overlay" : "local", -1,
                        SQLITE_STATIC);
}

/* sqlock_collation(table, column): the collation that the column's comparisons
 * use; null for what is no table. */
static void sql_collation(sqlite3_context *context, int argc,
                          sqlite3_value **argv)
{
    const char *collation = NULL;

    (void)argc;
    if (sqlite3_table_column_metadata(
            sqlite3_context_db_handle(context), "main",
            (const char *)sqlite3_value_text(argv[0]),
            (const char *)sqlite3_value_text(argv[1]), NULL, &collation, NULL,
            NULL, NULL) != SQLITE_OK)
        collation = NULL;
    sqlite3_result_text(context, collation, -1, SQLITE_TRANSIENT);
}

int lk_sqlite_add_functions(struct lk_sqlite *c)
{
    /* DIRECTONLY: triggers and views in the file, which a stranger may have
     * made, cannot use these functions. */
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    static const struct {
        const char *name;
        int arguments;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"sqlock_now", 0, sql_now},
        {"sqlock_insert_id", 1, sql_insert_id},
        {"sqlock_ring", 2, lk_sqlite_ring},
        {"sqlock_tell", 1, lk_sqlite_tell},
        {"sqlock_file_system", 0, sql_file_system},
        {"sqlock_collation", 2, sql_collation},
        {"sqlock_readonly", 0, sql_readonly},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0;
         rc == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        rc = sqlite3_create_function(c->db, functions[i].name,
                                     functions[i].arguments, flags, c,
                                     functions[i].call, NULL, NULL);
    return rc;
}
