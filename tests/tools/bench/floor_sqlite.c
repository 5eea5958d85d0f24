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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "base/url.h"

#define BUSY_TRIES 100000 /* at least 5 s */

/* Prepared statements of a sale, in the order of their execution. */
enum {
    SALE_BEGIN,
    SALE_SELECT,
    SALE_UPDATE,
    SALE_INSERT,
    SALE_COMMIT,
    SALE_STATEMENTS
};

struct connection {
    sqlite3 *db;
    sqlite3_stmt *update;
    sqlite3_stmt *sale[SALE_STATEMENTS];
    char key[37];
    unsigned seed;
    bool waits_for_disk;
};

static int fail(struct bench_failure *failure, const char *what, sqlite3 *db)
{
    return bench_fail(failure, "SQLite, %s: %s", what, sqlite3_errmsg(db));
}

static int on_busy(void *context, int tries)
{
    struct connection *me = context;
    struct timespec pause = {0, 0};

    pause.tv_nsec = 50000 + rand_r(&me->seed) % 150000;
    (void)nanosleep(&pause, NULL);
    return tries < BUSY_TRIES;
}

static int run(sqlite3 *db, const char *text, struct bench_failure *failure)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        return fail(failure, text, db);
    return 0;
}

static int open_file(struct connection *me, const char *text,
                     struct bench_failure *failure)
{
    struct lk_url url = {0};
    const char *level;
    sqlock_error err;
    int rc = 0;

    if (lk_url_parse(&url, text, &err) != 0)
        rc = bench_fail(failure, "%s", err.message);
    else if (sqlite3_open(url.path, &me->db) != SQLITE_OK)
        rc = fail(failure, "open", me->db);
    else if (sqlite3_busy_handler(me->db, on_busy, me) != SQLITE_OK)
        rc = fail(failure, "busy handler", me->db);
    level = lk_url_parameter(&url, "synchronous");
    me->waits_for_disk = level != NULL && strcmp(level, "full") == 0;
    lk_url_clear(&url);
    return rc;
}

static int prepare(sqlite3_stmt **out, sqlite3 *db, const char *text,
                   struct bench_failure *failure)
{
    if (sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, out,
                           NULL) != SQLITE_OK)
        return fail(failure, text, db);
    return 0;
}

static int open_sqlite(void **out, const struct bench_target *target,
                       unsigned client, struct bench_failure *failure)
{
    struct connection *me = calloc(1, sizeof *me);
    char text[640];
    int rc;

    *out = me;
    if (me == NULL)
        return bench_fail(failure, "out of memory");
    me->seed = client + 1;
    (void)snprintf(me->key, sizeof me->key, "%036u", client);
    rc = open_file(me, target->url, failure);
    if (rc == 0)
        rc = run(me->db, "PRAGMA journal_mode=WAL", failure);
    if (rc == 0)
        rc = run(me->db,
                 me->waits_for_disk ? "PRAGMA synchronous=FULL"
                                    : "PRAGMA synchronous=NORMAL",
                 failure);
    if (rc != 0)
        return rc;
    (void)snprintf(text, sizeof text,
                   "INSERT OR IGNORE INTO %sLOCK (" FLOOR_COLUMNS
                   ") VALUES ('%s', " FLOOR_VALUES ", 1, 2)",
                   target->floor_prefix, me->key);
    rc = run(me->db, text, failure);
    if (rc != 0)
        return rc;
    (void)snprintf(text, sizeof text,
                   "UPDATE %sLOCK SET " FLOOR_UPDATE
                   " WHERE LOCK_KEY = ?1 AND REGION = ?2",
                   target->floor_prefix);
    rc = prepare(&me->update, me->db, text, failure);
    if (rc != 0)
        return rc;
    if (sqlite3_bind_text(me->update, 1, me->key, -1, SQLITE_STATIC) !=
            SQLITE_OK ||
        sqlite3_bind_text(me->update, 2, FLOOR_REGION, -1, SQLITE_STATIC) !=
            SQLITE_OK)
        return fail(failure, "bind", me->db);
    return 0;
}

