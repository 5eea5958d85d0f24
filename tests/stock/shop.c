/*
 * shop.c - our tables with the fixture's prefix, and what is in them
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char *const tables[] = {"STOCK", "STOCK_ENTRY",
                                     "STOCK_RESERVATION", "STOCK_BUCKET"};

const char *shop_table(const struct fixture *f, const char *name, char out[64])
{
    (void)snprintf(out, 64, "%s%s", f->prefix, name);
    return out;
}

void shop_create(struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    int rc = sqlock_stock_schema_create(f->url, &options, &f->err);

    assert_lock_ok(rc, &f->err);
}

void shop_drop(struct fixture *f)
{
    char name[64];

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        (void)sql_try(&f->sql, NULL, "DROP TABLE %s",
                      shop_table(f, tables[i], name));
}

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
    options.buckets = 4;
    rc = sqlock_stock_open(&stock, registry, &options, &err);
    assert_lock_ok(rc, &err);
    return stock;
}

sqlock_stock *shop_open(struct fixture *f, sqlock_stock_strategy strategy)
{
    return shop_open_at(f->a, strategy);
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
    char bucket[64];

    return sql_integer(
        &f->sql,
        "SELECT QUANTITY + COALESCE((SELECT SUM(B.QUANTITY) FROM %s B "
        "WHERE B.ITEM = '%s'), 0) FROM %s WHERE ITEM = '%s'",
        shop_table(f, "STOCK_BUCKET", bucket), item,
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
