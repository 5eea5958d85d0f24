/*
 * test_input.c - bad arguments and unfit tables are refused in one clear line,
 * and nothing is changed; and stock in a table of the application
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#include "support/login.h"

/* --- arguments --- */

TEST(test_bad_arguments_are_refused)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    char long_name[SQLOCK_ORDER_MAX + 2];
    sqlock_stock_line lines[2] = {{.item = item, .quantity = 1},
                                  {.item = item, .quantity = 1}};

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
#define REFUSED(call) assert_fails(SQLOCK_EINVAL, (call))
#define DEDUCT(order, item, quantity)                                          \
    REFUSED(sqlock_stock_deduct(stock, NULL, (order), (item), (quantity),      \
                                NULL, &f->err))
    DEDUCT(NULL, item, 0);
    DEDUCT(NULL, item, -1);
    DEDUCT(NULL, item, INT64_MIN);
    DEDUCT(NULL, NULL, 1);
    DEDUCT(NULL, "", 1);
    DEDUCT(NULL, long_name, 1);
    DEDUCT(NULL, "ends with a blank ", 1);
    DEDUCT(NULL, "two\nlines", 1);
    DEDUCT(NULL, "\xff", 1);
    DEDUCT(long_name, item, 1);
    DEDUCT("", item, 1);
    DEDUCT("bad\x01", item, 1);
    REFUSED(sqlock_stock_restore(stock, NULL, NULL, item, 0, NULL, &f->err));
    REFUSED(sqlock_stock_set(stock, NULL, NULL, item, -1, NULL, &f->err));
    REFUSED(
        sqlock_stock_deduct_many(stock, NULL, NULL, lines, 0, NULL, &f->err));
    REFUSED(
        sqlock_stock_deduct_many(stock, NULL, NULL, NULL, 1, NULL, &f->err));
    REFUSED(sqlock_stock_deduct_many(stock, NULL, NULL, lines,
                                     SQLOCK_LINES_MAX + 1, NULL, &f->err));
    /* Two lines of one item. */
    REFUSED(
        sqlock_stock_deduct_many(stock, NULL, NULL, lines, 2, NULL, &f->err));
    REFUSED(
        sqlock_stock_reserve(stock, NULL, NULL, lines, 1, 1000, NULL, &f->err));
    REFUSED(sqlock_stock_reserve(stock, NULL, "r", lines, 1, 0, NULL, &f->err));
    REFUSED(sqlock_stock_reserve(stock, NULL, "r", lines, 1, INT64_MAX, NULL,
                                 &f->err));
    REFUSED(sqlock_stock_claim(stock, NULL, NULL, NULL, &f->err));
    REFUSED(sqlock_stock_read(stock, NULL, item, NULL, &f->err));
    REFUSED(sqlock_stock_deduct(NULL, NULL, NULL, item, 1, NULL, &f->err));
    assert_int_equal(shop_read(f, stock, item), 10);
    assert_int_equal(shop_count(f, "STOCK_ENTRY", "ORDER_ID = 'r'"), 0);
    sqlock_stock_close(stock);
}

/* None of the items exists, so the greatest number of lines gets ENOTFOUND, and
 * one more line EINVAL. */
TEST(test_as_many_items_as_are_allowed)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    static sqlock_stock_line lines[SQLOCK_LINES_MAX + 1];
    static char names[SQLOCK_LINES_MAX + 1][16];

    for (size_t i = 0; i <= SQLOCK_LINES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "none %zu", i);
        lines[i] = (sqlock_stock_line){.item = names[i], .quantity = 1};
    }
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_stock_deduct_many(stock, NULL, NULL, lines,
                                          SQLOCK_LINES_MAX, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_deduct_many(stock, NULL, NULL, lines,
                                          SQLOCK_LINES_MAX + 1, NULL, &f->err));
    sqlock_stock_close(stock);
}

TEST(test_the_longest_names_and_odd_ones_work)
{
    char name[SQLOCK_ITEM_MAX + 1];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);
        const char *const odd[] = {name, "it's \"odd\" \\ {1} ? $1 %s",
                                   "\xc3\xa4\xf0\x9f\x9b\x92"};

        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
            char order[SQLOCK_ORDER_MAX + 1];

            (void)snprintf(order, sizeof order, "%.180s%d%zu", odd[i],
                           (int)strategy, i);
            assert_ok(
                sqlock_stock_set(stock, NULL, NULL, odd[i], 5, NULL, &f->err));
            for (int k = 0; k < 2; k++) {
                assert_ok(sqlock_stock_deduct(stock, NULL, order, odd[i], 2,
                                              &answer, &f->err));
                assert_int_equal(answer.left, 3);
            }
        }
        sqlock_stock_close(stock);
    }
}