static void close_sqlite(void *connection)
{
    struct connection *me = connection;
    size_t i;

    if (me == NULL)
        return;
    for (i = 0; i < SALE_STATEMENTS; i++)
        (void)sqlite3_finalize(me->sale[i]);
    (void)sqlite3_finalize(me->update);
    (void)sqlite3_close(me->db);
    free(me);
}

static int update_sqlite(void *connection, struct bench_failure *failure)
{
    struct connection *me = connection;
    int rc = 0;

    if (sqlite3_step(me->update) != SQLITE_DONE || sqlite3_changes(me->db) != 1)
        rc = fail(failure, "update", me->db);
    (void)sqlite3_reset(me->update);
    return rc;
}

static void *native_sqlite(void *connection)
{
    struct connection *me = connection;

    return me->db;
}

static int describe_sqlite(void *connection, struct bench_server *server,
                           struct bench_failure *failure)
{
    struct connection *me = connection;
    sqlite3_stmt *statement = NULL;
    int rc;

    rc = prepare(&statement, me->db, "PRAGMA journal_mode", failure);
    if (rc == 0 && sqlite3_step(statement) != SQLITE_ROW)
        rc = fail(failure, "describe", me->db);
    if (rc == 0) {
        (void)snprintf(server->version, sizeof server->version, "SQLite %s",
                       sqlite3_libversion());
        (void)snprintf(server->settings, sizeof server->settings,
                       "journal_mode=%s synchronous=%s",
                       (const char *)sqlite3_column_text(statement, 0),
                       me->waits_for_disk ? "FULL" : "NORMAL");
        server->is_durable = true;
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

static int run_sqlite(void *connection, const char *text,
                      struct bench_failure *failure)
{
    struct connection *me = connection;

    return run(me->db, text, failure);
}

static int number_sqlite(void *connection, const char *text, int64_t *number,
                         struct bench_failure *failure)
{
    struct connection *me = connection;
    sqlite3_stmt *statement = NULL;
    int rc;

    rc = prepare(&statement, me->db, text, failure);
    if (rc == 0 && sqlite3_step(statement) != SQLITE_ROW)
        rc = fail(failure, text, me->db);
    if (rc == 0)
        *number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return rc;
}

static int prepare_sale_sqlite(void *connection,
                               const struct bench_target *target,
                               const char *item, struct bench_failure *failure)
{
    struct connection *me = connection;
    struct floor_sale sale;
    const char *texts[SALE_STATEMENTS] = {"BEGIN IMMEDIATE", sale.select,
                                          sale.update, sale.insert, "COMMIT"};
    size_t i;

    floor_sale_texts(&sale, target, item, "", "?1");
    for (i = 0; i < SALE_STATEMENTS; i++) {
        if (prepare(&me->sale[i], me->db, texts[i], failure) != 0)
            return -1;
    }
    return 0;
}

static int step(struct connection *me, int which, int expected,
                struct bench_failure *failure)
{
    int rc = 0;

    if (sqlite3_step(me->sale[which]) != expected)
        rc = fail(failure, "a sale", me->db);
    (void)sqlite3_reset(me->sale[which]);
    return rc;
}

static int sell_sqlite(void *connection, const char *order,
                       struct bench_failure *failure)
{
    struct connection *me = connection;

    if (step(me, SALE_BEGIN, SQLITE_DONE, failure) != 0 ||
        step(me, SALE_SELECT, SQLITE_ROW, failure) != 0 ||
        step(me, SALE_UPDATE, SQLITE_DONE, failure) != 0)
        return -1;
    if (order != NULL) {
        (void)sqlite3_bind_text(me->sale[SALE_INSERT], 1, order, -1,
                                SQLITE_STATIC);
        if (step(me, SALE_INSERT, SQLITE_DONE, failure) != 0)
            return -1;
    }
    return step(me, SALE_COMMIT, SQLITE_DONE, failure);
}

const struct floor_driver floor_sqlite = {
    FLOOR_MEMBERS(sqlite),
    .begin = "BEGIN IMMEDIATE",
};

#endif /* SQLOCK_WITH_SQLITE */
