/*
 * statement.c - rendering templates.  Only validated, quoted table names and
 * placeholders ever go into a text; values are bound.
 */
#include "db/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MARK "{table}"

void lk_argument_text(struct lk_arguments *arguments, sqlock_parameter which,
                      const char *text)
{
    sqlock_value *value = &arguments->values[which];

    memset(value, 0, sizeof *value);
    if (text == NULL)
        return;
    value->type = SQLOCK_TEXT;
    value->text = text;
    value->length = strlen(text);
}

void lk_argument_integer(struct lk_arguments *arguments, sqlock_parameter which,
                         int64_t integer)
{
    sqlock_value *value = &arguments->values[which];

    memset(value, 0, sizeof *value);
    value->type = SQLOCK_INT64;
    value->integer = integer;
}

/* The number to write for a parameter: a new one, or with $N the one it has
 * already.  0: too many. */
static size_t place_of(struct lk_statement *statement, sqlock_placeholder style,
                       unsigned char parameter)
{
    if (style == SQLOCK_PLACEHOLDER_DOLLAR)
        for (size_t i = 0; i < statement->count; i++)
            if (statement->order[i] == parameter)
                return i + 1;
    if (statement->count == LK_PLACES_MAX)
        return 0;
    statement->order[statement->count++] = parameter;
    return statement->count;
}

static int write_parameter(FILE *out, struct lk_statement *statement,
                           sqlock_placeholder style, char digit)
{
    unsigned char parameter = (unsigned char)(digit - '0');
    size_t place;

    if (digit < '0' || digit > '0' + SQLOCK_PARAMETERS)
        return SQLOCK_EINVAL;
    place = place_of(statement, style, parameter);
    if (place == 0)
        return SQLOCK_EINVAL;
    if (style == SQLOCK_PLACEHOLDER_DOLLAR)
        (void)fprintf(out, "$%zu", place);
    else
        (void)fputc('?', out);
    return 0;
}

static int write_text(FILE *out, struct lk_statement *statement,
                      sqlock_placeholder style, const char *text,
                      const char *table)
{
    while (*text != '\0') {
        int rc;

        if (strncmp(text, TABLE_MARK, strlen(TABLE_MARK)) == 0) {
            (void)fputs(table, out);
            text += strlen(TABLE_MARK);
        } else if (text[0] == '{' && text[1] != '\0' && text[2] == '}') {
            rc = write_parameter(out, statement, style, text[1]);
            if (rc < 0)
                return rc;
            text += 3;
        } else {
            (void)fputc(*text++, out);
        }
    }
    return 0;
}

int lk_statement_render(struct lk_statement *out, const sqlock_dialect *dialect,
                        const sqlock_template *template, const char *table,
                        uint32_t id)
{
    size_t size = 0;
    FILE *stream;
    int rc;

    memset(out, 0, sizeof *out);
    if (template->text == NULL)
        return SQLOCK_ENOTSUP;
    stream = open_memstream(&out->text, &size);
    if (stream == NULL)
        return SQLOCK_ENOMEM;
    rc = write_text(stream, out, dialect->placeholder, template->text, table);
    if (fclose(stream) != 0)
        rc = SQLOCK_ENOMEM;
    if (rc < 0) {
        lk_statement_clear(out);
        return rc;
    }
    out->sent.text = out->text;
    out->sent.id = template->is_planned_anew ? 0 : id;
    out->sent.insert_id = template->insert_id;
    return 0;
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

char *lk_schema_render(const char *schema, const char *name, const char *table)
{
    size_t word = strlen(name);
    const char *at = schema;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL)
        return NULL;
    while (*at != '\0') {
        bool starts = at == schema || !is_word_character(at[-1]);

        if (starts && strncmp(at, name, word) == 0 &&
            !is_word_character(at[word])) {
            (void)fputs(table, stream);
            at += word;
        } else {
            (void)fputc(*at++, stream);
        }
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