/* --- tables of the application --- */

static void sell_goods(struct fixture *f, const char *table,
                       const char *version, sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = shop_described(table);
    sqlock_stock *stock = NULL;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_item *items = NULL;
    size_t count = 0;
    char order[96];

    options.strategy = strategy;
    options.version_column = version;
    (void)snprintf(order, sizeof order, "%s/%d/%s", f->name, (int)strategy,
                   version != NULL ? version : "");
    assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
    (void)sql_run(&f->sql, "UPDATE %s SET num = 10, ver = 1 WHERE id = 7",
                  table);
    for (int i = 0; i < 2; i++) {
        assert_ok(
            sqlock_stock_deduct(stock, NULL, order, "7", 3, &answer, &f->err));
        assert_int_equal(answer.left, 7);
    }
    assert_ok(sqlock_stock_deduct(stock, NULL, NULL, "7", 1, &answer, &f->err));
    assert_fails(
        SQLOCK_EINSUFFICIENT,
        sqlock_stock_deduct(stock, NULL, NULL, "7", 7, &answer, &f->err));
    assert_fails(SQLOCK_ENOTFOUND, sqlock_stock_deduct(stock, NULL, NULL, "8",
                                                       1, &answer, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_stock_deduct(stock, NULL, NULL, "7x", 1,
                                                    &answer, &f->err));
    assert_ok(sqlock_stock_set(stock, NULL, NULL, "7", 20, &answer, &f->err));
    assert_fails(SQLOCK_ENOTFOUND, sqlock_stock_set(stock, NULL, NULL, "9", 20,
                                                    &answer, &f->err));
    assert_int_equal(shop_read(f, stock, "7"), 20);
    assert_ok(sqlock_stock_list(stock, &items, &count, &f->err));
    assert_int_equal(count, 1);
    assert_string_equal(items[0].name, "7");
    assert_int_equal(items[0].quantity, 20);
    sqlock_free(items);
    assert_int_equal(sql_integer(&f->sql, "SELECT ver FROM %s", table),
                     version != NULL ? 4 : 1);
    sqlock_stock_close(stock);
}

TEST(test_the_applications_own_table)
{
    char table[64];

    shop_make_goods(f, "goods", table,
                    "id INTEGER PRIMARY KEY, num INTEGER CHECK (num >= 0), "
                    "ver INTEGER, note VARCHAR(20)");
    (void)sql_run(&f->sql, "INSERT INTO %s (id) VALUES (7)", table);
    each_strategy
    {
        sell_goods(f, table, "ver", strategy);
        sell_goods(f, table, NULL, strategy);
    }
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

static void expect_refused(struct fixture *f, int expected,
                           const sqlock_stock_options *options,
                           const char *message)
{
    sqlock_stock *stock = NULL;
    int rc = sqlock_stock_open(&stock, f->a, options, &f->err);

    assert_code(expected, rc, &f->err);
    assert_contains(f->err.message, message);
    assert_null(stock);
}

TEST(test_tables_that_do_not_fit_are_refused)
{
    sqlock_stock_options options;
    char table[64];

    shop_make_goods(f, "goods", table,
                    "id INTEGER PRIMARY KEY, num INTEGER, ver REAL");
    options = shop_described(table);
    options.quantity_column = "amount";
    expect_refused(f, SQLOCK_ESCHEMA, &options, "no column amount");
    options = shop_described(table);
    options.version_column = "ver";
    expect_refused(f, SQLOCK_ESCHEMA, &options, "must be an integer");
    options = shop_described("no_such_table");
    expect_refused(f, SQLOCK_ESCHEMA, &options, "no table no_such_table");
    options = shop_described("goods; DROP TABLE x");
    expect_refused(f, SQLOCK_EINVAL, &options, "letters");
    options = shop_described(table);
    options.item_column = NULL;
    expect_refused(f, SQLOCK_EINVAL, &options, "key column");
    /* The version would rise by what is sold. */
    options = shop_described(table);
    options.version_column = options.quantity_column;
    expect_refused(f, SQLOCK_EINVAL, &options, "quantity column");
    options = shop_described(table);
    options.quantity_column = options.item_column;
    expect_refused(f, SQLOCK_EINVAL, &options, "quantity column");
    options = shop_described(table);
    options.version_column = options.item_column;
    expect_refused(f, SQLOCK_EINVAL, &options, "version column");
    options = (sqlock_stock_options)SQLOCK_STOCK_INIT;
    options.item_column = "id";
    expect_refused(f, SQLOCK_EINVAL, &options, "without a table");
    options = (sqlock_stock_options)SQLOCK_STOCK_INIT;
    options.strategy = (sqlock_stock_strategy)99;
    expect_refused(f, SQLOCK_EINVAL, &options, "strategy");
    options = (sqlock_stock_options)SQLOCK_STOCK_INIT;
    options.batch = 1001;
    expect_refused(f, SQLOCK_EINVAL, &options, "batch is 1001");
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* Without sqlock's tables of stock, a table of the application can be sold
 * from, but not with order ids or reservations. */
TEST(test_without_our_tables_there_are_no_orders)
{
    sqlock_options registry_options = fixture_options(f);
    sqlock_stock_options options;
    sqlock_registry *registry;
    sqlock_stock *stock = NULL;
    char prefix[40];
    char table[64];

    (void)snprintf(prefix, sizeof prefix, "%sOTHER_", f->prefix);
    registry_options.table_prefix = prefix;
    shop_make_goods(f, "goods", table,
                    "id VARCHAR(20) PRIMARY KEY, num INTEGER");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('pen', 5)", table);
    assert_ok(sqlock_schema_create(f->url, &registry_options,
                                   SQLOCK_LAYOUT_SQLOCK, &f->err));
    registry = fixture_registry(f, &registry_options);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_stock_open(&stock, registry, NULL, &f->err));
    options = shop_described(table);
    assert_ok(sqlock_stock_open(&stock, registry, &options, &f->err));
    assert_ok(sqlock_stock_deduct(stock, NULL, NULL, "pen", 1, NULL, &f->err));
    assert_fails(SQLOCK_ESCHEMA, sqlock_stock_deduct(stock, NULL, "order",
                                                     "pen", 1, NULL, &f->err));
    assert_fails(SQLOCK_ESCHEMA, sqlock_stock_expire(stock, NULL, &f->err));
    assert_contains(f->err.message, "sqlock stock init");
    assert_fails(SQLOCK_ESCHEMA, sqlock_stock_status(stock, NULL, "order", NULL,
                                                     NULL, &f->err));
    assert_contains(f->err.message, "sqlock stock init");
    sqlock_stock_close(stock);
    stock = NULL;
    /* Some of sqlock's tables are not enough. */
    (void)sql_run(&f->sql,
                  "CREATE TABLE %sSTOCK_RESERVATION (ORDER_ID INTEGER, STOCK "
                  "INTEGER, STATE INTEGER, EXPIRES_AT INTEGER, CREATED_AT "
                  "INTEGER)",
                  prefix);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_stock_open(&stock, registry, &options, &f->err));
    assert_contains(f->err.message, "no table");
    (void)sql_run(&f->sql, "DROP TABLE %sSTOCK_RESERVATION", prefix);
    registry_end(registry);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
    sql_drop_locks(&f->sql, prefix);
}

/* A CHECK of the table refuses the second item of an order: the first item must
 * not be deducted either. */
TEST(test_a_check_of_the_table_refuses_all_of_an_order)
{
    char table[64];

    shop_make_goods(f, "goods", table,
                    "id VARCHAR(20) PRIMARY KEY, num INTEGER CHECK (num >= 5)");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('ink', 9), ('pen', 9)",
                  table);
    each_strategy
    {
        sqlock_stock_options options = shop_described(table);
        sqlock_stock_line lines[] = {{.item = "ink", .quantity = 1},
                                     {.item = "pen", .quantity = 6}};
        sqlock_stock *stock = NULL;

        options.strategy = strategy;
        assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
        assert_fails(SQLOCK_EDATABASE,
                     sqlock_stock_deduct_many(stock, NULL, f->name, lines, 2,
                                              NULL, &f->err));
        assert_fails(
            SQLOCK_EDATABASE,
            sqlock_stock_deduct(stock, NULL, NULL, "pen", 6, NULL, &f->err));
        assert_int_equal(sql_integer(&f->sql, "SELECT SUM(num) FROM %s", table),
                         18);
        sqlock_stock_close(stock);
    }
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* --- rights --- */

static void grant(struct login *login, const struct fixture *f,
                  const char *what, const char *suffix)
{
    char table[128];

    (void)snprintf(table, sizeof table, "%s%s", f->prefix, suffix);
    login_grant(login, what, table);
}

/* The login may read the tables, but not change them. */
TEST_ON(test_a_login_without_the_privilege_is_told_so, ON_SERVERS, 0)
{
    static const char *const names[] = {"LOCK", "STOCK", "STOCK_ENTRY",
                                        "STOCK_RESERVATION"};
    const char *item = shop_item(f, 3);
    sqlock_registry *registry;
    sqlock_stock *stock;
    struct login login;

    login_make(&login, f, "looks");
    for (int i = 0; i < 4; i++)
        grant(&login, f, "SELECT", names[i]);
    registry = fixture_registry_at(f, login.url, NULL);
    stock = shop_open_at(registry, SQLOCK_STOCK_CONDITIONAL);
    assert_fails(SQLOCK_EACCESS, sqlock_stock_deduct(stock, NULL, NULL, item, 1,
                                                     NULL, &f->err));
    sqlock_stock_close(stock);
    stock = shop_open_at(registry, SQLOCK_STOCK_COALESCED);
    assert_fails(SQLOCK_EACCESS, sqlock_stock_deduct(stock, NULL, item, item, 1,
                                                     NULL, &f->err));
    assert_int_equal(shop_there(f, item), 3);
    sqlock_stock_close(stock);
    registry_end(registry);
    login_drop(&login, f);
}

/* Sell from the table of the application, of which two are left and two are in
 * a reservation that is over.  A sale with an order needs the right to record
 * it. */
static void sell_beside_what_is_over(struct fixture *f,
                                     sqlock_registry *registry,
                                     const char *table)
{
    sqlock_stock_options options = shop_described(table);
    sqlock_stock *stock;
    sqlock_tx *tx;

    assert_ok(sqlock_stock_open(&stock, registry, &options, &f->err));
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_fails(SQLOCK_EINSUFFICIENT,
                 sqlock_stock_deduct(stock, tx, NULL, "pen", 3, NULL, &f->err));
    assert_ok(sqlock_stock_deduct(stock, tx, NULL, "pen", 1, NULL, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_fails(
        SQLOCK_EINSUFFICIENT,
        sqlock_stock_deduct(stock, NULL, NULL, "pen", 3, NULL, &f->err));
    assert_fails(SQLOCK_EACCESS, sqlock_stock_deduct(stock, NULL, f->name,
                                                     "pen", 1, NULL, &f->err));
    sqlock_stock_close(stock);
}

/* The login sells what is the application's, and may not change reservations,
 * or not even see them: what it asks for too much is refused as ever. */
TEST_ON(test_who_may_not_take_back_is_refused_as_ever, ON_SERVERS, 0)
{
    static const char *const rights[] = {"REFERENCES", "SELECT"};
    int64_t before = shop_count(f, "STOCK_RESERVATION", "STATE = 'E'");
    sqlock_stock_line line = {.item = "pen", .quantity = 2};
    sqlock_stock *stock;
    char table[64];

    shop_make_goods(f, "rights", table, "id VARCHAR(20) PRIMARY KEY, num INT");
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('pen', 4)", table);
    stock = shop_open_described(f, table);
    assert_ok(sqlock_stock_reserve(stock, NULL, shop_order("pen", "over"),
                                   &line, 1, 1, NULL, &f->err));
    sqlock_stock_close(stock);
    for (int i = 0; i < 2; i++) {
        sqlock_registry *registry;
        struct login login;

        login_make(&login, f, "sells");
        grant(&login, f, "SELECT", "LOCK");
        grant(&login, f, rights[i], "STOCK_ENTRY");
        grant(&login, f, rights[i], "STOCK_RESERVATION");
        login_grant(&login, "SELECT, UPDATE", table);
        registry = fixture_registry_at(f, login.url, NULL);
        sell_beside_what_is_over(f, registry, table);
        registry_end(registry);
        login_drop(&login, f);
    }
    assert_int_equal(shop_count(f, "STOCK_RESERVATION", "STATE = 'E'"), before);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* --- the schema --- */

TEST(test_the_schema_is_text_too_and_made_once)
{
    sqlock_options options = fixture_options(f);
    char *text = NULL;

    for (int i = 0; i < 2; i++)
        assert_ok(sqlock_stock_schema_create(f->url, &options, &f->err));
    options.table_prefix = "shop.my_";
    assert_ok(sqlock_stock_schema_text(&text, f->url, &options, &f->err));
    assert_contains(text, "EXISTS shop.my_STOCK (");
    assert_contains(text, "EXISTS shop.my_STOCK_ENTRY (");
    assert_lacks(text, "EXISTS INT_");
    sqlock_free(text);
    options.table_prefix = "no good";
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_schema_text(&text, f->url, &options, &f->err));
}

/* --- equality --- */

/* Return how a column is declared that takes texts which differ in case for
 * equal. */
static const char *loose_text(struct fixture *f)
{
    if (f->database->bit == ON_SQLITE)
        return "VARCHAR(20) COLLATE NOCASE";
    if (f->database->bit == ON_MYSQL)
        return "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci";
    (void)sql_run(&f->sql,
                  "CREATE COLLATION IF NOT EXISTS loose (provider = icu, "
                  "locale = 'und-u-ks-level2', deterministic = false)");
    return "VARCHAR(20) COLLATE loose";
}

/* An item that only the database takes for another one is not there. */
TEST(test_items_are_compared_by_their_bytes)
{
    char table[64];
    char columns[200];

    (void)snprintf(columns, sizeof columns,
                   "id %s PRIMARY KEY, num INTEGER CHECK (num >= 0)",
                   loose_text(f));
    shop_make_goods(f, "loose", table, columns);
    (void)sql_run(&f->sql, "INSERT INTO %s VALUES ('Shoe', 10)", table);
    for (int i = 0; i < SQLOCK_STOCK_STRATEGIES; i++) {
        sqlock_stock_options options = shop_described(table);
        sqlock_stock *stock = NULL;
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        int64_t there;

        options.strategy = (sqlock_stock_strategy)i;
        assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
        assert_fails(SQLOCK_ENOTFOUND,
                     sqlock_stock_deduct(stock, NULL, NULL, "shoe", 1, &answer,
                                         &f->err));
        assert_fails(
            SQLOCK_ENOTFOUND,
            sqlock_stock_set(stock, NULL, NULL, "SHOE", 1, &answer, &f->err));
        assert_fails(SQLOCK_ENOTFOUND,
                     sqlock_stock_restore(stock, NULL, NULL, "shoe", 1, &answer,
                                          &f->err));
        assert_fails(SQLOCK_ENOTFOUND,
                     sqlock_stock_read(stock, NULL, "shoe", &there, &f->err));
        assert_int_equal(shop_read(f, stock, "Shoe"), 10);
        assert_ok(sqlock_stock_deduct(stock, NULL, NULL, "Shoe", 3, &answer,
                                      &f->err));
        assert_int_equal(answer.left, 7);
        assert_ok(
            sqlock_stock_set(stock, NULL, NULL, "Shoe", 10, &answer, &f->err));
        sqlock_stock_close(stock);
    }
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

/* Tables of ours in which two orders are one are refused. */
TEST_ON(test_our_tables_must_compare_by_bytes, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    sqlock_stock *stock = NULL;

    options.table_prefix = "loose_";
    for (int i = 0; i < 3; i++)
        (void)sql_try(&f->sql, NULL, "DROP TABLE loose_%s",
                      ((const char *const[]){"STOCK", "STOCK_ENTRY",
                                             "STOCK_RESERVATION"})[i]);
    assert_ok(sqlock_schema_create(f->url, &options, f->layout, &f->err));
    assert_ok(sqlock_stock_schema_create(f->url, &options, &f->err));
    assert_ok(sqlock_registry_open(&registry, f->url, &options, &f->err));
    assert_ok(sqlock_stock_open(&stock, registry, NULL, &f->err));
    sqlock_stock_close(stock);
    if (f->database->bit == ON_SQLITE) {
        (void)sql_run(&f->sql, "DROP TABLE loose_STOCK_RESERVATION");
        (void)sql_run(&f->sql,
                      "CREATE TABLE loose_STOCK_RESERVATION (ORDER_ID %s "
                      "PRIMARY KEY, STOCK TEXT, STATE TEXT, EXPIRES_AT INTEGER,"
                      " CREATED_AT INTEGER)",
                      loose_text(f));
    } else {
        (void)sql_run(
            &f->sql, "ALTER TABLE loose_STOCK_RESERVATION %s ORDER_ID %s %s",
            f->database->bit == ON_MYSQL ? "MODIFY" : "ALTER COLUMN",
            f->database->bit == ON_MYSQL ? "" : "TYPE", loose_text(f));
    }
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_stock_open(&stock, registry, NULL, &f->err));
    assert_contains(f->err.message, "STOCK_RESERVATION.ORDER_ID");
    assert_ok(sqlock_registry_close(registry, &f->err));
    for (int i = 0; i < 3; i++)
        (void)sql_run(&f->sql, "DROP TABLE loose_%s",
                      ((const char *const[]){"STOCK", "STOCK_ENTRY",
                                             "STOCK_RESERVATION"})[i]);
    sql_drop_locks(&f->sql, options.table_prefix);
}
