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

void lk_text_escape(char *out, size_t size, const char *text)
{
    size_t used = 0;

    while (*text != '\0') {
        uint32_t character;
        size_t length = lk_utf8_decode(text, &character);
        size_t needed = length;
        char one[12];

        if (length > 0 && !is_harmful(character)) {
            memcpy(one, text, length);
        } else if (length > 1) {
            needed = (size_t)snprintf(one, sizeof one, "\\u{%" PRIx32 "}",
                                      character);
        } else {
            needed = (size_t)snprintf(one, sizeof one, "\\x%02x",
                                      (unsigned)(unsigned char)*text);
            length = 1;
        }
        if (used + needed >= size)
            break;
        memcpy(out + used, one, needed);
        used += needed;
        text += length;
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

bool lk_text_integer(const char *text, int64_t *integer)
{
    bool is_negative = *text == '-';
    int64_t sum = 0;

    text += is_negative ? 1 : 0;
    if (*text == '\0')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        int64_t digit = *text - '0';

        if (__builtin_mul_overflow(sum, INT64_C(10), &sum) ||
            __builtin_add_overflow(sum, is_negative ? -digit : digit, &sum))
            return false;
    }
    if (*text == '\0')
        *integer = sum;
    return *text == '\0';
}

int64_t lk_text_digits(const char **text)
{
    int64_t value = 0;

    for (; **text >= '0' && **text <= '9' &&
           value <= (INT64_MAX - (**text - '0')) / 10;
         (*text)++)
        value = value * 10 + (**text - '0');
    return value;
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
