/*
 * key.c - names of locks: a key is a UUID, and its own key; a raw one is the
 * name
 */
#include "fuzz.h"

#include "base/key.h"
#include "base/text.h"
#include "sqlock/admin.h"

static void check_uuid(const char *key)
{
    must(strlen(key) == SQLOCK_KEY_SIZE - 1);
    for (size_t i = 0; key[i] != '\0'; i++)
        must(i == 8 || i == 13 || i == 18 || i == 23
                 ? key[i] == '-'
                 : strchr("0123456789abcdef", key[i]) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = fuzz_text(data, size);
    bool is_valid = lk_utf8_is_valid(name) && strlen(name) <= LK_NAME_MAX;
    char key[SQLOCK_KEY_SIZE], again[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};

    for (sqlock_key_rule rule = SQLOCK_KEY_CURRENT; rule <= SQLOCK_KEY_LEGACY;
         rule++) {
        int rc = sqlock_key_of(key, name, rule, &err);

        must(rc == (is_valid ? 0 : SQLOCK_EINVAL));
        if (rc < 0)
            continue;
        check_uuid(key);
        must(sqlock_key_of(again, key, rule, &err) == 0);
        must(strcmp(key, again) == 0);
    }
    if (sqlock_key_of(key, name, SQLOCK_KEY_RAW, &err) == 0)
        must(strcmp(key, name) == 0);
    free(name);
    return 0;
}
