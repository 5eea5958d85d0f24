/*
 * floor_sqlite.c - the floor driver of SQLite
 *
 * As in sqlock's driver the file has a write-ahead log and synchronous=NORMAL:
 * commits outlast the death of the process, but not that of the machine.  They
 * outlast both with synchronous=full in the URL, which with.sh writes there
 * under SQLOCK_TEST_DURABLE=1.  A client that meets another writer tries again
 * after 50 to 200 us.  SQLite's own busy timeout backs off so far that clients
 * starve.
 */
#include "floor.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/url.h"

#define BUSY_TRIES 100000 /* at least 5 s */

struct client {
    sqlite3 *db;
    sqlite3_stmt *statements[FLOOR_STATEMENTS];
    unsigned seed;
};

static int fail(struct bench_failure *failure, const char *what, sqlite3 *db)
{
    return bench_fail(failure, "SQLite, %s: %s", what, sqlite3_errmsg(db));
}

static int on_busy(void *context, int tries)
{
    struct client *me = context;
    struct timespec pause = {0, 0};

    pause.tv_nsec = 50000 + rand_r(&me->seed) % 150000;
    (void)nanosleep(&pause, NULL);
    return tries < BUSY_TRIES;
}

static int run_sqlite(void *client, const char *text,
                      struct bench_failure *failure)
{
    const struct client *me = client;

    if (sqlite3_exec(me->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return fail(failure, text, me->db);
    return 0;
}

static int prepare_sqlite(void *client, enum floor_statement which,
                          const char *text, struct bench_failure *failure)
{
    struct client *me = client;

    if (sqlite3_prepare_v3(me->db, text, -1, SQLITE_PREPARE_PERSISTENT,
                           &me->statements[which], NULL) != SQLITE_OK)
        return fail(failure, text, me->db);
    return 0;
}

static int open_sqlite(void **out, const char *text,
                       struct bench_failure *failure)
{
    static atomic_uint opened;
    struct client *me = calloc(1, sizeof *me);
    struct lk_url url = {0};
    const char *level;
    sqlock_error err;
    int rc = 0;

    *out = me;
    if (me == NULL)
        return bench_fail(failure, "out of memory");
    me->seed = (unsigned)getpid() * 256 + atomic_fetch_add(&opened, 1);
    if (lk_url_parse(&url, text, &err) != 0)
        rc = bench_fail(failure, "%s", err.message);
    else if (sqlite3_open(url.path, &me->db) != SQLITE_OK ||
             sqlite3_busy_handler(me->db, on_busy, me) != SQLITE_OK)
        rc = fail(failure, "open", me->db);
    level = lk_url_parameter(&url, "synchronous");
    if (rc == 0)
        rc = run_sqlite(me,
                        level != NULL && strcmp(level, "full") == 0
                            ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"
                            : "PRAGMA journal_mode=WAL; "
                              "PRAGMA synchronous=NORMAL",
                        failure);
    if (rc == 0)
        rc = prepare_sqlite(me, FLOOR_BEGIN, "BEGIN IMMEDIATE", failure);
    if (rc == 0)
        rc = prepare_sqlite(me, FLOOR_COMMIT, "COMMIT", failure);
    lk_url_clear(&url);
    return rc;
}

static void close_sqlite(void *client)
{
    struct client *me = client;

    for (size_t i = 0; i < FLOOR_STATEMENTS; i++)
        (void)sqlite3_finalize(me->statements[i]);
    (void)sqlite3_close(me->db);
    free(me);
}

static void *native_sqlite(void *client)
{
    const struct client *me = client;

    return me->db;
}

static int execute_sqlite(void *client, enum floor_statement which,
                          const char *const *values, unsigned count,
                          struct bench_failure *failure)
{
    const struct client *me = client;
    sqlite3_stmt *statement = me->statements[which];
    int rc = 0;

    for (unsigned i = 0; i < count; i++)
        (void)sqlite3_bind_text(statement, (int)i + 1, values[i], -1,
                                SQLITE_STATIC);
    if (sqlite3_step(statement) !=
            (which == FLOOR_SELECT ? SQLITE_ROW : SQLITE_DONE) ||
        (which < FLOOR_BEGIN && which != FLOOR_SELECT &&
         sqlite3_changes(me->db) != 1))
        rc = fail(failure, "execute", me->db);
    (void)sqlite3_reset(statement);
    return rc;
}

static int row_sqlite(void *client, const char *text,
                      char cells[FLOOR_CELLS][FLOOR_CELL_SIZE],
                      struct bench_failure *failure)
{
    const struct client *me = client;
    sqlite3_stmt *statement = NULL;
    int count = -1;

    if (sqlite3_prepare_v2(me->db, text, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        (void)fail(failure, text, me->db);
    else
        count = sqlite3_column_count(statement);
    for (int i = 0; i < count; i++)
        (void)snprintf(cells[i], FLOOR_CELL_SIZE, "%s",
                       (const char *)sqlite3_column_text(statement, i));
    (void)sqlite3_finalize(statement);
    return count;
}

const struct floor_driver floor_sqlite = {
    FLOOR_MEMBERS(sqlite),
    .begin = "BEGIN IMMEDIATE",
    .locking = "",
    .insert = "INSERT OR IGNORE",
    .times = "1, 2",
    .unless = "",
    .places = {"?1", "?2"},
    .prepares_all = true,
    .describe = "SELECT 'SQLite ' || sqlite_version(), 'journal_mode=' || "
                "(SELECT journal_mode FROM pragma_journal_mode) || "
                "' synchronous=' || iif((SELECT synchronous FROM "
                "pragma_synchronous) = 2, 'FULL', 'NORMAL'), 1",
};

#endif /* SQLOCK_WITH_SQLITE */
