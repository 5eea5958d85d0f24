/*
 * test_golden.c - every statement as it is sent, per database and layout, is
 * the one that sql/DATABASE/statements.sql shows to a reader
 *
 * `make statements` writes the files anew.
 */
#include "unit.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/drivers.h"
#include "db/statement.h"
#include "db/table.h"
#include "stock/sql/names.h"

#define WIDTH 79
#define WRITE_THEM "SQLOCK_WRITE_STATEMENTS"

static const char *const layouts[SQLOCK_LAYOUTS] = {
    [SQLOCK_LAYOUT_SQLOCK] = "sqlock",
    [SQLOCK_LAYOUT_SPRING7] = "spring7",
    [SQLOCK_LAYOUT_SPRING6] = "spring6",
};

static const char *const kinds[SQLOCK_SQL_KINDS] = {
    [SQLOCK_SQL_CLAIM] = "claim",
    [SQLOCK_SQL_RENEW] = "renew",
    [SQLOCK_SQL_RELEASE] = "release",
    [SQLOCK_SQL_READ] = "read",
    [SQLOCK_SQL_LIST] = "list",
    [SQLOCK_SQL_BREAK] = "break",
    [SQLOCK_SQL_BREAK_NOW] = "break now",
    [SQLOCK_SQL_REAP_BOUND] = "bound of a reap",
    [SQLOCK_SQL_REAP] = "reap",
    [SQLOCK_SQL_SERVER] = "server",
    [SQLOCK_SQL_DESCRIBE] = "describe",
    [SQLOCK_SQL_CLAIM_MANY] = "claim many",
    [SQLOCK_SQL_RENEW_MANY] = "renew many",
    [SQLOCK_SQL_RELEASE_MANY] = "release many",
    [SQLOCK_SQL_READ_MANY] = "read many",
    [SQLOCK_SQL_LOCK_MANY] = "lock many",
    [SQLOCK_SQL_HAND_OFF] = "hand over",
    [SQLOCK_SQL_RELEASE_NOTIFY] = "release while others wait",
    [SQLOCK_SQL_AFTER_RESTORE] = "after a restore",
    [SQLOCK_SQL_LIST_BEGIN] = "before list",
    [SQLOCK_SQL_FIND] = "find",
    [SQLOCK_SQL_FIND_BEGIN] = "before find all",
    [SQLOCK_SQL_FIND_PAGE] = "find all, in pages",
    [SQLOCK_SQL_WAITERS] = "who waits",
    [SQLOCK_SQL_GUARD] = "guard in another program, parameters as literals",
};

static const char *const tx_kinds[SQLOCK_TX_KINDS] = {
    [SQLOCK_TX_SQL_SEED] = "make a name's row",
    [SQLOCK_TX_SQL_GUARD] = "guard",
    [SQLOCK_TX_SQL_ASSERT] = "guard, or fail",
    [SQLOCK_TX_SQL_REAP] = "reap names",
};

static const char *const stock_kinds[SQLOCK_STOCK_KINDS] = {
    [SQLOCK_STOCK_SQL_READ] = "read",
    [SQLOCK_STOCK_SQL_LOCK] = "lock",
    [SQLOCK_STOCK_SQL_READ_VERSION] = "read with version",
    [SQLOCK_STOCK_SQL_DEDUCT] = "deduct",
    [SQLOCK_STOCK_SQL_SWAP] = "deduct from a version",
    [SQLOCK_STOCK_SQL_RESTORE] = "restore",
    [SQLOCK_STOCK_SQL_ASSIGN] = "assign",
    [SQLOCK_STOCK_SQL_MAKE] = "make an item",
    [SQLOCK_STOCK_SQL_TOTAL] = "total",
    [SQLOCK_STOCK_SQL_LIST] = "list",
    [SQLOCK_STOCK_SQL_LIST_TOTAL] = "list totals",
    [SQLOCK_STOCK_SQL_RECORD] = "record entries",
    [SQLOCK_STOCK_SQL_COMBINE] = "deduct and record",
    [SQLOCK_STOCK_SQL_ENTRIES] = "entries of orders",
    [SQLOCK_STOCK_SQL_UNDO] = "undo an order",
    [SQLOCK_STOCK_SQL_OLD] = "old orders",
    [SQLOCK_STOCK_SQL_FORGET_ENTRIES] = "forget orders",
    [SQLOCK_STOCK_SQL_RESERVE] = "reserve",
    [SQLOCK_STOCK_SQL_CLAIM] = "claim a reservation",
    [SQLOCK_STOCK_SQL_CANCEL] = "cancel a reservation",
    [SQLOCK_STOCK_SQL_LAPSE] = "let a reservation expire",
    [SQLOCK_STOCK_SQL_STATUS] = "look at a reservation",
    [SQLOCK_STOCK_SQL_DUE] = "reservations that are over",
    [SQLOCK_STOCK_SQL_FORGET_RESERVATIONS] = "forget reservations",
    [SQLOCK_STOCK_SQL_BUCKET_DEDUCT] = "deduct from a bucket",
    [SQLOCK_STOCK_SQL_BUCKET_COMBINE] = "deduct from a bucket and record",
    [SQLOCK_STOCK_SQL_BUCKETS] = "lock buckets",
    [SQLOCK_STOCK_SQL_SPREAD] = "spread over buckets",
};

