/*
 * names.c - make the names of the stock tables, INT_STOCK and others, from that
 * of the lock table, INT_LOCK
 */
#include "stock/names.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define LOCK "LOCK"

static const char *const suffixes[LK_STOCK_TABLES] = {
    "STOCK",
    "STOCK_ENTRY",
    "STOCK_RESERVATION",
    "STOCK_BUCKET",
};

int lk_stock_prefix_length(const char *plain)
{
    return (int)(strlen(plain) - strlen(LOCK));
}

int lk_stock_table(struct lk_table *out, const struct lk_table *lock, int which,
                   const sqlock_dialect *dialect, sqlock_error *err)
{
    const char *suffix = suffixes[which];
    int base = lk_stock_prefix_length(lock->name);

    if ((size_t)base + strlen(suffix) > dialect->identifier_max)
        return lk_error(err, SQLOCK_EINVAL,
                        "the table prefix is too long for the name of a stock "
                        "table");
    memset(out, 0, sizeof *out);
    memcpy(out->schema, lock->schema, sizeof out->schema);
    (void)snprintf(out->name, sizeof out->name, "%.*s%s", base, lock->name,
                   suffix);
    if (dialect->folds_to_lower)
        for (char *at = out->name + base; *at != '\0'; at++)
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
    (void)snprintf(out->plain, sizeof out->plain, "%.*s%s",
                   lk_stock_prefix_length(lock->plain), lock->plain, suffix);
    lk_table_quote(out, dialect);
    return 0;
}
