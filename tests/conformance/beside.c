/*
 * beside.c - sqlock_diagnose() checks the tables beside the lock table, too:
 * that of records (sqlock/once.h), and those of stock
 */
#include "diagnosis.h"

#include <stdio.h>
#include <unistd.h>

#include "sqlock/stock.h"
#include "sqlock/once.h"
#include "support/login.h"

static const char *const beside[] = {"DONE", "STOCK", "STOCK_ENTRY",
                                     "STOCK_RESERVATION"};
#define BESIDE (sizeof beside / sizeof *beside)

/* Create a lock table with a prefix of its own and, if has_others, the tables
 * beside it.  Write the prefix to `prefix`, and return options with it. */
static sqlock_options make_tables(struct fixture *f, char prefix[32],
                                  bool has_others)
{
    sqlock_options options = fixture_options(f);

    (void)snprintf(prefix, 32, "DR%ldN%u_", (long)getpid(), f->serial);
    options.table_prefix = prefix;
    assert_ok(
        sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SQLOCK, &f->err));
    if (has_others) {
        assert_ok(sqlock_once_schema_create(f->url, &options, &f->err));
        assert_ok(sqlock_stock_schema_create(f->url, &options, &f->err));
    }
    return options;
}

static void drop_tables(struct fixture *f, const char *prefix)
{
    size_t i;

    sql_drop_locks(&f->sql, prefix);
    for (i = 0; i < BESIDE; i++)
        (void)sql_run(&f->sql, "DROP TABLE IF EXISTS %s%s", prefix, beside[i]);
}

/* Assert the worst severities that the checks "once" and "stock" have found.
 * The first finding of the worse check, or of "stock" if they are equal, must
 * contain `part`. */
static void check_tables(struct fixture *f, const char *url,
                         const sqlock_options *options, sqlock_severity once,
                         sqlock_severity stock, const char *part)
{
    struct diagnosis found = diagnosis_make(f, url, options);

    assert_int_equal(diagnosis_worst(&found, "once"), once);
    assert_int_equal(diagnosis_worst(&found, "stock"), stock);
    assert_contains(
        diagnosis_find(&found, once > stock ? "once" : "stock")->found, part);
    diagnosis_clear(&found);
}

TEST_ON(test_tables_that_are_not_there_are_no_fault, ON_ALL, IN_SQLOCK)
{
    char prefix[32];
    sqlock_options options = make_tables(f, prefix, false);

    check_tables(f, f->url, &options, SQLOCK_FINE, SQLOCK_FINE, "no table");
    drop_tables(f, prefix);
}

TEST_ON(test_tables_beside_it_are_looked_at, ON_ALL, IN_SQLOCK)
{
    char prefix[32];
    sqlock_options options = make_tables(f, prefix, true);

    check_tables(f, f->url, &options, SQLOCK_FINE, SQLOCK_FINE,
                 "can read and write");
    (void)sql_run(&f->sql, "DROP TABLE %sSTOCK_RESERVATION", prefix);
    check_tables(f, f->url, &options, SQLOCK_FINE, SQLOCK_FAILURE,
                 "STOCK_RESERVATION");
    drop_tables(f, prefix);
}

TEST_ON(test_tables_without_our_rights_are_told, ON_SERVERS, IN_SQLOCK)
{
    char prefix[32];
    sqlock_options options = make_tables(f, prefix, true);
    struct login login;
    char table[64];
    size_t i;

    login_make(&login, f, "beside");
    (void)snprintf(table, sizeof table, "%sLOCK", prefix);
    login_grant(&login, "SELECT, INSERT, UPDATE", table);
    for (i = 0; i < BESIDE; i++) {
        (void)snprintf(table, sizeof table, "%s%s", prefix, beside[i]);
        /* The right to UPDATE STOCK_ENTRY is missing. */
        login_grant(&login,
                    i == 2 ? "SELECT, INSERT" : "SELECT, INSERT, UPDATE",
                    table);
    }
    check_tables(f, login.url, &options, SQLOCK_FINE, SQLOCK_WARNING,
                 "STOCK_ENTRY");
    (void)sql_run(&login.admin, "REVOKE INSERT ON %sDONE FROM %s", prefix,
                  login.parts.user);
    check_tables(f, login.url, &options, SQLOCK_WARNING, SQLOCK_WARNING,
                 "STOCK_ENTRY");
    login_drop(&login, f);
    drop_tables(f, prefix);
}

TEST_ON(test_a_table_that_forgets_is_a_failure, ON_SERVERS, IN_SQLOCK)
{
    char prefix[32];
    sqlock_options options = make_tables(f, prefix, true);

    if (f->database->bit == ON_POSTGRES) {
        (void)sql_run(&f->sql, "ALTER TABLE %sDONE SET UNLOGGED", prefix);
    } else { /* Oracle's MySQL refuses the default in a MEMORY table */
        (void)sql_run(&f->sql,
                      "ALTER TABLE %sDONE ALTER COLUMN DONE_DATE DROP DEFAULT",
                      prefix);
        (void)sql_run(&f->sql, "ALTER TABLE %sDONE ENGINE = MEMORY", prefix);
    }
    check_tables(f, f->url, &options, SQLOCK_FAILURE, SQLOCK_FINE, "DONE");
    drop_tables(f, prefix);
}
