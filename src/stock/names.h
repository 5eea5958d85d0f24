/*
 * names.h - the names of the stock tables, made from the registry's prefix
 */
#ifndef LK_STOCK_NAMES_H
#define LK_STOCK_NAMES_H

#include "db/table.h"
#include "sqlock.h"

#define LK_STOCK_TABLES 4

enum { LK_TABLE_STOCK, LK_TABLE_ENTRY, LK_TABLE_RESERVATION, LK_TABLE_BUCKET };

/* Set *out to the name of the stock table `which`, an LK_TABLE_ constant, with
 * the schema and prefix of the lock table `lock`.  Return 0, or EINVAL if the
 * name is too long. */
int lk_stock_table(struct lk_table *out, const struct lk_table *lock, int which,
                   const sqlock_dialect *dialect, sqlock_error *err);

/* Return the length of the prefix in a lock table's plain name. */
int lk_stock_prefix_length(const char *plain);

#endif
