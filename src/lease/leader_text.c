/*
 * leader_text.c - write and read a leader's text in SHARERS (leader_text.h)
 */
#include "lease/leader_text.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define ID_LENGTH (SQLOCK_KEY_SIZE - 1)
#define LEADER "{\"leader\":\""
#define TOLD "\",\"told\":\""
#define KEPT "\",\"kept\":\""
#define TEXT "\",\"text\":\""

int lk_leader_check(const char *text, sqlock_error *err)
{
    if (text == NULL)
        return lk_error_null(err, "text");
    if (strnlen(text, SQLOCK_LEADER_TEXT_MAX + 1) > SQLOCK_LEADER_TEXT_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "the text of a leader has %d bytes at most",
                        SQLOCK_LEADER_TEXT_MAX);
    if (!lk_utf8_is_valid(text))
        return lk_error(err, SQLOCK_EINVAL,
                        "the text of a leader must be UTF-8");
    return 0;
}

/* --- writing --- */

static bool is_plain(uint32_t character)
{
    return character >= ' ' && character <= '~' && character != '"' &&
           character != '\\';
}

/* Write a character as JSON does in ASCII, and return how many bytes it has. */
static size_t write_character(char *out, size_t size, uint32_t character)
{
    uint32_t high = (character - 0x10000) >> 10;
    uint32_t low = (character - 0x10000) & 0x3ff;

    if (is_plain(character))
        return (size_t)snprintf(out, size, "%c", (char)character);
    if (character < 0x10000)
        return (size_t)snprintf(out, size, "\\u%04x", character);
    return (size_t)snprintf(out, size, "\\u%04x\\u%04x", 0xd800 + high,
                            0xdc00 + low);
}

void lk_leader_write(char out[LK_LEADER_FORM_SIZE], const char *text)
{
    size_t used = 0;
    uint32_t character;
    size_t length;

    out[0] = '\0';
    while ((length = lk_utf8_decode(text, &character)) > 0) {
        used +=
            write_character(out + used, LK_LEADER_FORM_SIZE - used, character);
        text += length;
    }
}

/* --- reading --- */

/* Read four hexadecimal digits.  Return false if they are not there. */
static bool read_digits(const char *text, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";

    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;

        if (digit == NULL)
            return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

/* Read a character from *at on, and move *at behind it.  Return false at the
 * end, and for what write_character() does not write. */
static bool read_character(const char **at, uint32_t *out)
{
    uint32_t low;

    *out = (unsigned char)**at;
    if (is_plain(*out)) {
        (*at)++;
        return true;
    }
    if (strncmp(*at, "\\u", 2) != 0 || !read_digits(*at + 2, out))
        return false;
    *at += 6;
    if (*out < 0xd800 || *out > 0xdfff)
        return *out != 0;
    if (*out > 0xdbff) /* the second half of a character, without the first */
        return false;
    if (strncmp(*at, "\\u", 2) != 0 || !read_digits(*at + 2, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return false;
    *at += 6;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Return what stands behind the CLIENT_ID in SHARERS, which may be NULL, if
 * that is the leader's; or NULL. */
static const char *behind_id(const char *sharers, const char *client_id)
{
    if (sharers == NULL || strlen(client_id) != ID_LENGTH ||
        strncmp(sharers, LEADER, strlen(LEADER)) != 0 ||
        strncmp(sharers + strlen(LEADER), client_id, ID_LENGTH) != 0)
        return NULL;
    return sharers + strlen(LEADER) + ID_LENGTH;
}

/* Return the serial of the leader's text in SHARERS, or NULL. */
static const char *serial_in(const char *sharers, const char *client_id)
{
    const char *at = behind_id(sharers, client_id);

    if (at == NULL || (strncmp(at, TOLD, strlen(TOLD)) != 0 &&
                       strncmp(at, KEPT, strlen(KEPT)) != 0))
        return NULL;
    at += strlen(TOLD);
    return strspn(at, "0123456789") == LK_LEADER_SERIAL_LENGTH ? at : NULL;
}

int64_t lk_leader_serial(const char *sharers, const char *client_id)
{
    const char *at = serial_in(sharers, client_id);

    return at != NULL ? lk_text_digits(&at) : 0;
}

bool lk_leader_tells(const char *sharers, const char *client_id)
{
    const char *at = behind_id(sharers, client_id);

    return at != NULL && strncmp(at, TOLD, strlen(TOLD)) == 0;
}

/* Return the text's form in SHARERS, or NULL. */
static const char *form_of(const char *sharers, const char *client_id)
{
    const char *at = serial_in(sharers, client_id);

    if (at == NULL ||
        strncmp(at + LK_LEADER_SERIAL_LENGTH, TEXT, strlen(TEXT)) != 0)
        return NULL;
    return at + LK_LEADER_SERIAL_LENGTH + strlen(TEXT);
}

bool lk_leader_text(const char *sharers, const char *client_id,
                    char out[SQLOCK_LEADER_TEXT_MAX + 1])
{
    const char *at = form_of(sharers, client_id);
    size_t used = 0;
    uint32_t character;

    while (at != NULL && *at != '"') {
        char bytes[5];
        size_t length;

        if (!read_character(&at, &character))
            return false;
        length = lk_utf8_encode(bytes, character);
        if (used + length > SQLOCK_LEADER_TEXT_MAX)
            return false;
        memcpy(out + used, bytes, length);
        used += length;
    }
    out[used] = '\0';
    return at != NULL;
}
