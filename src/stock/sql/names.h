/*
 * names.h - names of tables and columns, put into the statements of stock: the
 * application's table has names of its own, and ours have the registry's prefix
 */
#ifndef LK_STOCK_NAMES_H
#define LK_STOCK_NAMES_H

#include "db/ids.h"
#include "db/table.h"

enum { LK_TABLE_STOCK, LK_TABLE_ENTRY, LK_TABLE_RESERVATION, LK_STOCK_TABLES };

/* The command that creates them, as messages name it. */
#define LK_STOCK_COMMAND "`sqlock stock init`"

/* Make the names of our tables from the prefix of the lock table.  Return 0, or
 * EINVAL if one is too long. */
int lk_stock_name_tables(struct lk_table out[LK_STOCK_TABLES],
                         const char *prefix, const sqlock_dialect *dialect,
                         sqlock_error *err);

/* Names of tables and columns in statements, quoted where SQL needs it. */
struct lk_stock_names {
    const char *stock, *item, *quantity, *version; /* version may be NULL */
    const char *entry, *reservation;
    bool is_ours; /* the items are in INT_STOCK */
    /* An item may be equal to a text of other bytes, by the column's collation:
     * the statements compare the bytes, too. */
    bool is_loose;
    const char *most; /* the greatest value of the quantity's column */
};

/* Make the statements, SQLOCK_STOCK_KINDS of them, all zero before; `names` is
 * not kept.  A statement that the driver lacks stays empty. */
int lk_stock_render(struct lk_statement *out, const sqlock_driver *driver,
                    struct lk_ids *ids, const struct lk_stock_names *names,
                    sqlock_error *err);

#endif
