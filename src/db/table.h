/*
 * table.h - the lock table's name: from a configured prefix to a safe
 * identifier (F78)
 */
#ifndef LK_TABLE_H
#define LK_TABLE_H

#include "db/statement.h"
#include "sqlock/driver.h"

#define LK_IDENTIFIER_MAX 255

struct lk_table {
    char schema[LK_IDENTIFIER_MAX + 1]; /* "" when the prefix names none */
    char name[LK_IDENTIFIER_MAX + 1];   /* as the database's catalogue has it */
    char plain[2 * LK_IDENTIFIER_MAX + 2];  /* schema.name, for messages and
                                               schema texts */
    char quoted[2 * LK_IDENTIFIER_MAX + 8]; /* for statements */
};

/* Make the lock table's name from a prefix such as "INT_" or "app.INT_".
 * Anything but letters, digits, '_' and one dot is EINVAL, and so is a name
 * that is too long for the database. */
int lk_table_from_prefix(struct lk_table *out, const char *prefix,
                         const sqlock_dialect *dialect, sqlock_error *err);

/* Make the name of another table beside it: "INT_" and "DONE" make INT_DONE. */
int lk_table_named(struct lk_table *out, const char *prefix, const char *suffix,
                   const sqlock_dialect *dialect, sqlock_error *err);

/* Set the quoted name, from schema and name. */
void lk_table_quote(struct lk_table *table, const sqlock_dialect *dialect);

/* Set the parameters by which statements about the catalogue name a table. */
void lk_table_arguments(const struct lk_table *table,
                        struct lk_arguments *arguments);

#endif
