/*
 * table.h - make the lock table's name, a safe identifier, from a configured
 * prefix (F78)
 */
#ifndef LK_TABLE_H
#define LK_TABLE_H

#include "db/statement.h"
#include "db/driver.h"

#define LK_IDENTIFIER_MAX 255

struct lk_table {
    char schema[LK_IDENTIFIER_MAX + 1]; /* "" if the prefix names none */
    char name[LK_IDENTIFIER_MAX + 1];   /* as the database's catalogue has it */
    char plain[2 * LK_IDENTIFIER_MAX + 2];  /* schema.name, for messages and
                                               schema texts */
    char quoted[2 * LK_IDENTIFIER_MAX + 8]; /* for statements; with its schema
                                               once the table was found */
    /* how far the table with "_SERVER" behind its name can be used: 2: it can
     * be read and written; 1: read; 0: neither, or none was found */
    int64_t beside;
};

/* Return whether a text is [A-Za-z_][A-Za-z0-9_]* or empty: an empty prefix
 * becomes an identifier when a suffix is added. */
bool lk_is_identifier(const char *text, size_t length);

/* Make the lock table's name from a prefix such as "INT_" or "app.INT_".
 * Return 0, or SQLOCK_EINVAL if the prefix has anything but letters, digits,
 * '_' and one dot, before which others stand in double quotes, or the name is
 * too long for the database. */
int lk_table_from_prefix(struct lk_table *out, const char *prefix,
                         const sqlock_dialect *dialect, sqlock_error *err);

/* Make the name of another of our tables, otherwise as lk_table_from_prefix():
 * "INT_" and "DONE" make INT_DONE. */
int lk_table_named(struct lk_table *out, const char *prefix, const char *suffix,
                   const sqlock_dialect *dialect, sqlock_error *err);

/* Write a prefix as this database understands it in SQL, with its quotes around
 * the schema's name, to out, which has as many bytes. */
void lk_table_write_prefix(char *out, const char *prefix,
                           const sqlock_dialect *dialect);

/* Let statements name the schema in which the table was found: a table of the
 * same name that another schema of the search path gets later would take its
 * place, and hide the leases in it.  A schema whose name cannot be quoted is
 * left out. */
void lk_table_qualify(struct lk_table *table, const char *schema,
                      const sqlock_dialect *dialect);

/* Set the arguments :table and :schema of queries of the catalogue.  The texts
 * are not copied. */
void lk_table_arguments(const struct lk_table *table,
                        struct lk_arguments *arguments);

#endif
