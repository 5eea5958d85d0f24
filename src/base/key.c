/*
 * key.c - Spring's UUIDConverter: a name that is a UUID is its own key, any
 * other is hashed (MD5, version 3, without a namespace, as Java's
 * nameUUIDFromBytes does).  The legacy rule takes for a UUID whatever
 * java.util.UUID.fromString of JDK 11 and later takes for one.
 */
#include "base/key.h"

#include <errno.h>
#include <inttypes.h>
#include <md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

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
            return false; /* also at an early NUL */
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

/* Java's Long.parseLong(group, 16): an optional '+', at least one digit, no
 * overflow of 63 bits.  A '-' cannot occur: it ends the group. */
static bool parse_group(const char *group, size_t length, uint64_t *value)
{
    *value = 0;
    if (length > 0 && group[0] == '+') {
        group++;
        length--;
    }
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        char digit[2] = {group[i], '\0'};

        if (!is_hex(group[i]) || *value > (uint64_t)INT64_MAX >> 4)
            return false;
        *value = *value << 4 | strtoul(digit, NULL, 16);
    }
    return true;
}

/* Five groups, at most 36 characters, each masked to its width. */
static bool is_lenient_uuid(const char *name, char key[SQLOCK_KEY_SIZE])
{
    static const uint64_t masks[5] = {0xffffffff, 0xffff, 0xffff, 0xffff,
                                      0xffffffffffff};
    uint64_t groups[5];
    const char *at = name;

    if (strlen(name) > UUID_LENGTH)
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
        return lk_error(err, SQLOCK_EINVAL, "the name of a lock is missing");
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
        return lk_error(err, SQLOCK_EINVAL,
                        "the name of a lock has %zu bytes, %d are allowed",
                        length, LK_NAME_MAX);
    if (!lk_utf8_is_valid(name))
        return lk_error(err, SQLOCK_EINVAL,
                        "the name of a lock is not valid UTF-8");
    return 0;
}

int sqlock_key_of(char key[SQLOCK_KEY_SIZE], const char *name,
                  sqlock_key_rule rule, sqlock_error *err)
{
    int rc;

    if (key == NULL)
        return lk_error(err, SQLOCK_EINVAL, "no place for the key");
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
