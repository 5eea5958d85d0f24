/*
 * test_limits.c - quantities at the limit of their column, or of a 64-bit
 * integer: more is refused, and the answer agrees with the row
 */
#include "suite.h"

static void expect_num(struct fixture *f, const char *table, int64_t expected)
{
    assert_int_equal(sql_integer(&f->sql, "SELECT num FROM %s", table),
                     expected);
}

/* The change from a negative quantity does not fit into an entry: with an order
 * id the item cannot be set, without one it can. */
TEST(test_a_change_beyond_a_number_is_not_recorded)
{
    sqlock_stock *stock;
    char table[64];

    shop_make_goods(f, "debt", table,
                    f->database->bit == ON_SQLITE
                        ? "id VARCHAR(80) PRIMARY KEY, num INTEGER"
                        : "id VARCHAR(80) PRIMARY KEY, num BIGINT");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('pen', -2)", table);
    stock = shop_open_described(f, table);
    assert_fails(SQLOCK_EINVAL, sqlock_stock_set(stock, NULL, f->name, "pen",
                                                 INT64_MAX, NULL, &f->err));
    assert_contains(f->err.message, "without an order id");
    expect_num(f, table, -2);
    assert_ok(
        sqlock_stock_set(stock, NULL, NULL, "pen", INT64_MAX, NULL, &f->err));
    expect_num(f, table, INT64_MAX);
    sqlock_stock_close(stock);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* Restore in a transaction on the adopted connection of f->sql, and commit.  If
 * that is refused, setting the item to 40000 must be, too.  Return the result
 * of the restore. */
static int restore_there(struct fixture *f, sqlock_stock *stock,
                         const char *order, int64_t quantity,
                         sqlock_stock_answer *answer)
{
    void *native = f->sql.driver->native(f->sql.connection);
    sqlock_tx *tx = NULL;
    int rc;

    assert_ok(sqlock_tx_adopt(&tx, f->a, native, &f->err));
    rc = sqlock_stock_restore(stock, tx, order, "7", quantity, answer, &f->err);
    if (rc == SQLOCK_EINVAL)
        assert_fails(SQLOCK_EINVAL, sqlock_stock_set(stock, tx, NULL, "7",
                                                     40000, NULL, &f->err));
    assert_int_equal(sqlock_tx_commit(tx, NULL), 0); /* f->err stays */
    return rc;
}

/* Without its strict mode, MySQL would store as much as fits, and report
 * success. */
TEST_ON(test_a_narrow_column_is_not_filled_beyond_its_end, ON_SERVERS, 0)
{
    bool is_mysql = f->database->bit == ON_MYSQL;
    int64_t most = is_mysql ? 127 : 32767;
    sqlock_stock *stock;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    char table[64];

    shop_make_goods(f, "narrow", table,
                    is_mysql ? "id INTEGER PRIMARY KEY, num TINYINT"
                             : "id INTEGER PRIMARY KEY, num SMALLINT");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES (7, 100)", table);
    if (is_mysql)
        (void)sql_run(&f->sql, "SET sql_mode = ''");
    stock = shop_open_described(f, table);
    for (int i = 0; i < 2; i++) {
        const char *order = i == 0 ? NULL : f->name;

        assert_fails(SQLOCK_EINVAL,
                     restore_there(f, stock, order, most - 99, &answer));
        assert_fails(SQLOCK_EINVAL,
                     sqlock_stock_restore(stock, NULL, order, "7", most - 99,
                                          NULL, &f->err));
        expect_num(f, table, 100);
    }
    assert_ok(restore_there(f, stock, f->name, most - 100, &answer));
    assert_int_equal(answer.left, most);
    expect_num(f, table, most);
    if (is_mysql)
        (void)sql_run(&f->sql, "SET sql_mode = DEFAULT");
    sqlock_stock_close(stock);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* Open a stock on the table "goods" by that strategy; with COALESCED it has a
 * version. */
static sqlock_stock *open_goods(struct fixture *f, const char *table,
                                sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = shop_described(table);
    sqlock_stock *stock = NULL;

    options.strategy = strategy;
    if (strategy == SQLOCK_STOCK_COALESCED)
        options.version_column = "ver";
    assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
    return stock;
}

/* SQLite stores anything in an INTEGER column of a table that is not STRICT,
 * and takes a text for greater than any number. */
TEST_ON(test_what_is_no_integer_is_left_alone, ON_SQLITE, 0)
{
    static const char *const items[] = {"text", "real", "blob", "null"};
    char table[64];

    shop_make_goods(f, "odd", table,
                    "id TEXT PRIMARY KEY, num INTEGER, ver INTEGER DEFAULT 0");
    (void)sql_run(&f->sql,
                  "INSERT INTO %s (id, num) VALUES ('text', 'many'), "
                  "('real', 5.5), ('blob', x'ff'), ('null', NULL)",
                  table);
    each_strategy
    {
        sqlock_stock *stock = open_goods(f, table, strategy);

        for (size_t i = 0; i < sizeof items / sizeof *items; i++)
            for (int in_tx = 0; in_tx < 2; in_tx++) {
                sqlock_tx *tx = NULL;

                if (in_tx)
                    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
                assert_fails(SQLOCK_EDATABASE,
                             sqlock_stock_deduct(stock, tx, NULL, items[i], 2,
                                                 NULL, &f->err));
                assert_contains(f->err.message, "not an integer");
                assert_fails(SQLOCK_EDATABASE,
                             sqlock_stock_restore(stock, tx, NULL, items[i], 2,
                                                  NULL, &f->err));
                if (in_tx)
                    assert_ok(sqlock_tx_commit(tx, &f->err));
            }
        sqlock_stock_close(stock);
    }
    assert_int_equal(
        sql_integer(&f->sql,
                    "SELECT COUNT(*) FROM %s WHERE num IS NULL OR num IN "
                    "('many', 5.5, x'ff')",
                    table),
        4);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* An integer that the column of items cannot hold is no item. */
TEST(test_an_item_beyond_its_column_is_not_there)
{
    static const char *const items[] = {"3000000000", "-3000000000",
                                        "9223372036854775807"};
    int64_t there = -1;
    char table[64];

    shop_make_goods(f, "few", table,
                    "id INTEGER PRIMARY KEY, num INTEGER, ver INTEGER");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES (7, 100, 0)", table);
    each_strategy
    {
        sqlock_stock *stock = open_goods(f, table, strategy);

        for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
            assert_fails(SQLOCK_ENOTFOUND,
                         sqlock_stock_deduct(stock, NULL, NULL, items[i], 1,
                                             NULL, &f->err));
            assert_fails(SQLOCK_ENOTFOUND,
                         sqlock_stock_restore(stock, NULL, NULL, items[i], 1,
                                              NULL, &f->err));
            assert_fails(
                SQLOCK_ENOTFOUND,
                sqlock_stock_read(stock, NULL, items[i], &there, &f->err));
        }
        /* Nor can more be deducted than the column holds. */
        assert_fails(SQLOCK_EINSUFFICIENT,
                     sqlock_stock_deduct(stock, NULL, NULL, "7", 3000000000,
                                         NULL, &f->err));
        expect_num(f, table, 100);
        sqlock_stock_close(stock);
    }
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}
