/*
 * test_json.c - the JSON of parameters of statements, read by another parser,
 * jansson's
 */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"

/* Assert that what was written is one JSON string of that value. */
static void assert_reads_as(const char *written, size_t size,
                            const char *expected, size_t length)
{
    json_error_t error;
    json_t *value = json_loadb(written, size, JSON_DECODE_ANY, &error);

    if (value == NULL)
        fail_msg("%s: %s", written, error.text);
    assert_true(json_is_string(value));
    assert_int_equal(json_string_length(value), length);
    assert_memory_equal(json_string_value(value), expected, length);
    json_decref(value);
}

static void check(const char *text, size_t length)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);

    assert_non_null(out);
    lk_json_prefix(out, text, length);
    assert_int_equal(fclose(out), 0);
    assert_reads_as(written, size, text, length);
    free(written);
}

TEST(test_each_character_is_read_as_it_was)
{
    char text[] = "a?b";

    for (char c = 1; c > 0 && c < 127; c++) {
        text[1] = c;
        check(text, 3);
        check(text + 1, 1);
        check(text, 2);
    }
}

TEST(test_all_of_utf8_stays)
{
    const char *text = "\xc3\xa4\"\xe2\x82\xac\\\xf0\x9f\x94\x92\x7f\n";

    check(text, strlen(text));
    check("", 0);
}

TEST(test_a_text_ends_with_its_zero)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);

    assert_non_null(out);
    lk_json_text(out, "say \"no\"");
    assert_int_equal(fclose(out), 0);
    assert_string_equal(written, "\"say \\\"no\\\"\"");
    free(written);
}
