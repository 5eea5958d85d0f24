/*
 * text.c - prepare text from the database or the user for a terminal (F79):
 * escape what a terminal would interpret or hide, and count widths in columns
 *
 * Output is UTF-8 whatever the locale, so that it is the same in a cron job and
 * in a shell.
 */
#include "cli.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

/* Return whether a character is a control character, is invisible, or hides or
 * reverses the text next to it. */
static bool is_harmful(uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},
        {0x61c, 0x61c},   {0x115f, 0x1160},   {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
        {0x3164, 0x3164}, {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
        {0xfff0, 0xffff}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
    };
    size_t i;

    for (i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    }
    return false;
}

/* Return the length of the printable ASCII at the start of a text, which is
 * shown unchanged. */
static size_t plain_length(const char *text)
{
    size_t length = 0;

    while (text[length] >= 0x20 && text[length] < 0x7f)
        length++;
    return length;
}

bool cli_is_plain(const char *text)
{
    return text[plain_length(text)] == '\0';
}

char *cli_escape(const char *text)
{
    /* The longest escape of one byte is "\xff"; of two, "\u{61c}"; of three,
     * "\u{ffff}"; of four, "\u{10ffff}": at most four times as long. */
    size_t plain = plain_length(text);
    size_t size = plain + strlen(text + plain) * 4 + 1;
    char *escaped = malloc(size);
    char *to;
    uint32_t character;
    size_t length;
    int written;

    if (escaped == NULL)
        return NULL;
    memcpy(escaped, text, plain);
    to = escaped + plain;
    for (text += plain; *text != '\0'; text += length) {
        length = lk_utf8_decode(text, &character);
        if (length > 0 && !is_harmful(character)) {
            memcpy(to, text, length);
            to += length;
            continue;
        }
        if (length < 2) {
            length = 1;
            written = snprintf(to, size - (size_t)(to - escaped), "\\x%02x",
                               (unsigned)(unsigned char)*text);
        } else {
            written = snprintf(to, size - (size_t)(to - escaped), "\\u{%x}",
                               (unsigned)character);
        }
        to += written;
    }
    *to = '\0';
    return escaped;
}

/* Return how many columns a character takes.  wcwidth() depends on the thread's
 * locale, which is therefore UTF-8 during the call. */
static size_t columns_of(uint32_t character)
{
    static locale_t utf8;
    locale_t before;
    int columns;

    if (character < 0x80)
        return 1;
    if (utf8 == (locale_t)0)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (utf8 == (locale_t)0)
        return 1;
    before = uselocale(utf8);
    columns = wcwidth((wchar_t)character);
    (void)uselocale(before);
    return columns >= 0 ? (size_t)columns : 1;
}

size_t cli_width(const char *text)
{
    uint32_t character;
    size_t width = plain_length(text);
    size_t length;

    for (text += width; *text != '\0'; text += length) {
        length = lk_utf8_decode(text, &character);
        width += length == 0 ? 1 : columns_of(character);
        if (length == 0)
            length = 1;
    }
    return width;
}

char *cli_cut(const char *text, size_t width)
{
    static const char mark[] = "\u2026";
    const char *at = text;
    uint32_t character;
    size_t used = 0;
    size_t length;
    char *cut;

    if (cli_width(text) <= width)
        return strdup(text);
    while (*at != '\0') {
        length = lk_utf8_decode(at, &character);
        if (length == 0)
            break;
        if (used + columns_of(character) + 1 > width)
            break;
        used += columns_of(character);
        at += length;
    }
    cut = malloc((size_t)(at - text) + sizeof mark);
    if (cut == NULL)
        return NULL;
    memcpy(cut, text, (size_t)(at - text));
    memcpy(cut + (at - text), mark, sizeof mark);
    return cut;
}
