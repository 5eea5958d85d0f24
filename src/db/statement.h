/*
 * statement.h - render a template of a dialect into a statement about one table
 */
#ifndef LK_STATEMENT_H
#define LK_STATEMENT_H

#include "db/template.h"
#include "sqlock/driver.h"

#define LK_PLACES_MAX 40

struct lk_statement {
    sqlock_statement sent; /* as a driver gets it */
    char *text;
    size_t count;                       /* of parameters sent */
    unsigned char order[LK_PLACES_MAX]; /* sqlock_parameter of each */
};

/* Values by sqlock_parameter. */
struct lk_arguments {
    sqlock_value values[SQLOCK_PARAMETERS + 1];
};

void lk_argument_text(struct lk_arguments *arguments, sqlock_parameter which,
                      const char *text); /* NULL: null */
void lk_argument_integer(struct lk_arguments *arguments, sqlock_parameter which,
                         int64_t integer);

/* For all of these: `table` is quoted.  0, ENOTSUP (the dialect has none),
 * ENOMEM, EINVAL (an invalid template).  Clear the statement; a failure leaves
 * nothing. */

/* Render a statement that is the same in every layout. */
int lk_statement_render(struct lk_statement *out, const sqlock_dialect *dialect,
                        const sqlock_template *template, const char *table,
                        uint32_t id);

/* Render a statement about locks, the dialect's own or the library's. */
int lk_statement_of_kind(struct lk_statement *out,
                         const sqlock_dialect *dialect, sqlock_layout layout,
                         sqlock_statement_kind kind, const char *table,
                         uint32_t id);

/* Render a statement of the application's transactions. */
int lk_statement_of_tx(struct lk_statement *out, const sqlock_driver *driver,
                       sqlock_layout layout, sqlock_tx_kind kind,
                       const char *table, uint32_t id);

/* Render a text with fragments of any kind, in which {table} is one. */
int lk_statement_write(struct lk_statement *out, const sqlock_dialect *dialect,
                       const sqlock_template *template,
                       const struct lk_fragments *fragments, uint32_t id);

void lk_statement_clear(struct lk_statement *statement);

/* Put arguments into the order that the statement wants. */
void lk_statement_order(const struct lk_statement *statement,
                        const struct lk_arguments *arguments,
                        sqlock_value out[LK_PLACES_MAX]);

/* Render a schema for a table of another name, replacing each word `name`
 * (INT_LOCK).  The caller frees it; NULL: out of memory. */
char *lk_schema_render(const char *schema, const char *name, const char *table);

#endif
