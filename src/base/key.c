/*
 * key.c - make the key of a name, as Spring's UUIDConverter does
 *
 * A name that is a UUID is its own key.  Any other is hashed to a UUID of
 * version 3 (MD5) without a namespace, as Java's nameUUIDFromBytes does.
 *
 * The legacy rule takes for a UUID whatever java.util.UUID.fromString of JDK 11
 * and later accepts.
 */
#include "base/key.h"

#include <inttypes.h>
#include <md5.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "sqlock/admin.h"

#define UUID_LENGTH 36

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
}

static bool is_uuid(const char *name)
{
    for (size_t i = 0; i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? name[i] != '-' : !is_hex(name[i]))
            return false; /* also if the name ends here */
    }
    return name[UUID_LENGTH] == '\0';
}

static void lower_case(char key[SQLOCK_KEY_SIZE], const char *uuid)
{
    for (size_t i = 0; i < UUID_LENGTH; i++)
        key[i] =
            (char)(uuid[i] >= 'A' && uuid[i] <= 'F' ? uuid[i] + 32 : uuid[i]);
    key[UUID_LENGTH] = '\0';
}

/* The digit 0 of each script whose decimal digits are one UTF-16 unit each.
 * Those of other scripts are two units; Java does not take them for digits. */
static const uint16_t zeros[] = {
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6,
    0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6, 0x0e50, 0x0ed0,
    0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80,
    0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900,
    0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
};
/* The letters A: ASCII and full width. */
static const uint16_t letters[] = {0x0041, 0x0061, 0xff21, 0xff41};

/* Return the value of a hexadecimal digit, as Java's Character.digit(c, 16), or
 * -1 if the character is none. */
static int digit_of(uint32_t c)
{
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        if (c - zeros[i] < 10)
            return (int)(c - zeros[i]);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (c - letters[i] < 6)
            return (int)(c - letters[i]) + 10;
    return -1;
}

/* Read a group of a UUID as Java's Long.parseLong(group, 16) does: an
 * optional '+', at least one digit, no overflow of 63 bits.  The group has no
 * '-', since a '-' ends it.  Return false if the group is no such number. */
static bool parse_group(const char *group, size_t length, uint64_t *value)
{
    const char *end = group + length;

    *value = 0;
    if (length > 0 && group[0] == '+')
        group++;
    if (group == end)
        return false;
    while (group < end) {
        uint32_t character = 0;
        int digit;

        group += lk_utf8_decode(group, &character);
        digit = digit_of(character);
        if (digit < 0 || *value > (uint64_t)INT64_MAX >> 4)
            return false;
        *value = *value << 4 | (unsigned)digit;
    }
    return true;
}

/* Return the length of a name in UTF-16 units, as Java counts. */
static size_t length_in_java(const char *name)
{
    size_t units = 0;

    while (*name != '\0') {
        size_t bytes = lk_utf8_length(name);

        units += bytes == 4 ? 2 : 1;
        name += bytes;
    }
    return units;
}

/* Read a name as java.util.UUID.fromString() does: at most 36 characters, five
 * groups, each masked to its width in a UUID.  Return false, without a key, if
 * the name is no UUID in this sense. */
static bool is_lenient_uuid(const char *name, char key[SQLOCK_KEY_SIZE])
{
    static const uint64_t masks[5] = {0xffffffff, 0xffff, 0xffff, 0xffff,
                                      0xffffffffffff};
    uint64_t groups[5];
    const char *at = name;

    if (length_in_java(name) > UUID_LENGTH)
        return false;
    for (size_t i = 0; i < 5; i++) {
        size_t length = strcspn(at, "-");

        if (!parse_group(at, length, &groups[i]))
            return false;
        groups[i] &= masks[i];
        at += length;
        if (*at != (i < 4 ? '-' : '\0'))
            return false;
        if (i < 4)
            at++;
    }
    (void)snprintf(key, SQLOCK_KEY_SIZE,
                   "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64
                   "-%012" PRIx64,
                   groups[0], groups[1], groups[2], groups[3], groups[4]);
    return true;
}

static void hash(char key[SQLOCK_KEY_SIZE], const char *name)
{
    uint8_t digest[MD5_DIGEST_LENGTH];
    MD5_CTX context;
    char *out = key;

    MD5Init(&context);
    MD5Update(&context, (const uint8_t *)name, strlen(name));
    MD5Final(digest, &context);
    digest[6] = (uint8_t)((digest[6] & 0x0f) | 0x30); /* version 3 */
    digest[8] = (uint8_t)((digest[8] & 0x3f) | 0x80); /* RFC 4122 */
    for (size_t i = 0; i < MD5_DIGEST_LENGTH; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;

        out += snprintf(out, 4, "%s%02x", dash ? "-" : "", digest[i]);
    }
}

static bool is_printable_ascii(const char *name)
{
    for (; *name != '\0'; name++)
        if (*name < 0x21 || *name > 0x7e)
            return false;
    return true;
}

int lk_name_check(const char *name, sqlock_key_rule rule, sqlock_error *err)
{
    size_t length;

    if (name == NULL)
        return lk_error_null(err, "the name of a lock");
    length = strlen(name);
    if (rule == SQLOCK_KEY_RAW) {
        if (length < 1 || length > UUID_LENGTH || !is_printable_ascii(name))
            return lk_error(err, SQLOCK_EINVAL,
                            "a raw key has 1 to 36 printable ASCII characters "
                            "and no space");
        return 0;
    }
    if (rule != SQLOCK_KEY_CURRENT && rule != SQLOCK_KEY_LEGACY)
        return lk_error(err, SQLOCK_EINVAL, "unknown key rule %d", (int)rule);
    if (length > LK_NAME_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the name of the lock has %zu bytes, at most %d are allowed",
            length, LK_NAME_MAX);
    if (!lk_utf8_is_valid(name))
        return lk_error(err, SQLOCK_EINVAL,
                        "the name of the lock is not valid UTF-8");
    return 0;
}

int sqlock_key_of(char key[SQLOCK_KEY_SIZE], const char *name,
                  sqlock_key_rule rule, sqlock_error *err)
{
    int rc;

    if (key == NULL)
        return lk_error_null(err, "key");
    rc = lk_name_check(name, rule, err);
    if (rc < 0)
        return rc;
    if (rule == SQLOCK_KEY_RAW)
        (void)snprintf(key, SQLOCK_KEY_SIZE, "%s", name);
    else if (is_uuid(name))
        lower_case(key, name);
    else if (rule == SQLOCK_KEY_CURRENT || !is_lenient_uuid(name, key))
        hash(key, name);
    return 0;
}
