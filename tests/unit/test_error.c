/*
 * test_error.c - texts of codes, and messages as sqlock_error_set() makes them
 */
#include "support/test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "db/driver.h"

static const int codes[] = {
#define SQLOCK_X(name, value, text) (value),
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
};

TEST(test_every_code_is_negative_and_has_its_own_text)
{
    size_t count = sizeof codes / sizeof *codes;
    size_t i;
    size_t k;

    assert_int_equal(count, 24);
    for (i = 0; i < count; i++) {
        assert_true(codes[i] < 0);
        assert_true(check_one_line(sqlock_strerror(codes[i])));
        for (k = 0; k < i; k++) {
            assert_int_not_equal(codes[i], codes[k]);
            assert_string_not_equal(sqlock_strerror(codes[i]),
                                    sqlock_strerror(codes[k]));
        }
    }
}

TEST(test_texts_are_those_of_the_header)
{
#define SQLOCK_X(name, value, text)                                            \
    assert_string_equal(sqlock_strerror(SQLOCK_##name), text);
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
}

/* EEXPIRED may come from a holder that has not read the row, so its text does
 * not say that nobody had the lock.  The missing table of ESCHEMA may be one of
 * the application's. */
TEST(test_texts_claim_no_more_than_is_known)
{
    assert_lacks(sqlock_strerror(SQLOCK_EEXPIRED), "nobody");
    assert_lacks(sqlock_strerror(SQLOCK_ESCHEMA), "lock");
}

TEST(test_unknown_codes_have_a_text_too)
{
    static const int unknown[] = {1, 42, -99, -1000, INT_MAX, INT_MIN};
    size_t i;

    for (i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_true(check_one_line(sqlock_strerror(unknown[i])));
    assert_true(check_one_line(sqlock_strerror(0)));
}

TEST(test_a_message_that_is_empty_is_the_text_of_its_code)
{
    sqlock_error err;

    (void)sqlock_error_set(&err, SQLOCK_EBUSY, 0, NULL, "%s", " \n");
    assert_string_equal(err.message, sqlock_strerror(SQLOCK_EBUSY));
}

TEST(test_set_fills_and_returns)
{
    sqlock_error err;
    int rc;

    memset(&err, 'x', sizeof err);
    rc = sqlock_error_set(&err, SQLOCK_EDATABASE, 1146, "42S02",
                          "table %s is %d", "T", 7);
    assert_int_equal(rc, SQLOCK_EDATABASE);
    assert_int_equal(err.code, SQLOCK_EDATABASE);
    assert_int_equal(err.native, 1146);
    assert_string_equal(err.sqlstate, "42S02");
    assert_string_equal(err.message, "table T is 7");
    rc = sqlock_error_set(&err, SQLOCK_EBUSY, 0, NULL, "busy");
    assert_int_equal(rc, SQLOCK_EBUSY);
    assert_string_equal(err.sqlstate, "");
    (void)sqlock_error_set(&err, -1, 0, NULL, "one\ttwo\r\nthree \n");
    assert_string_equal(err.message, "one two  three");
    assert_int_equal(sqlock_error_set(NULL, -4, 0, NULL, "%s", "nobody"), -4);
}

TEST(test_an_overlong_sqlstate_is_cut)
{
    sqlock_error err = {0};

    (void)sqlock_error_set(&err, -1, 0, "420000000000", "x");
    assert_string_equal(err.sqlstate, "42000");
}

static bool is_plain(const char *message)
{
    const unsigned char *p;

    for (p = (const unsigned char *)message; *p != '\0'; p++)
        if (*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

/* A server's message could otherwise forge log lines or drive a terminal. */
TEST(test_F79_every_control_byte_is_escaped)
{
    unsigned byte;

    for (byte = 1; byte < 256; byte++) {
        sqlock_error err = {0};
        char text[8] = {'<', (char)byte, '>', '\0'};

        (void)sqlock_error_set(&err, -1, 0, NULL, "%s", text);
        assert_true(is_plain(err.message));
        if (byte >= 0x80) /* no byte above ASCII is UTF-8 by itself */
            assert_null(strchr(err.message, (int)(char)byte));
        assert_int_equal(err.message[0], '<');
        assert_int_equal(err.message[strlen(err.message) - 1], '>');
    }
}

TEST(test_F79_terminal_sequences_and_lines_are_disarmed)
{
    sqlock_error err = {0};

    (void)sqlock_error_set(&err, -1, 0, NULL, "%s",
                           "a\x1b[2J\x1b]0;t\x07\r\nforged: line\n\n");
    assert_true(is_plain(err.message));
    assert_contains(err.message, "forged: line");
    /* CSI, a C1 control, has two bytes in UTF-8 */
    (void)sqlock_error_set(&err, -1, 0, NULL, "%s",
                           "a\xc2\x9b"
                           "2J");
    assert_null(strstr(err.message, "\xc2\x9b"));
}

TEST(test_F79_valid_utf8_stays)
{
    sqlock_error err = {0};

    (void)sqlock_error_set(&err, -1, 0, NULL, "%s",
                           "Stra\xc3\x9f"
                           "e \xf0\x9f\x94\x92");
    assert_string_equal(err.message, "Stra\xc3\x9f"
                                     "e \xf0\x9f\x94\x92");
}

TEST(test_long_messages_are_cut_to_whole_characters)
{
    char text[4096];
    sqlock_error err = {0};
    size_t shift;
    size_t i;

    for (shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x94\x92", 4);
        text[i] = '\0';
        (void)sqlock_error_set(&err, -1, 0, NULL, "%s", text);
        assert_true(strlen(err.message) < sizeof err.message);
        assert_true(strlen(err.message) > sizeof err.message - 8);
        assert_int_equal((strlen(err.message) - shift) % 4, 0);
    }
}

TEST(test_version_is_that_of_the_header)
{
    char expected[64];

    (void)snprintf(expected, sizeof expected, "%d.%d.%d", SQLOCK_VERSION_MAJOR,
                   SQLOCK_VERSION_MINOR, SQLOCK_VERSION_PATCH);
    assert_string_equal(sqlock_version(), expected);
}
