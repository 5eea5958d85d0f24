/*
 * table.c - check that the names of the application's tables and columns are
 * plain identifiers, and that values can be bound (F78)
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/error.h"
#include "db/statement.h"
#include "tx/tx.h"

static int refuse(const char *what, sqlock_error *err)
{
    return lk_error(
        err, SQLOCK_EINVAL,
        "%s must consist of letters, digits and '_', and must not be too long",
        what);
}

int lk_tx_quote(char out[LK_QUOTED_SIZE], const char *what, const char *name,
                const sqlock_dialect *dialect, sqlock_error *err)
{
    size_t length = name != NULL ? strlen(name) : 0;

    if (name == NULL)
        return lk_error(err, SQLOCK_EINVAL, "%s is missing", what);
    if (length == 0 || length > dialect->identifier_max ||
        length > LK_IDENTIFIER_MAX || !lk_is_identifier(name, length))
        return refuse(what, err);
    (void)snprintf(out, LK_QUOTED_SIZE, "%c%s%c", dialect->strict_quote, name,
                   dialect->strict_quote);
    return 0;
}

bool lk_tx_is_same(const char *one, const char *other,
                   const sqlock_dialect *dialect)
{
    return dialect->ignores_case ? strcasecmp(one, other) == 0
                                 : strcmp(one, other) == 0;
}

int lk_tx_check_roles(const struct lk_tx_role *roles, size_t count,
                      const sqlock_dialect *dialect, sqlock_error *err)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (roles[i].quoted[0] != '\0' &&
                lk_tx_is_same(roles[i].quoted, roles[j].quoted, dialect))
                return lk_error(err, SQLOCK_EINVAL,
                                "%s must be another one than %s", roles[i].what,
                                roles[j].what);
    return 0;
}

/* Quote "table" or "schema.table". */
static int quote_table(char out[LK_QUOTED_SIZE], const char *name,
                       const sqlock_dialect *dialect, sqlock_error *err)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;
    char schema[LK_IDENTIFIER_MAX + 1];
    char quoted[LK_QUOTED_SIZE];
    size_t used;
    int rc;

    if (dot == NULL)
        return lk_tx_quote(out, "the table's name", name, dialect, err);
    if ((size_t)(dot - name) > LK_IDENTIFIER_MAX)
        return refuse("the schema's name", err);
    (void)snprintf(schema, sizeof schema, "%.*s", (int)(dot - name), name);
    rc = lk_tx_quote(out, "the schema's name", schema, dialect, err);
    if (rc == 0)
        rc = lk_tx_quote(quoted, "the table's name", dot + 1, dialect, err);
    if (rc < 0)
        return rc;
    used = strlen(out);
    if (used + 1 + strlen(quoted) >= LK_QUOTED_SIZE)
        return refuse("the table's name", err);
    (void)snprintf(out + used, LK_QUOTED_SIZE - used, ".%s", quoted);
    return 0;
}

static int copy_table(sqlock_table *out, const sqlock_table *table,
                      sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_table", "SQLOCK_TABLE_INIT",
                                          sizeof *out};

    if (table == NULL)
        return lk_error_null(err, "table");
    return lk_sized_read(out, &sized, table, err);
}

int lk_tx_table_read(struct lk_tx_table *out, const sqlock_table *table,
                     unsigned wanted, const sqlock_dialect *dialect,
                     sqlock_error *err)
{
    const struct lk_tx_role roles[] = {
        {"the key column", out->key},
        {"the version column", out->version},
        {"the fence column", out->fence},
        {"the fence's owner column", out->owner}};
    sqlock_table full;
    int rc;

    memset(out, 0, sizeof *out);
    rc = copy_table(&full, table, err);
    if (rc == 0)
        rc = quote_table(out->name, full.name, dialect, err);
    if (rc == 0)
        rc = lk_tx_quote(out->key, "the key column", full.key_column, dialect,
                         err);
    if (rc == 0 && (wanted & LK_TX_VERSION) != 0)
        rc = lk_tx_quote(out->version, "the version column",
                         full.version_column, dialect, err);
    if (rc == 0 && (wanted & LK_TX_FENCE) != 0)
        rc = lk_tx_quote(out->fence, "the fence column", full.fence_column,
                         dialect, err);
    if (rc == 0 && (wanted & LK_TX_FENCE) != 0)
        rc = lk_tx_quote(out->owner, "the fence's owner column",
                         full.fence_owner_column, dialect, err);
    if (rc == 0)
        rc = lk_tx_check_roles(roles, sizeof roles / sizeof *roles, dialect,
                               err);
    if (rc < 0)
        return rc;
    out->kind = full.version_kind;
    if (out->kind != SQLOCK_VERSION_INTEGER &&
        out->kind != SQLOCK_VERSION_TIMESTAMP &&
        out->kind != SQLOCK_VERSION_STATE)
        return lk_error(err, SQLOCK_EINVAL, "unknown kind of version %d",
                        (int)out->kind);
    return 0;
}

void lk_tx_write_expression(FILE *out, const char *expression,
                            const char *column)
{
    const struct lk_name names[] = {
        {"column", column}, {"value", "?"}, {NULL, NULL}};

    lk_names_write(out, expression, names);
}

int lk_tx_row_read(struct lk_tx_row *out, sqlock_tx *tx,
                   const sqlock_table *table, unsigned wanted,
                   const sqlock_value *key, sqlock_error *err)
{
    int rc = lk_tx_check(tx, err);

    if (rc == 0)
        rc = lk_tx_table_read(&out->table, table, wanted, tx->driver->dialect,
                              err);
    if (rc == 0)
        rc = lk_value_check("the key", key, err);
    if (rc < 0)
        return rc;
    out->key = *key;
    if (tx->part->keys_are_text && key->type == SQLOCK_INT64) {
        (void)snprintf(out->digits, sizeof out->digits, "%" PRId64,
                       key->integer);
        out->key = sqlock_text(out->digits);
    }
    return 0;
}
