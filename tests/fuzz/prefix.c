/*
 * prefix.c - prefixes of tables: a name that is accepted is an identifier
 * within the database's limit, and quoted as one
 */
#include "fuzz.h"

#include "db/dialect.h"
#include "db/table.h"

static void check_quoted(const char *quoted, char quote)
{
    size_t quotes = 0;

    for (const char *at = quoted; *at != '\0'; at++)
        quotes += *at == quote;
    must(quotes == 2 || quotes == 4);
    must(quoted[0] == quote && quoted[strlen(quoted) - 1] == quote);
    must(strchr(quoted, '\'') == NULL);
}

static void check(const char *prefix, const sqlock_dialect *dialect)
{
    struct lk_table table, done;
    sqlock_error err = {0};
    int rc = lk_table_from_prefix(&table, prefix, dialect, &err);

    must(rc == 0 || rc == SQLOCK_EINVAL);
    if (rc < 0)
        return;
    must(strlen(table.name) <= dialect->identifier_max);
    must(strspn(table.name,
                "abcdefghijklmnopqrstuvwxyz_0123456789"
                "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(table.name));
    check_quoted(table.quoted, dialect->quote);
    if (lk_table_named(&done, prefix, "DONE", dialect, &err) == 0)
        must(strcmp(done.schema, table.schema) == 0 &&
             strcmp(done.name, table.name) != 0);
    lk_table_qualify(&table, prefix, dialect);
    check_quoted(table.quoted, dialect->quote);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const sqlock_dialect postgres = {
        .quote = '"', .folds_to_lower = true, .identifier_max = 63};
    static const sqlock_dialect mysql = {.quote = '`', .identifier_max = 64};
    char *prefix = fuzz_text(data, size);

    check(prefix, &postgres);
    check(prefix, &mysql);
    free(prefix);
    return 0;
}
