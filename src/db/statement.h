/*
 * statement.h - render a template of a dialect into a statement about one table
 */
#ifndef LK_STATEMENT_H
#define LK_STATEMENT_H

#include "db/template.h"
#include "db/driver.h"

#define LK_PLACES_MAX 40 /* parameters that a statement can send */

struct lk_statement {
    sqlock_statement sent; /* as a driver gets it */
    char *text;
    size_t count;                       /* of parameters sent */
    unsigned char order[LK_PLACES_MAX]; /* sqlock_parameter of each */
};

/* Arguments of a statement, by sqlock_parameter.  All zero: nulls. */
struct lk_arguments {
    sqlock_value values[SQLOCK_PARAMETERS + 1];
};

/* Set an argument.  The text is not copied; NULL becomes SQL's null. */
void lk_argument_text(struct lk_arguments *arguments, sqlock_parameter which,
                      const char *text);
void lk_argument_integer(struct lk_arguments *arguments, sqlock_parameter which,
                         int64_t integer);

/* The next four functions render a template into *out, to be cleared by
 * lk_statement_clear(); after a failure there is nothing to clear.  `table` is
 * quoted; `id` as in sqlock_statement.  Return 0, SQLOCK_ENOTSUP if the dialect
 * has no such statement, SQLOCK_EINVAL if the template is invalid, or
 * SQLOCK_ENOMEM. */

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

/* Render a template with these fragments only; one is named "table". */
int lk_statement_write(struct lk_statement *out, const sqlock_dialect *dialect,
                       const sqlock_template *template,
                       const struct lk_fragments *fragments, uint32_t id);

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
