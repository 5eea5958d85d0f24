/*
 * result.c - see result.h
 */
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock/async.h"
#include "sqlock/stock.h"

int result_number(const char *word, size_t length)
{
    static const struct {
        const char *word;
        int number;
    } words[] = {{"ok", 0},
                 {"no", 0},
                 {"yes", 1},
                 /* of a row */
                 {"free", 0},
                 {"held", 1},
                 {"expired", 2},
                 /* of a request */
                 {"ended", SQLOCK_REQUEST_FREE},
                 {"fetching", SQLOCK_REQUEST_FETCHING},
                 {"granted", SQLOCK_REQUEST_HELD},
                 {"releasing", SQLOCK_REQUEST_RELEASING},
                 {"lost", SQLOCK_REQUEST_LOST},
                 /* of a reservation */
                 {"reserved", SQLOCK_STOCK_RESERVED},
                 {"claimed", SQLOCK_STOCK_CLAIMED},
                 {"undone", SQLOCK_STOCK_CANCELLED},
                 {"lapsed", SQLOCK_STOCK_EXPIRED},
#define SQLOCK_X(name, value, text) {#name, (value)},
                 SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    };
    char *end;
    int number;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length &&
            strncmp(words[i].word, word, length) == 0)
            return words[i].number;
    number = (int)strtol(word, &end, 10);
    return end == word + length && length > 0 ? number : NOT_A_RESULT;
}

/* Return whether the number is that of a word, or in a range "1..4". */
static bool is_within(const char *word, size_t length, int number)
{
    const char *dots = memmem(word, length, "..", 2);

    if (dots == NULL)
        return result_number(word, length) == number;
    return number >= strtol(word, NULL, 10) &&
           number <= strtol(dots + 2, NULL, 10);
}

bool result_is_known(const char *expected)
{
    for (;;) {
        size_t length = strcspn(expected, "|,");
        const char *dots = memmem(expected, length, "..", 2);
        size_t first = dots != NULL ? (size_t)(dots - expected) : length;

        if (result_number(expected, first) == NOT_A_RESULT ||
            (dots != NULL &&
             result_number(dots + 2, length - first - 2) == NOT_A_RESULT))
            return false;
        if (expected[length] == '\0')
            return true;
        expected += length + 1;
    }
}

bool result_is(const char *expected, int rc)
{
    for (;;) {
        size_t length = strcspn(expected, "|,");

        if (is_within(expected, length, rc))
            return true;
        if (expected[length] == '\0')
            return false;
        expected += length + 1;
    }
}

const char *result_name(int rc)
{
    static char text[24];

#define SQLOCK_X(name, value, text)                                            \
    if (rc == (value))                                                         \
        return #name;
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    (void)snprintf(text, sizeof text, "%d", rc);
    return text;
}
