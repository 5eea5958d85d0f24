/*
 * text.c - prepare text from the database or the user for a terminal: escape
 * it (F79), and count and limit its width in columns
 *
 * Output is UTF-8 whatever the locale, so that it is the same in a cron job and
 * in a shell.
 */
#include "cli.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

/* Return the length of the printable ASCII at the start of a text, which is
 * shown unchanged. */
static size_t plain_length(const char *text)
{
    size_t length = 0;

    while (text[length] >= 0x20 && text[length] < 0x7f)
        length++;
    return length;
}

/* Return how many blanks a text ends with. */
static size_t blanks_behind(const char *text)
{
    size_t length = strlen(text);
    size_t count = 0;

    while (count < length && text[length - 1 - count] == ' ')
        count++;
    return count;
}

bool cli_is_plain(const char *text)
{
    return text[0] != ' ' && blanks_behind(text) == 0 &&
           text[plain_length(text)] == '\0';
}

/* Write an escaped blank, count times, and return the end. */
static char *write_blanks(char *out, size_t count)
{
    static const char blank[] = "\\x20";

    for (; count > 0; count--, out += sizeof blank - 1)
        memcpy(out, blank, sizeof blank);
    return out;
}

char *cli_escape(const char *text)
{
    size_t size = strlen(text) * 4 + 1;
    size_t before = strspn(text, " ");
    size_t behind = blanks_behind(text + before);
    char *escaped = malloc(size);
    char *end;

    if (escaped == NULL)
        return NULL;
    end = write_blanks(escaped, before);
    lk_text_escape(end, size - (size_t)(end - escaped), text + before);
    end += strlen(end) - behind;
    (void)write_blanks(end, behind);
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
