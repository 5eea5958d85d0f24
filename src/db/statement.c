/*
 * statement.c - make values, put tables' names into statements, and arguments
 * in order
 * Nothing else goes into a text but names, validated and quoted; values are
 * bound to the placeholders.
 */
#include "db/statement.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/writer.h"

sqlock_value sqlock_integer(int64_t integer)
{
    return (sqlock_value){.type = SQLOCK_INT64, .integer = integer};
}

sqlock_value sqlock_text(const char *text)
{
    if (text == NULL)
        return (sqlock_value){.type = SQLOCK_NULL};
    return (sqlock_value){
        .type = SQLOCK_TEXT, .text = text, .length = strlen(text)};
}

int lk_value_check(const char *what, const sqlock_value *value,
                   sqlock_error *err)
{
    if (value == NULL)
        return lk_error(err, SQLOCK_EINVAL, "%s is missing", what);
    switch (value->type) {
    case SQLOCK_NULL:
    case SQLOCK_INT64:
        return 0;
    case SQLOCK_TEXT:
        if (value->text != NULL && strlen(value->text) == value->length)
            return 0;
        return lk_error(err, SQLOCK_EINVAL,
                        "%s is a text without its length: use sqlock_text()",
                        what);
    }
    return lk_error(err, SQLOCK_EINVAL, "%s has an unknown type", what);
}

void lk_argument_text(struct lk_arguments *arguments, sqlock_parameter which,
                      const char *text)
{
    arguments->values[which] = sqlock_text(text);
}

void lk_argument_integer(struct lk_arguments *arguments, sqlock_parameter which,
                         int64_t integer)
{
    arguments->values[which] = sqlock_integer(integer);
}

/* Return what is put in for the name of that length, or NULL. */
static const char *text_of(const struct lk_name *names, const char *name,
                           size_t length)
{
    for (; names->name != NULL; names++)
        if (strncmp(names->name, name, length) == 0 &&
            names->name[length] == '\0')
            return names->text;
    return NULL;
}

void lk_names_write(FILE *out, const char *text, const struct lk_name *names)
{
    const char *open;

    while ((open = strchr(text, '{')) != NULL) {
        const char *name = open + 1;
        size_t length = strcspn(name, "}");
        const char *replacement = text_of(names, name, length);

        (void)fwrite(text, 1, (size_t)(open - text), out);
        text = replacement != NULL ? name + length + 1 : name;
        (void)fputs(replacement != NULL ? replacement : "{", out);
    }
    (void)fputs(text, out);
}

const struct lk_sql *lk_sql_find(const struct lk_sql *list, unsigned kind,
                                 uint32_t variant)
{
    for (; list->text != NULL; list++)
        if (list->kind == kind && (list->variants & variant) != 0)
            return list;
    return NULL;
}

int lk_statement_render(struct lk_statement *out, const struct lk_sql *sql,
                        const struct lk_name *names, uint32_t id)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);

    memset(out, 0, sizeof *out);
    if (stream == NULL)
        return SQLOCK_ENOMEM;
    lk_names_write(stream, sql->text, names);
    out->text = lk_writer_close(&writer);
    if (out->text == NULL)
        return SQLOCK_ENOMEM;
    out->sent = (sqlock_statement){
        .text = out->text,
        .id = sql->is_unprepared ? 0 : id,
        .insert_id = sql->insert_id,
        .is_nowait = sql->is_nowait,
        .may_be_lost = sql->is_read || sql->may_be_lost,
    };
    out->is_read = sql->is_read;
    out->count = sql->count;
    out->order = sql->order;
    return 0;
}

int lk_statement_of_kind(struct lk_statement *out,
                         const sqlock_dialect *dialect, sqlock_layout layout,
                         sqlock_statement_kind kind,
                         const struct lk_name *names, uint32_t id)
{
    uint32_t queue = (uint32_t)LK_SQLOCK_QUEUE << (2 * layout);
    const struct lk_sql *sql = lk_sql_find(dialect->statements, kind,
                                           dialect->polls ? queue << 1 : queue);

    memset(out, 0, sizeof *out);
    return sql == NULL ? SQLOCK_ENOTSUP
                       : lk_statement_render(out, sql, names, id);
}

void lk_statement_clear(struct lk_statement *statement)
{
    free(statement->text);
    memset(statement, 0, sizeof *statement);
}

void lk_statement_order(const struct lk_statement *statement,
                        const struct lk_arguments *arguments,
                        sqlock_value out[LK_PLACES_MAX])
{
    for (size_t i = 0; i < statement->count; i++)
        out[i] = arguments->values[statement->order[i]];
}

static bool is_word_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c == '_';
}

char *lk_schema_render(const char *schema, const char *prefix)
{
    static const char usual[] = "INT_";
    const char *at = schema;
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);

    if (stream == NULL)
        return NULL;
    while (*at != '\0') {
        bool starts = at == schema || !is_word_character(at[-1]);

        if (starts && strncmp(at, usual, strlen(usual)) == 0) {
            (void)fputs(prefix, stream);
            at += strlen(usual);
        } else {
            (void)fputc(*at++, stream);
        }
    }
    return lk_writer_close(&writer);
}
