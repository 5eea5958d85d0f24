/*
 * test_key.c - how a name becomes a LOCK_KEY: every row of
 * data/key-vectors*.tsv, and names that are refused
 */
#include "support/test.h"
#include "sqlock/admin.h"

#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_ 20000
#define NAME_LIMIT 10000

static FILE *open_data(const char *file)
{
    char here[] = __FILE__;
    char path[512];
    FILE *stream;

    (void)snprintf(path, sizeof path, "%s/data/%s", dirname(here), file);
    stream = fopen(path, "r");
    if (stream == NULL)
        fail_msg("cannot open %s (run from the top of the tree)", path);
    return stream;
}

static void check_vector(char *line, sqlock_key_rule rule)
{
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    json_error_t why;
    char *tab = strrchr(line, '\t');
    json_t *name;
    int rc;

    assert_non_null(tab);
    *tab = '\0';
    name = json_loads(line, JSON_DECODE_ANY, &why);
    if (name == NULL || !json_is_string(name))
        fail_msg("no JSON string: %s", line);
    rc = sqlock_key_of(key, json_string_value(name), rule, &err);
    assert_lock_ok(rc, &err);
    if (strcmp(key, tab + 1) != 0)
        fail_msg("%s gave %s, not %s", line, key, tab + 1);
    json_decref(name);
}

/* Check every row of a file in data/.  Return the number of rows. */
static unsigned check_file(const char *file, sqlock_key_rule rule)
{
    FILE *stream = open_data(file);
    char *line = malloc(LINE_MAX_);
    unsigned rows = 0;

    assert_non_null(line);
    while (fgets(line, LINE_MAX_, stream) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        check_vector(line, rule);
        rows++;
    }
    free(line);
    assert_int_equal(fclose(stream), 0);
    return rows;
}

TEST(test_keys_are_those_of_spring)
{
    assert_int_equal(check_file("key-vectors.tsv", SQLOCK_KEY_CURRENT), 33);
}

TEST(test_legacy_keys_are_those_of_old_spring)
{
    assert_int_equal(check_file("key-vectors-legacy.tsv", SQLOCK_KEY_LEGACY),
                     16);
}

static void check_key(const char *name, sqlock_key_rule rule,
                      const char *expected)
{
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    int rc = sqlock_key_of(key, name, rule, &err);

    assert_lock_ok(rc, &err);
    assert_string_equal(key, expected);
}

TEST(test_legacy_rule_reads_uuids_as_java_did)
{
    static const char expected[] = "00000001-0001-0001-0001-000000000001";

    check_key("+1-1-1-1-1", SQLOCK_KEY_LEGACY, expected);
    check_key("1-12345-1-1-1", SQLOCK_KEY_LEGACY,
              "00000001-2345-0001-0001-000000000001");
    check_key("foo", SQLOCK_KEY_LEGACY, "acbd18db-4cc2-385c-adef-654fccc4a4d8");
    /* four groups are no UUID by either rule */
    check_key("1-2-3-4", SQLOCK_KEY_LEGACY,
              "4001e76e-5949-368a-a984-e328877cbffd");
    check_key("1-2-3-4", SQLOCK_KEY_CURRENT,
              "4001e76e-5949-368a-a984-e328877cbffd");
    /* nor are six */
    check_key("1-2-3-4-5-6", SQLOCK_KEY_LEGACY,
              "5caaae54-cfd8-3b46-8a0f-c737f995766c");
}

TEST(test_raw_key_is_the_name)
{
    check_key("a", SQLOCK_KEY_RAW, "a");
    check_key("ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8", SQLOCK_KEY_RAW,
              "ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8");
}

TEST(test_raw_key_out_of_bounds_is_refused)
{
    static const char *const bad[] = {
        "",          "0123456789012345678901234567890123456",
        "tab\there", "\x7f",
        "n\xc3\xa9", "line\n",
    };
    char key[SQLOCK_KEY_SIZE] = "unchanged";
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        sqlock_error err = {0};
        int rc = sqlock_key_of(key, bad[i], SQLOCK_KEY_RAW, &err);

        assert_code(SQLOCK_EINVAL, rc, &err);
        assert_string_equal(key, "unchanged");
    }
}

TEST(test_names_of_every_length_up_to_the_limit)
{
    char *name = malloc(NAME_LIMIT + 2);
    char last[SQLOCK_KEY_SIZE] = "";
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    size_t length;
    int rc;

    assert_non_null(name);
    for (length = 0; length <= NAME_LIMIT; length += length < 300 ? 1 : 97) {
        memset(name, 'k', length);
        name[length] = '\0';
        rc = sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, &err);
        assert_lock_ok(rc, &err);
        assert_int_equal(strlen(key), 36);
        assert_string_not_equal(key, last);
        memcpy(last, key, sizeof last);
    }
    memset(name, 'k', NAME_LIMIT + 1);
    name[NAME_LIMIT] = '\0';
    rc = sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, &err);
    assert_lock_ok(rc, &err);
    name[NAME_LIMIT] = 'k';
    name[NAME_LIMIT + 1] = '\0';
    rc = sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    free(name);
}

TEST(test_invalid_utf8_is_refused)
{
    static const char *const bad[] = {
        "\x80",             /* continuation first */
        "a\xff",            /* never in UTF-8 */
        "\xc3",             /* cut short */
        "\xe2\x82",         /* cut short */
        "\xc0\xaf",         /* overlong */
        "\xe0\x80\xaf",     /* overlong */
        "\xf0\x80\x80\xaf", /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf8\x88\x80\x80\x80",
        "\xc3\x28",
    };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        char key[SQLOCK_KEY_SIZE];
        sqlock_error err = {0};
        int rc = sqlock_key_of(key, bad[i], SQLOCK_KEY_CURRENT, &err);

        assert_code(SQLOCK_EINVAL, rc, &err);
        rc = sqlock_key_of(key, bad[i], SQLOCK_KEY_LEGACY, &err);
        assert_code(SQLOCK_EINVAL, rc, &err);
    }
}

/* Spring's issues #11146 and #11157: names that differ must not share a key. */
TEST(test_F29_names_that_look_alike_are_different_keys)
{
    static const char *const names[] = {"Job",
                                        "JOB",
                                        "job",
                                        "job ",
                                        " job",
                                        "jo b",
                                        "job\t",
                                        "0",
                                        "641",
                                        "00",
                                        "j\xc3\xb6"
                                        "b",
                                        "jo\xcc\x88"
                                        "b"};
    char keys[sizeof names / sizeof *names][SQLOCK_KEY_SIZE];
    size_t count = sizeof names / sizeof *names;
    size_t i;
    size_t k;

    for (i = 0; i < count; i++) {
        sqlock_error err = {0};
        int rc = sqlock_key_of(keys[i], names[i], SQLOCK_KEY_CURRENT, &err);

        assert_lock_ok(rc, &err);
        for (k = 0; k < i; k++)
            assert_string_not_equal(keys[i], keys[k]);
    }
}

TEST(test_unknown_rule_is_refused)
{
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    int rc = sqlock_key_of(key, "foo", (sqlock_key_rule)99, &err);

    assert_code(SQLOCK_EINVAL, rc, &err);
}
