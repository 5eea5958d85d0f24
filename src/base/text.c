/*
 * text.c - validate, truncate, escape and match UTF-8 (see text.h)
 */
#include "base/text.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Return the length in bytes of a character with this first byte, or 0 if no
 * character begins with it. */
static size_t length_by_lead(unsigned char lead)
{
    if (lead < 0x80)
        return lead != '\0';
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    if (lead >= 0xF0 && lead <= 0xF4)
        return 4;
    return 0;
}

size_t lk_utf8_decode(const char *text, uint32_t *character)
{
    /* By length: the bits of the first byte that belong to the value, and the
     * smallest value that needs so many bytes. */
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    size_t length = length_by_lead(at[0]);
    uint32_t value = at[0] & lead_bits[length];

    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF ||
        (value >= 0xD800 && value <= 0xDFFF)) /* surrogates */
        return 0;
    *character = value;
    return length;
}

size_t lk_utf8_length(const char *text)
{
    uint32_t character;

    return lk_utf8_decode(text, &character);
}

bool lk_utf8_is_valid(const char *text)
{
    while (*text != '\0') {
        size_t length = lk_utf8_length(text);

        if (length == 0)
            return false;
        text += length;
    }
    return true;
}

size_t lk_utf8_prefix(const char *text, size_t limit)
{
    size_t end = 0;

    while (text[end] != '\0') {
        bool is_ascii = (unsigned char)text[end] < 0x80;
        size_t length = is_ascii ? 1 : lk_utf8_length(text + end);

        if (length == 0 || end + length > limit)
            break;
        end += length;
    }
    return end;
}

/* Return whether a character is a control character of C0 or C1, or DEL. */
static bool is_control(const char *character, size_t length)
{
    unsigned char first = (unsigned char)character[0];

    if (length == 1)
        return first < 0x20 || first == 0x7F;
    return length == 2 && first == 0xC2 && (unsigned char)character[1] < 0xA0;
}

void lk_text_escape(char *out, size_t size, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;

    while (*text != '\0') {
        size_t length = lk_utf8_length(text);
        bool raw = length > 0 && !is_control(text, length);
        size_t needed = raw ? length : 4;

        if (used + needed >= size)
            break;
        if (raw) {
            memcpy(out + used, text, length);
            text += length;
        } else {
            unsigned char byte = (unsigned char)*text++;

            out[used] = '\\';
            out[used + 1] = 'x';
            out[used + 2] = digits[byte >> 4];
            out[used + 3] = digits[byte & 15];
        }
        used += needed;
    }
    if (size > 0)
        out[used] = '\0';
}

void lk_text_to_ascii(char *out, size_t size, const char *text)
{
    uint32_t character;
    size_t length;
    size_t used = 0;

    while ((length = lk_utf8_decode(text, &character)) > 0) {
        char one[12];
        size_t needed =
            (size_t)snprintf(one, sizeof one,
                             character < 0x80      ? "%c"
                             : character < 0x10000 ? "\\u%04" PRIx32
                                                   : "\\U%08" PRIx32,
                             character);

        if (used + needed >= size)
            break;
        memcpy(out + used, one, needed);
        used += needed;
        text += length;
    }
    if (size > 0)
        out[used] = '\0';
}

bool lk_text_is_listed(const char *list, const char *word, size_t length)
{
    while (*list != '\0') {
        size_t end = strcspn(list, "|");

        if (end == length && strncmp(list, word, length) == 0)
            return true;
        list += end;
        list += *list == '|';
    }
    return false;
}

bool lk_text_matches(const char *text, const char *patterns)
{
    while (*patterns != '\0') {
        size_t length = strcspn(patterns, "|");
        char pattern[64];

        (void)snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns);
        if (fnmatch(pattern, text, FNM_CASEFOLD) == 0)
            return true;
        patterns += length;
        if (*patterns == '|')
            patterns++;
    }
    return false;
}
