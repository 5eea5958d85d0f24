/*
 * shop.c - see shop.h
 */
#include "shop.h"

#include <stdio.h>

#include "sqlock/stock.h"

static const char *const tables[] = {"STOCK", "STOCK_ENTRY",
                                     "STOCK_RESERVATION"};

const char *shop_table(const struct fixture *f, const char *name, char out[64])
{
    (void)snprintf(out, 64, "%s%s", f->prefix, name);
    return out;
}

void shop_create(struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    int rc = sqlock_stock_schema_create(f->url, &options, &f->err);

    assert_ok(rc);
}

void shop_drop(struct fixture *f)
{
    char name[64];

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        (void)sql_try(&f->sql, NULL, "DROP TABLE %s",
                      shop_table(f, tables[i], name));
}