/* --- writing --- */

/* Return whether a word begins a clause.  Outside parentheses a clause begins a
 * new line. */
static bool begins_clause(const char *word, size_t length)
{
    static const char *const clauses[] = {
        "FROM",   "JOIN",      "LEFT",  "VALUES", "SET",   "WHERE",
        "ON",     "RETURNING", "ORDER", "LIMIT",  "UNION", "INSERT",
        "UPDATE", "DELETE",    "FOR",   "SELECT",
    };

    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++)
        if (strlen(clauses[i]) == length &&
            strncmp(clauses[i], word, length) == 0)
            return true;
    return false;
}

/* Return how many parentheses are open behind a word; `depth` are open before
 * it. */
static int depth_after(int depth, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        depth += (word[i] == '(') - (word[i] == ')');
    return depth;
}

/* Write a statement in lines of at most WIDTH columns, which are broken only at
 * blanks. */
static void write_wrapped(FILE *out, const char *text)
{
    size_t column = 0;
    int depth = 0;

    while (*text != '\0') {
        size_t word = strcspn(text, " ");

        if (column > 0 && depth == 0 && begins_clause(text, word))
            column = (size_t)fprintf(out, "\n  ") - 1;
        else if (column > 0 && column + 1 + word > WIDTH)
            column = (size_t)fprintf(out, "\n    ") - 1;
        else if (column > 0)
            column += (size_t)fprintf(out, " ");
        column += (size_t)fprintf(out, "%.*s", (int)word, text);
        depth = depth_after(depth, text, word);
        text += word + (text[word] == ' ');
    }
    (void)fprintf(out, ";\n");
}

static void write_statement(FILE *out, const char *what, const char *text)
{
    (void)fprintf(out, "\n-- %s\n", what);
    write_wrapped(out, text);
}

static const char *quoted_lock(const sqlock_driver *driver)
{
    static struct lk_table table;

    assert_int_equal(
        lk_table_from_prefix(&table, "INT_", driver->dialect, NULL), 0);
    return table.quoted;
}

static void write_rendered(FILE *out, const char *what,
                           struct lk_statement *statement, int rc)
{
    if (rc != SQLOCK_ENOTSUP)
        assert_int_equal(rc, 0);
    if (rc == 0)
        write_statement(out, what, statement->text);
    lk_statement_clear(statement);
}

/* Write the statements that are different with waiting=poll in the URL. */
static void write_polling(FILE *out, const sqlock_driver *driver, int layout)
{
    const sqlock_driver *polling;
    struct lk_statement queueing;
    struct lk_statement statement;
    char url[64];

    if (driver->polling == NULL)
        return;
    (void)snprintf(url, sizeof url, "%s://h/d?waiting=poll", driver->name);
    assert_int_equal(lk_driver_find(&polling, url, NULL), 0);
    (void)fprintf(out, "\n-- ---- layout %s, otherwise with waiting=poll\n",
                  layouts[layout]);
    for (int kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
        int rc = lk_statement_of_kind(
            &statement, polling->dialect, (sqlock_layout)layout,
            (sqlock_statement_kind)kind, quoted_lock(driver), 1);

        (void)lk_statement_of_kind(
            &queueing, driver->dialect, (sqlock_layout)layout,
            (sqlock_statement_kind)kind, quoted_lock(driver), 1);
        if (rc == 0 && strcmp(statement.text, queueing.text) != 0)
            write_statement(out, kinds[kind], statement.text);
        lk_statement_clear(&queueing);
        lk_statement_clear(&statement);
    }
}

