/*
 * statement.h - make a statement about one table of one that stands in sql/
 */
#ifndef LK_STATEMENT_H
#define LK_STATEMENT_H

#include <stdio.h>

#include "db/driver.h"

/* A text that is put in for a name: a quoted table for "INT_LOCK", or a column.
 * A list of them ends with a NULL name. */
struct lk_name {
    const char *name;
    const char *text;
};

struct lk_statement {
    sqlock_statement sent;      /* as a driver gets it */
    char *text;                 /* NULL: there is no such statement */
    size_t count;               /* of parameters sent */
    const unsigned char *order; /* sqlock_parameter of each */
    bool is_read;               /* it only reads */
};

/* Arguments of a statement, by sqlock_parameter.  All zero: nulls. */
struct lk_arguments {
    sqlock_value values[SQLOCK_PARAMETERS];
};

/* Set an argument.  The text is not copied; NULL becomes SQL's null. */
void lk_argument_text(struct lk_arguments *arguments, sqlock_parameter which,
                      const char *text);
void lk_argument_integer(struct lk_arguments *arguments, sqlock_parameter which,
                         int64_t integer);

/* Check that a value of the application can be bound; `what` stands for it in
 * the message.  Return 0 or EINVAL. */
int lk_value_check(const char *what, const sqlock_value *value,
                   sqlock_error *err);

/* Write a text with what the names stand for: "{INT_LOCK}" becomes the text of
 * INT_LOCK.  A name that is not in the list stays as it is. */
void lk_names_write(FILE *out, const char *text, const struct lk_name *names);

/* Return a database's statement, or NULL if it has none.  `kind` and `variant`
 * as in struct lk_sql. */
const struct lk_sql *lk_sql_find(const struct lk_sql *list, unsigned kind,
                                 uint32_t variant);

/* Make a statement of that one, to be cleared by lk_statement_clear(); `id` as
 * in sqlock_statement.  Return 0 or SQLOCK_ENOMEM; then there is nothing to
 * clear. */
int lk_statement_render(struct lk_statement *out, const struct lk_sql *sql,
                        const struct lk_name *names, uint32_t id);

/* Make a dialect's statement about locks.  Return as lk_statement_render(), or
 * SQLOCK_ENOTSUP if the dialect has no such statement. */
int lk_statement_of_kind(struct lk_statement *out,
                         const sqlock_dialect *dialect, sqlock_layout layout,
                         sqlock_statement_kind kind,
                         const struct lk_name *names, uint32_t id);

void lk_statement_clear(struct lk_statement *statement);

/* Copy the arguments to `out` in the order of the statement's placeholders.
 * Their texts are not copied. */
void lk_statement_order(const struct lk_statement *statement,
                        const struct lk_arguments *arguments,
                        sqlock_value out[LK_PLACES_MAX]);

/* Return a copy of `schema`, the statements that create tables, in which each
 * word that begins with INT_ begins with `prefix` instead, or NULL when out of
 * memory.  The caller frees the copy. */
char *lk_schema_render(const char *schema, const char *prefix);

#endif
