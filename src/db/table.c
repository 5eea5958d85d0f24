/*
 * table.c - validate, fold and quote the lock table's name
 *
 * Spring writes the name unquoted; so if the database folds unquoted names to
 * lower case, the quoted name is written in lower case.
 */
#include "db/table.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool lk_is_identifier(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && (i == 0 || text[i] < '0' || text[i] > '9'))
            return false;
    return true;
}

/* Return whether a text may stand between the quotes of any database, and in a
 * text of SQL. */
static bool is_quotable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || strchr("\"'`\\", text[i]) != NULL)
            return false;
    return true;
}

static void copy_folded(char out[LK_IDENTIFIER_MAX + 1], const char *text,
                        size_t length, bool fold)
{
    for (size_t i = 0; i < length; i++) {
        bool upper = text[i] >= 'A' && text[i] <= 'Z';

        out[i] = (char)(fold && upper ? text[i] + 32 : text[i]);
    }
    out[length] = '\0';
}

void lk_table_qualify(struct lk_table *table, const char *schema,
                      const sqlock_dialect *dialect)
{
    char quote = dialect->quote;

    /* Statements have the name within '...', too. */
    if (schema[0] == '\0' || strchr(schema, quote) != NULL ||
        strchr(schema, '\'') != NULL || strlen(schema) > LK_IDENTIFIER_MAX)
        return;
    (void)snprintf(table->quoted, sizeof table->quoted, "%c%s%c.%c%s%c", quote,
                   schema, quote, quote, table->name, quote);
}

/* Find the schema's name in a prefix: what stands before the dot, and its case
 * is kept if it is in double quotes.  Return the text after the dot. */
static const char *find_schema(const char *prefix, const char **schema,
                               size_t *length, bool *is_quoted)
{
    const char *end = prefix[0] == '"' ? strchr(prefix + 1, '"') : NULL;
    const char *dot = strchr(end != NULL ? end : prefix, '.');

    *schema = prefix;
    *length = dot != NULL ? (size_t)(dot - prefix) : 0;
    *is_quoted = *length >= 2 && prefix[0] == '"' && dot[-1] == '"';
    if (*is_quoted) {
        (*schema)++;
        *length -= 2;
    }
    return dot != NULL ? dot + 1 : prefix;
}

int lk_table_named(struct lk_table *out, const char *prefix, const char *suffix,
                   const sqlock_dialect *dialect, sqlock_error *err)
{
    const char *schema;
    size_t schema_length;
    bool is_quoted;
    const char *base = find_schema(prefix, &schema, &schema_length, &is_quoted);
    size_t base_length = strlen(base);
    size_t limit = dialect->identifier_max;
    char name[LK_IDENTIFIER_MAX + 1];

    if (limit > LK_IDENTIFIER_MAX)
        limit = LK_IDENTIFIER_MAX;
    if ((base != prefix && schema_length == 0) ||
        !(is_quoted ? is_quotable(schema, schema_length)
                    : lk_is_identifier(schema, schema_length)) ||
        !lk_is_identifier(base, base_length))
        return lk_error(
            err, SQLOCK_EINVAL,
            "the table prefix may contain only letters, digits and '_', with "
            "an optional schema name and a dot before it; in double quotes "
            "the schema's name keeps its capitals, and may have others, such "
            "as '-'");
    if (schema_length > limit)
        return lk_error(err, SQLOCK_EINVAL,
                        "the schema's name in the table prefix has %zu bytes, "
                        "but this database allows %zu",
                        schema_length, limit);
    if (base_length + strlen(suffix) > limit)
        return lk_error(err, SQLOCK_EINVAL,
                        "with this table prefix a table's name has %zu bytes, "
                        "but this database allows %zu",
                        base_length + strlen(suffix), limit);

    (void)snprintf(name, sizeof name, "%s%s", base, suffix);
    copy_folded(out->schema, schema, schema_length,
                dialect->folds_to_lower && !is_quoted);
    copy_folded(out->name, name, strlen(name), dialect->folds_to_lower);
    (void)snprintf(out->plain, sizeof out->plain, "%.*s%s",
                   (int)(base - prefix), prefix, name);
    out->beside = 0;
    (void)snprintf(out->quoted, sizeof out->quoted, "%c%s%c", dialect->quote,
                   out->name, dialect->quote);
    lk_table_qualify(out, out->schema, dialect);
    return 0;
}

void lk_table_write_prefix(char *out, const char *prefix,
                           const sqlock_dialect *dialect)
{
    do
        *out++ = *prefix == '"' ? dialect->quote : *prefix;
    while (*prefix++ != '\0');
}

int lk_table_from_prefix(struct lk_table *out, const char *prefix,
                         const sqlock_dialect *dialect, sqlock_error *err)
{
    return lk_table_named(out, prefix, "LOCK", dialect, err);
}

void lk_table_arguments(const struct lk_table *table,
                        struct lk_arguments *arguments)
{
    lk_argument_text(arguments, SQLOCK_P_TABLE, table->name);
    lk_argument_text(arguments, SQLOCK_P_SCHEMA,
                     table->schema[0] != '\0' ? table->schema : NULL);
}
