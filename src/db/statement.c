/*
 * statement.c - render templates: put in the fragments (template.c), then the
 * placeholders of parameters
 *
 * Nothing else goes into a text but table names, validated and quoted; values
 * are bound to the placeholders.
 */
#include "db/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "db/lock_sql.h"

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

/* Return the number to write for a parameter: a new one, or, in the style $N,
 * the one that the parameter has already.  Return 0 if there are too many. */
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

static int write_parameters(FILE *out, struct lk_statement *statement,
                            sqlock_placeholder style, const char *text)
{
    int rc = 0;

    while (rc == 0 && *text != '\0') {
        if (text[0] == '{' && text[1] != '\0' && text[2] == '}') {
            rc = write_parameter(out, statement, style, text[1]);
            text += 3;
        } else {
            (void)fputc(*text++, out);
        }
    }
    return rc;
}

/* Expand a template with its fragments into *out, which the caller frees.  *out
 * is NULL after a failure. */
static int expand(char **out, const char *text,
                  const struct lk_fragments *fragments)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    int rc;

    if (stream == NULL)
        return SQLOCK_ENOMEM;
    rc = lk_template_write(stream, text, fragments);
    *out = lk_writer_close(&writer);
    if (*out == NULL)
        rc = SQLOCK_ENOMEM;
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

/* Replace the marks of parameters by placeholders, into out->text. */
static int number(struct lk_statement *out, sqlock_placeholder style,
                  const char *text)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    int rc;

    if (stream == NULL)
        return SQLOCK_ENOMEM;
    rc = write_parameters(stream, out, style, text);
    out->text = lk_writer_close(&writer);
    if (out->text == NULL)
        rc = SQLOCK_ENOMEM;
    if (rc < 0)
        lk_statement_clear(out);
    return rc;
}

int lk_statement_write(struct lk_statement *out, const sqlock_dialect *dialect,
                       const sqlock_template *template,
                       const struct lk_fragments *fragments, uint32_t id)
{
    char *text = NULL;
    int rc;

    memset(out, 0, sizeof *out);
    if (template->text == NULL || *template->text == '\0')
        return SQLOCK_ENOTSUP;
    rc = expand(&text, template->text, fragments);
    if (rc == 0 && *text == '\0')
        rc = SQLOCK_ENOTSUP;
    if (rc == 0)
        rc = number(out, dialect->placeholder, text);
    free(text);
    if (rc < 0)
        return rc;
    out->sent.text = out->text;
    out->sent.id = template->is_planned_anew ? 0 : id;
    out->sent.insert_id = template->insert_id;
    return 0;
}

int lk_statement_render(struct lk_statement *out, const sqlock_dialect *dialect,
                        const sqlock_template *template, const char *table,
                        uint32_t id)
{
    const sqlock_fragment own[] = {{"table", table}, {NULL, NULL}};
    const struct lk_fragments fragments = {.lists = {own, dialect->overrides,
                                                     dialect->fragments,
                                                     lk_lock_fragments}};

    return lk_statement_write(out, dialect, template, &fragments, id);
}

static int render_in(struct lk_statement *out, const sqlock_dialect *dialect,
                     sqlock_layout layout, const sqlock_template *template,
                     const char *table, uint32_t id)
{
    const sqlock_fragment own[] = {{"table", table}, {NULL, NULL}};
    const struct lk_fragments fragments = {
        .lists = {
            own,
            dialect->overrides,
            template->with,
            dialect->layout_fragments[layout],
            dialect->fragments,
            lk_layout_fragments[layout],
            lk_lock_fragments,
        }};

    return lk_statement_write(out, dialect, template, &fragments, id);
}

int lk_statement_of_kind(struct lk_statement *out,
                         const sqlock_dialect *dialect, sqlock_layout layout,
                         sqlock_statement_kind kind, const char *table,
                         uint32_t id)
{
    sqlock_template template = dialect->statements[kind];

    memset(out, 0, sizeof *out);
    if (template.layouts != 0 && (template.layouts & (1u << layout)) == 0)
        return SQLOCK_ENOTSUP;
    if (template.text == NULL) {
        template.text = lk_lock_templates[kind].text;
        if (template.with == NULL)
            template.with = lk_lock_templates[kind].with;
    }
    return render_in(out, dialect, layout, &template, table, id);
}

int lk_statement_of_tx(struct lk_statement *out, const sqlock_driver *driver,
                       sqlock_layout layout, sqlock_tx_kind kind,
                       const char *table, uint32_t id)
{
    sqlock_template template = {.text = driver->transactions->statements[kind]};

    if (template.text == NULL)
        template.text = lk_tx_templates[kind];
    return render_in(out, driver->dialect, layout, &template, table, id);
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
