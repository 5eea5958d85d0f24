/*
 * placeholders.c - read the application's SQL: replace each `?` by $1, $2, ...
 * for databases with numbered placeholders
 *
 * Placeholders are found outside quotes, comments, and PostgreSQL's dollar
 * quotes.
 */
#include <ctype.h>
#include <string.h>

#include "base/writer.h"
#include "tx/tx.h"

/* Return the end of a quoted text; a doubled quote is read as two texts in a
 * row.  has_escapes: a backslash escapes the next character, as in E'...'. */
static const char *skip_quoted(const char *at, bool has_escapes)
{
    char quote = *at++;

    while (*at != '\0' && *at != quote) {
        if (has_escapes && *at == '\\' && at[1] != '\0')
            at++;
        at++;
    }
    return *at == '\0' ? at : at + 1;
}

/* Return the end of a block comment, which may be nested. */
static const char *skip_block(const char *at)
{
    int depth = 0;

    do {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else {
            at++;
        }
    } while (depth > 0 && *at != '\0');
    return at;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Return the end of $tag$ ... $tag$, or at + 1 if no such text begins at the
 * `$`. */
static const char *skip_dollars(const char *at)
{
    size_t length = 1;
    const char *end;

    if (isdigit((unsigned char)at[1]))
        return at + 1;
    while (is_word(at[length]))
        length++;
    if (at[length] != '$')
        return at + 1;
    length++;
    for (end = at + length; *end != '\0'; end++)
        if (strncmp(end, at, length) == 0)
            return end + length;
    return end;
}

/* Return the end of a quoted text or comment that begins at `at`; if none does,
 * `at` itself (at + 1 for a lone `$`).  `start` is the beginning of the whole
 * text. */
static const char *skip(const char *start, const char *at)
{
    bool starts_word = at == start || !is_word(at[-1]);

    if (*at == '\'' || *at == '"')
        return skip_quoted(at, *at == '\'' && at > start &&
                                   (at[-1] == 'E' || at[-1] == 'e') &&
                                   (at - start < 2 || !is_word(at[-2])));
    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\r\n");
    if (at[0] == '/' && at[1] == '*')
        return skip_block(at);
    if (*at == '$' && starts_word)
        return skip_dollars(at);
    return at;
}

char *lk_placeholders_number(const char *sql, size_t *count)
{
    const char *at = sql;
    size_t number = 0;
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);

    if (out == NULL)
        return NULL;
    while (*at != '\0') {
        const char *end = skip(sql, at);

        if (end > at) {
            (void)fwrite(at, 1, (size_t)(end - at), out);
            at = end;
        } else if (at[0] == '?' && at[1] == '?') {
            (void)fputc('?', out);
            at += 2;
        } else if (*at == '?') {
            (void)fprintf(out, "$%zu", ++number);
            at++;
        } else {
            (void)fputc(*at++, out);
        }
    }
    *count = number;
    return lk_writer_close(&writer);
}
