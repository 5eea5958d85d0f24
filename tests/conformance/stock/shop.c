/*
 * shop.c - fill and read sqlock's tables of stock (support/shop.h)
 */
#include "suite.h"

#include <stdio.h>

const char *shop_item(struct fixture *f, int64_t quantity)
{
    static char items[16][80];
    static unsigned next;
    char *item = items[next++ % 16];
    char table[64];

    (void)snprintf(item, sizeof items[0], "%s.%u", f->name, next);
    (void)sql_run(&f->sql,
                  "INSERT INTO %s (ITEM, QUANTITY) VALUES ('%s', %lld)",
                  shop_table(f, "STOCK", table), item, (long long)quantity);
    return item;
}

sqlock_stock *shop_open_at(sqlock_registry *registry,
                           sqlock_stock_strategy strategy)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_stock *stock = NULL;
    sqlock_error err = {0};
    int rc;

    options.strategy = strategy;
    rc = sqlock_stock_open(&stock, registry, &options, &err);
    assert_lock_ok(rc, &err);
    return stock;
}

sqlock_stock *shop_open(struct fixture *f, sqlock_stock_strategy strategy)
{
    return shop_open_at(f->a, strategy);
}

bool shop_is_strategy(sqlock_stock_strategy strategy)
{
    if (strategy < SQLOCK_STOCK_STRATEGIES)
        print_message("strategy %s\n", sqlock_stock_strategy_name(strategy));
    return strategy < SQLOCK_STOCK_STRATEGIES;
}

const char *shop_order(const char *item, const char *what)
{
    static char orders[16][96];
    static unsigned next;
    char *order = orders[next++ % 16];

    (void)snprintf(order, sizeof orders[0], "%s/%s", item, what);
    return order;
}

sqlock_stock *shop_open_described(struct fixture *f, const char *table)
{
    sqlock_stock_options options = shop_described(table);
    sqlock_stock *stock = NULL;

    assert_ok(sqlock_stock_open(&stock, f->a, &options, &f->err));
    return stock;
}

sqlock_stock_options shop_described(const char *table)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;

    options.table = table;
    options.item_column = "id";
    options.quantity_column = "num";
    return options;
}

void shop_make_goods(struct fixture *f, const char *name, char table[64],
                     const char *columns)
{
    (void)shop_table(f, name, table);
    for (char *c = table; *c != '\0'; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    (void)sql_try(&f->sql, NULL, "DROP TABLE %s", table);
    (void)sql_run(&f->sql, "CREATE TABLE %s (%s)%s", table, columns,
                  f->database->bit == ON_MYSQL ? " ENGINE=InnoDB" : "");
}

int64_t shop_there(struct fixture *f, const char *item)
{
    char stock[64];

    return sql_integer(&f->sql, "SELECT QUANTITY FROM %s WHERE ITEM = '%s'",
                       shop_table(f, "STOCK", stock), item);
}

int64_t shop_sum(struct fixture *f, const char *item)
{
    char entry[64];

    return sql_integer(&f->sql,
                       "SELECT COALESCE(SUM(DELTA), 0) FROM %s "
                       "WHERE ITEM = '%s'",
                       shop_table(f, "STOCK_ENTRY", entry), item);
}

int64_t shop_count(struct fixture *f, const char *table, const char *where)
{
    char name[64];

    return sql_integer(&f->sql, "SELECT COUNT(*) FROM %s WHERE %s",
                       shop_table(f, table, name), where);
}

int64_t shop_read(struct fixture *f, sqlock_stock *stock, const char *item)
{
    int64_t there = -1;

    assert_ok(sqlock_stock_read(stock, NULL, item, &there, &f->err));
    return there;
}

void shop_let_time_pass(struct fixture *f, const char *order)
{
    const char *by =
        f->database->bit == ON_POSTGRES ? "EXPIRES_AT - interval '2 hours'"
        : f->database->bit == ON_MYSQL  ? "TIMESTAMPADD(HOUR, -2, EXPIRES_AT)"
                                        : "EXPIRES_AT - 7200000000";
    char table[64];

    (void)sql_run(&f->sql,
                  "UPDATE %s SET EXPIRES_AT = %s WHERE ORDER_ID = '%s'",
                  shop_table(f, "STOCK_RESERVATION", table), by, order);
}
