/*
 * json.c - write JSON arguments directly to a stream
 *
 * No library that first builds a tree of values is used: a statement about many
 * leases or items has thousands of short texts and numbers, and to build the
 * tree took a quarter of the time of the claim itself on SQLite.
 */
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

static bool is_special(char c)
{
    return c == '"' || c == '\\' || (unsigned char)c < 0x20;
}

static void put_special(FILE *out, char c)
{
    if (c == '"' || c == '\\')
        (void)fprintf(out, "\\%c", c);
    else
        (void)fprintf(out, "\\u%04x", (unsigned)c);
}

void lk_json_prefix(FILE *out, const char *text, size_t length)
{
    size_t begin = 0;

    (void)putc_unlocked('"', out);
    for (size_t i = 0; i < length; i++) {
        if (!is_special(text[i]))
            continue;
        (void)fwrite_unlocked(text + begin, 1, i - begin, out);
        put_special(out, text[i]);
        begin = i + 1;
    }
    (void)fwrite_unlocked(text + begin, 1, length - begin, out);
    (void)putc_unlocked('"', out);
}

void lk_json_text(FILE *out, const char *text)
{
    lk_json_prefix(out, text, strlen(text));
}
