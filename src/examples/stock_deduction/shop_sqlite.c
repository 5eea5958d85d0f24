/*
 * shop_sqlite.c - the demo's tables in an SQLite file
 *
 * Statements are run in autocommit, so that nothing but the caller's own lock
 * stands between a read and the write that follows it.
 */
#include "shop.h"

#ifdef SQLOCK_WITH_SQLITE

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest wait for another process's write to the file. */
enum { BUSY_MS = 30000 };

struct sqlite_shop {
    sqlite3 *db;
    sqlite3_stmt *read;
    sqlite3_stmt *write;
};

static int fail(struct shop *shop)
{
    struct sqlite_shop *own = shop->handle;

    return shop_fail(shop, "SQLite: %s", sqlite3_errmsg(own->db));
}

static int sqlite_run(struct shop *shop, const char *sql)
{
    struct sqlite_shop *own = shop->handle;

    if (sqlite3_exec(own->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(shop);
    return 0;
}

static int sqlite_open(struct shop *shop, const char *url)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    struct sqlite_shop *own;
    char path[PATH_MAX];

    own = calloc(1, sizeof *own);
    if (own == NULL)
        return shop_fail(shop, "out of memory");
    shop->handle = own;
    url += strlen(shop->library->scheme);
    if (shop_url_decode(path, sizeof path, url, strlen(url)) < 0)
        return shop_fail(shop, "the path in the URL is too long");
    if (sqlite3_open_v2(path, &own->db, flags, NULL) != SQLITE_OK)
        return fail(shop);
    (void)sqlite3_busy_timeout(own->db, BUSY_MS);
    (void)snprintf(shop->server, sizeof shop->server, "SQLite %s",
                   sqlite3_libversion());
    /* Readers and one writer at a time, and no fsync per order. */
    if (sqlite_run(shop, "PRAGMA journal_mode = WAL") < 0)
        return -1;
    return sqlite_run(shop, "PRAGMA synchronous = NORMAL");
}

static void sqlite_close(struct shop *shop)
{
    struct sqlite_shop *own = shop->handle;

    if (own == NULL)
        return;
    (void)sqlite3_finalize(own->read);
    (void)sqlite3_finalize(own->write);
    (void)sqlite3_close(own->db);
    free(own);
    shop->handle = NULL;
}

/* Prepare once per connection; the table does not exist when it is opened. */
static int prepare(struct shop *shop, sqlite3_stmt **statement,
                   const char *format)
{
    struct sqlite_shop *own = shop->handle;
    char *sql;
    int rc;

    if (*statement != NULL)
        return 0;
    sql = sqlite3_mprintf(format, shop->table);
    if (sql == NULL)
        return shop_fail(shop, "out of memory");
    rc = sqlite3_prepare_v2(own->db, sql, -1, statement, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? 0 : fail(shop);
}

static int sqlite_read(struct shop *shop, int64_t item, struct stock *out)
{
    struct sqlite_shop *own = shop->handle;
    int rc;

    rc = prepare(shop, &own->read,
                 "SELECT quantity, sales FROM \"%w\" WHERE item = ?");
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(own->read, 1, item);
    if (sqlite3_step(own->read) == SQLITE_ROW) {
        out->quantity = sqlite3_column_int64(own->read, 0);
        out->sales = sqlite3_column_int64(own->read, 1);
    } else {
        rc = fail(shop);
    }
    /* Ends the read transaction, too. */
    (void)sqlite3_reset(own->read);
    return rc;
}

static int sqlite_write(struct shop *shop, int64_t item,
                        const struct stock *stock)
{
    struct sqlite_shop *own = shop->handle;
    int rc;

    rc = prepare(shop, &own->write,
                 "UPDATE \"%w\" SET quantity = ?, sales = ? WHERE item = ?");
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(own->write, 1, stock->quantity);
    (void)sqlite3_bind_int64(own->write, 2, stock->sales);
    (void)sqlite3_bind_int64(own->write, 3, item);
    if (sqlite3_step(own->write) != SQLITE_DONE)
        rc = fail(shop);
    else if (sqlite3_changes(own->db) != 1)
        rc = shop_fail(shop, "SQLite: no row was changed");
    (void)sqlite3_reset(own->write);
    return rc;
}

const struct shop_library shop_sqlite = {
    .scheme = "sqlite:",
    .open = sqlite_open,
    .close = sqlite_close,
    .run = sqlite_run,
    .read = sqlite_read,
    .write = sqlite_write,
};

#else
typedef int shop_sqlite_left_out; /* a file must not be empty in ISO C */
#endif
