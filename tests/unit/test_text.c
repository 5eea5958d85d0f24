/*
 * test_text.c - UTF-8: validity, truncation and escapes; random ids and
 * numbers; hashing and wiping of texts
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/text.h"

/* Encode a code point by UTF-8's bit patterns, even if it is not a valid
 * one. */
static void encode(unsigned code, char out[5])
{
    if (code < 0x80) {
        out[0] = (char)code;
        out[1] = '\0';
    } else if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        out[2] = '\0';
    } else if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        out[3] = '\0';
    } else {
        out[0] = (char)(0xf0 | code >> 18);
        out[1] = (char)(0x80 | (code >> 12 & 0x3f));
        out[2] = (char)(0x80 | (code >> 6 & 0x3f));
        out[3] = (char)(0x80 | (code & 0x3f));
        out[4] = '\0';
    }
}

TEST(test_every_code_point_is_judged_right)
{
    unsigned code;

    for (code = 1; code < 0x120000; code++) {
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        bool valid = !surrogate && code <= 0x10ffff;
        uint32_t decoded = 0;
        char text[5];

        encode(code, text);
        if (lk_utf8_decode(text, &decoded) != (valid ? strlen(text) : 0) ||
            decoded != (valid ? code : 0))
            fail_msg("U+%X is decoded as U+%X", code, (unsigned)decoded);
        if (lk_utf8_is_valid(text) != valid)
            fail_msg("U+%X is judged wrong", code);
        if (lk_utf8_length(text) != (valid ? strlen(text) : 0))
            fail_msg("U+%X has the wrong length", code);
    }
    assert_true(lk_utf8_is_valid(""));
    assert_int_equal(lk_utf8_length(""), 0);
}

TEST(test_prefix_ends_with_a_whole_character)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92z";
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    size_t limit;

    for (limit = 0; limit < sizeof expected / sizeof *expected; limit++)
        assert_int_equal(lk_utf8_prefix(text, limit), expected[limit]);
}

TEST(test_escape_fits_any_size)
{
    static const char text[] = "ab\x01\xc3\xa9\xff";
    size_t size;

    for (size = 1; size < 20; size++) {
        char out[24];

        memset(out, '#', sizeof out);
        lk_text_escape(out, size, text);
        assert_true(strlen(out) < size);
        assert_int_equal(out[size], '#');
        assert_true(check_one_line(out) || out[0] == '\0');
        assert_true(lk_utf8_is_valid(out));
    }
    lk_text_escape(NULL, 0, text);
}

TEST(test_escape_is_readable)
{
    char out[64];

    lk_text_escape(out, sizeof out, "ab\x01\xc3\xa9\xff\x7f");
    assert_string_equal(out, "ab\\x01\xc3\xa9\\xff\\x7f");
    lk_text_escape(out, sizeof out, "a\u200b\xc2\x9b\U000e0001z");
    assert_string_equal(out, "a\\u{200b}\\u{9b}\\u{e0001}z");
}

/* The first and the last of what is alike, and their neighbours. */
TEST(test_what_hides_or_turns_a_text_is_escaped)
{
    static const struct {
        uint32_t first, last;
    } harmful[] = {
        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
        {0xe000, 0xf8ff}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff},
    };
    char text[5], out[16], escaped[16];

    for (size_t i = 0; i < sizeof harmful / sizeof *harmful; i++) {
        const uint32_t ends[] = {harmful[i].first, harmful[i].last};

        for (size_t j = 0; j < 2; j++) {
            encode(ends[j], text);
            (void)snprintf(escaped, sizeof escaped,
                           ends[j] < 0x80 ? "\\x%02x" : "\\u{%x}", ends[j]);
            lk_text_escape(out, sizeof out, text);
            assert_string_equal(out, escaped);
            if (ends[j] == 0xe000) /* behind the surrogates */
                continue;
            encode(j == 0 ? ends[0] - 1 : ends[1] + 1, text);
            lk_text_escape(out, sizeof out, text);
            assert_string_equal(out, text);
        }
    }
}

TEST(test_random_ids_are_uuids_and_never_the_same)
{
    char last[SQLOCK_KEY_SIZE] = "";
    int i;

    for (i = 0; i < 1000; i++) {
        char id[SQLOCK_KEY_SIZE];

        lk_random_uuid(id);
        assert_int_equal(strlen(id), 36);
        assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
        assert_int_equal(id[14], '4');
        assert_non_null(strchr("89ab", id[19]));
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof last);
    }
}

TEST(test_random_numbers_keep_their_bounds)
{
    bool low = false;
    bool high = false;
    int i;

    for (i = 0; i < 10000; i++) {
        int64_t number = lk_random_between(3, 6);

        assert_in_range(number, 3, 6);
        low = low || number == 3;
        high = high || number == 6;
    }
    assert_true(low && high);
    assert_int_equal(lk_random_between(7, 7), 7);
    assert_true(lk_random_between(0, INT64_MAX) >= 0);
}

/* Test vectors from the source code in FNV's RFC. */
TEST(test_hash_is_fnv_1a)
{
    assert_true(lk_hash_text("") == UINT64_C(0xcbf29ce484222325));
    assert_true(lk_hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(lk_hash_text("foobar") == UINT64_C(0x85944171f73967e8));
    assert_true(lk_hash_on(lk_hash_text("foo"), "bar", 3) ==
                lk_hash_text("foobar"));
}

TEST(test_wiping_leaves_nothing)
{
    static const char nothing[8];
    char secret[] = "pa\0ss#";

    lk_wipe_text(NULL);
    lk_wipe_free(NULL);
    lk_wipe_text(secret);
    assert_memory_equal(secret, "\0\0\0ss#", 7); /* only up to the first NUL */
    lk_wipe(secret, sizeof secret);
    assert_memory_equal(secret, nothing, sizeof secret);
}

TEST(test_what_an_encoding_may_lack_is_escaped)
{
    char out[16];

    lk_text_to_ascii(out, sizeof out, "a\u65e5\u00e9");
    assert_string_equal(out, "a\\u65e5\\u00e9");
    lk_text_to_ascii(out, sizeof out, "\U0001F600");
    assert_string_equal(out, "\\U0001f600");
    /* No character is escaped in part. */
    lk_text_to_ascii(out, sizeof out, "0123456789\u65e5");
    assert_string_equal(out, "0123456789");
    lk_text_to_ascii(out, sizeof out, "012345678\u65e5");
    assert_string_equal(out, "012345678\\u65e5");
}
