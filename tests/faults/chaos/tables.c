/*
 * tables.c - the tables of a round: of locks, stock, guarded writes and what
 * was done, and the files of the other servers of a quorum
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"
#include "sqlock/once.h"
#include "sqlock/stock.h"
#include "support/history.h"

/* Let a server that may have forgotten leases grant none for as long as those
 * of the processes last: the registry that made the tables has asked for a
 * minute. */
static void forget_longest(const struct fixture *f)
{
    struct sql sql;

    if (f->database->bit == ON_SQLITE)
        return; /* it forgets none */
    assert_int_equal(sql_open(&sql, f->database, f->url), 0);
    (void)sql_run(&sql, "UPDATE %sLOCK_SERVER SET LONGEST_MS = %d", f->prefix,
                  TTL_MS);
    sql_close(&sql);
}

void tables_open(struct chaos *chaos, const struct database *database)
{
    struct fixture *f = &chaos->fixture;
    sqlock_options options;
    sqlock_stock *stock = NULL;
    struct sql sql;
    char prefix[32];
    static unsigned serial;

    (void)snprintf(prefix, sizeof prefix, "C%ld_%u_", (long)getpid(), ++serial);
    assert_lock_ok(fixture_create(f, database, SQLOCK_LAYOUT_SQLOCK, prefix),
                   &f->err);
    options = fixture_options(f);
    assert_ok(sqlock_stock_schema_create(f->url, &options, &f->err));
    assert_ok(sqlock_once_schema_create(f->url, &options, &f->err));
    assert_lock_ok(sql_open(&sql, f->database, f->url), &sql.err);
    (void)sql_run(&sql,
                  "CREATE TABLE %sWRITES (NUMBER INTEGER PRIMARY KEY, "
                  "NAME VARCHAR(16), TOKEN BIGINT)",
                  f->prefix);
    (void)sql_run(&sql,
                  "CREATE TABLE %sFENCES (NAME VARCHAR(16) PRIMARY KEY, "
                  "TOKEN BIGINT, OWNER VARCHAR(16))",
                  f->prefix);
    for (size_t i = 0; i < LOCKS; i++)
        (void)sql_run(&sql, "INSERT INTO %sFENCES VALUES ('%s', 0, '')",
                      f->prefix, chaos_locks[i]);
    sql_close(&sql);
    for (int i = 0; i < SERVERS - 1; i++) {
        const char *folder = getenv("SQLOCK_TEST_DIR");

        (void)snprintf(chaos->files[i], sizeof chaos->files[i],
                       "sqlite:%s/%squorum%d.db",
                       folder != NULL ? folder : "/tmp", prefix, i);
        if (sqlock_schema_create(chaos->files[i], &options,
                                 SQLOCK_LAYOUT_SQLOCK, NULL) != 0)
            chaos->files[i][0] = '\0';
    }
    f->a = fixture_registry(f, NULL);
    assert_ok(sqlock_stock_open(&stock, f->a, NULL, &f->err));
    assert_ok(
        sqlock_stock_set(stock, NULL, NULL, ITEM, STOCK_BEGAN, NULL, &f->err));
    sqlock_stock_close(stock);
    registry_end(f->a); /* no connection is open while processes begin */
    forget_longest(f);
}

void tables_drop(struct chaos *chaos)
{
    static const char *const tables[] = {
        "WRITES", "FENCES", "DONE", "STOCK_ENTRY", "STOCK_RESERVATION",
        "STOCK"};
    struct fixture *f = &chaos->fixture;
    struct sql sql;

    assert_lock_ok(sql_open(&sql, f->database, f->url), &sql.err);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        (void)sql_try(&sql, NULL, "DROP TABLE %s%s", f->prefix, tables[i]);
    sql_drop_locks(&sql, f->prefix);
    sql_close(&sql);
    for (int i = 0; i < SERVERS - 1 && chaos->files[i][0] != '\0'; i++)
        (void)unlink(strchr(chaos->files[i], ':') + 1);
}

void tables_print(struct chaos *chaos, FILE *out)
{
    struct fixture *f = &chaos->fixture;
    double now = history_ms(lk_boottime_ns());
    sqlock_result rows = {0};
    char text[200];
    struct sql sql;

    assert_lock_ok(sql_open(&sql, f->database, f->url), &sql.err);
    (void)fprintf(out, "end.1 left %s %.6f %.6f began=%d n=%" PRId64 "\n", ITEM,
                  now, now + 1, STOCK_BEGAN,
                  sql_integer(&sql, "SELECT QUANTITY FROM %sSTOCK", f->prefix));
    (void)snprintf(text, sizeof text,
                   "SELECT NUMBER, NAME, TOKEN FROM %sWRITES", f->prefix);
    assert_int_equal(
        sql.driver->execute(sql.connection, &(sqlock_statement){.text = text},
                            NULL, 0, check_deadline_ns(PATIENCE_MS), &rows,
                            &sql.err),
        0);
    for (size_t i = 0; i < rows.rows; i++) {
        const sqlock_value *cells = &rows.cells[i * rows.columns];

        (void)fprintf(
            out,
            "end.1 stored %s %.6f %.6f write=%" PRId64 " token=%" PRId64 "\n",
            cells[1].text, now, now + 1, cells[0].integer, cells[2].integer);
    }
    sqlock_result_clear(&rows);
    sql_close(&sql);
}