static void write_locks(FILE *out, const sqlock_driver *driver, int layout)
{
    struct lk_statement statement;

    (void)fprintf(out, "\n-- ---- layout %s\n", layouts[layout]);
    for (int kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
        assert_non_null(kinds[kind]);
        write_rendered(out, kinds[kind], &statement,
                       lk_statement_of_kind(&statement, driver->dialect,
                                            (sqlock_layout)layout,
                                            (sqlock_statement_kind)kind,
                                            quoted_lock(driver), 1));
    }
    for (int kind = 0; kind < SQLOCK_TX_KINDS; kind++) {
        assert_non_null(tx_kinds[kind]);
        write_rendered(
            out, tx_kinds[kind], &statement,
            lk_statement_of_tx(&statement, driver, (sqlock_layout)layout,
                               (sqlock_tx_kind)kind, quoted_lock(driver), 1));
    }
}

static void write_stock(FILE *out, const sqlock_driver *driver)
{
    struct lk_statement statements[SQLOCK_STOCK_KINDS];
    struct lk_table tables[LK_STOCK_TABLES];
    struct lk_ids ids;
    struct lk_stock_names names = {
        .item = "ITEM",
        .quantity = "QUANTITY",
        .version = "VERSION",
        .has_buckets = true,
        .most = "9223372036854775807",
    };

    lk_ids_init(&ids);
    assert_int_equal(
        lk_stock_name_tables(tables, "INT_", driver->dialect, NULL), 0);
    names.stock = tables[LK_TABLE_STOCK].quoted;
    names.entry = tables[LK_TABLE_ENTRY].quoted;
    names.reservation = tables[LK_TABLE_RESERVATION].quoted;
    names.bucket = tables[LK_TABLE_BUCKET].quoted;
    assert_int_equal(lk_stock_render(statements, driver, &ids, &names, NULL),
                     0);
    (void)fprintf(out, "\n-- ---- stock, in our tables\n");
    for (int kind = 0; kind < SQLOCK_STOCK_KINDS; kind++) {
        assert_non_null(stock_kinds[kind]);
        if (statements[kind].text != NULL)
            write_statement(out, stock_kinds[kind], statements[kind].text);
        lk_statement_clear(&statements[kind]);
    }
    lk_ids_clear(&ids);
}

/* Return the text of statements.sql for the driver, to be freed by the
 * caller. */
static char *statements_of(const sqlock_driver *driver)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fprintf(out,
                  "-- Every statement as it is sent to the table INT_LOCK, by\n"
                  "-- layout, and to the tables of stock.  A parameter is %s\n"
                  "-- Written by `make statements` for readers and reviewers;\n"
                  "-- a test compares it.\n",
                  driver->dialect->placeholder == SQLOCK_PLACEHOLDER_DOLLAR
                      ? "$1, $2 and so on."
                      : "?.");
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        write_locks(out, driver, layout);
        write_polling(out, driver, layout);
    }
    if (driver->stock != NULL)
        write_stock(out, driver);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* --- comparing --- */

static void path_of(const sqlock_driver *driver, char out[512])
{
    char here[] = __FILE__;

    (void)snprintf(out, 512, "%s/../../sql/%s/statements.sql", dirname(here),
                   driver->name);
}

static char *read_all(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FILE *in = fopen(path, "r");
    int c;

    assert_non_null(out);
    while (in != NULL && (c = fgetc(in)) != EOF)
        (void)fputc(c, out);
    assert_int_equal(fclose(out), 0);
    if (in != NULL)
        (void)fclose(in);
    return text;
}

static void write_all(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    if (out != NULL) {
        (void)fputs(text, out);
        assert_int_equal(fclose(out), 0);
    } else {
        fail_msg("cannot write %s: %s", path, strerror(errno));
    }
}

/* Return the number of the first line that differs, from 1; 0: none does. */
static size_t first_difference(const char *a, const char *b)
{
    size_t line = 1;

    for (; *a == *b; a++, b++) {
        if (*a == '\0')
            return 0;
        line += *a == '\n';
    }
    return line;
}

static void test_statements_are_those_of_the_golden_files(void **state)
{
    (void)state;
    for (size_t i = 0; lk_drivers[i] != NULL; i++) {
        char *sent = statements_of(lk_drivers[i]);
        char path[512];
        char *golden;
        size_t line;

        path_of(lk_drivers[i], path);
        if (getenv(WRITE_THEM) != NULL)
            write_all(path, sent);
        golden = read_all(path);
        line = first_difference(sent, golden);
        if (line != 0)
            fail_msg("%s:%zu is not what is sent: look at it after "
                     "`make statements`",
                     path, line);
        free(golden);
        free(sent);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_statements_are_those_of_the_golden_files),
};

const struct suite suite_golden = SUITE("golden", tests);
