/*
 * test_sharer.c - what the text of SHARERS tells those who wait for permits
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "lease/leader_text.h"
#include "lease/sharer.h"

#define NOW_US INT64_C(1700000000000000)
#define SECOND_US INT64_C(1000000)
#define ID "12345678-1234-4000-8000-%012u"

static char sharers[4096], queue[4096];

static void append(char *text, unsigned number, unsigned weight,
                   int64_t ends_us, const char *token)
{
    size_t length = strlen(text) - strlen("0]}");

    (void)snprintf(text + length, sizeof sharers - length,
                   "[\"" ID "\",%lld,%lld,\"%06u\",\"%sa test\"],0]}", number,
                   (long long)(NOW_US + ends_us), (long long)NOW_US, weight,
                   token);
}

/* Begin the row of a lock; permits 0: no limit. */
static void begin(unsigned permits)
{
    (void)snprintf(sharers, sizeof sharers,
                   "{\"g\":\"" ID "\",\"n\":\"%06u\",\"s\":[0]}", 0U, permits);
    (void)snprintf(queue, sizeof queue, "{\"e\":%lld,\"q\":[0]}",
                   (long long)(NOW_US + 60 * SECOND_US));
}

/* Add a sharer whose lease ends so much later than now. */
static void shares(unsigned number, unsigned weight, int64_t ends_us)
{
    append(sharers, number, weight, ends_us, "0000000000000000001\",\"");
}

static void waits(unsigned number, unsigned weight)
{
    append(queue, number, weight, 60 * SECOND_US, "");
}

static unsigned rounds_of(unsigned number)
{
    char id[SQLOCK_KEY_SIZE];

    (void)snprintf(id, sizeof id, ID, number);
    return lk_sharers_rounds(sharers, true, queue, id, NOW_US);
}

static void test_the_first_lease_ends_before_the_last(void **state)
{
    (void)state;
    begin(3);
    assert_int_equal(lk_sharers_first_us(sharers, 9 * SECOND_US),
                     9 * SECOND_US);
    shares(1, 1, 5 * SECOND_US);
    shares(2, 1, SECOND_US);
    shares(3, 1, 9 * SECOND_US);
    assert_int_equal(lk_sharers_first_us(sharers, 9 * SECOND_US), SECOND_US);
    /* the same two seconds later: one that is over ends no more */
    assert_int_equal(lk_sharers_first_us(sharers, 7 * SECOND_US),
                     3 * SECOND_US);
}

static void test_who_has_room_waits_for_nobody(void **state)
{
    (void)state;
    begin(3);
    shares(1, 2, 5 * SECOND_US);
    waits(4, 1);
    waits(5, 1);
    waits(6, 3);
    waits(7, 1);
    assert_int_equal(rounds_of(4), 0);
    assert_int_equal(rounds_of(5), 1);
    assert_int_equal(rounds_of(6), 2);
    assert_int_equal(rounds_of(7), 3);
    assert_int_equal(rounds_of(8), 1); /* it has no ticket */
}

static void test_a_sharer_that_is_over_has_no_permits(void **state)
{
    (void)state;
    begin(3);
    shares(1, 2, -1);
    shares(2, 1, 0);
    waits(4, 2);
    waits(5, 1);
    assert_int_equal(rounds_of(4), 0);
    assert_int_equal(rounds_of(5), 1);
}

static void test_readers_have_room_and_a_writer_has_none(void **state)
{
    (void)state;
    begin(0);
    shares(1, 1, SECOND_US);
    waits(4, 1);
    waits(5, 0);
    waits(6, 1);
    assert_int_equal(rounds_of(4), 0);
    assert_int_equal(rounds_of(5), 1);
    assert_int_equal(rounds_of(6), 2);
}

/* Rows may have been written by another program. */
static void test_a_token_that_is_too_great_is_the_greatest(void **state)
{
    static const char *const tokens[][2] = {
        {"9999999999999999999\",\"", "9223372036854775807"},
        {"9223372036854775808\",\"", "9223372036854775807"},
        {"9223372036854775806\",\"", "9223372036854775806"},
        {"0000000000000000017\",\"", "17"},
    };
    struct lk_sharer sharer;
    char text[24];

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const char *at = sharers;

        begin(0);
        append(sharers, 1, 1, SECOND_US, tokens[i][0]);
        assert_true(lk_sharer_next(&at, &sharer));
        (void)snprintf(text, sizeof text, "%lld", (long long)sharer.token);
        assert_string_equal(text, tokens[i][1]);
    }
}

static void test_half_a_character_is_no_text_of_a_leader(void **state)
{
    static const struct {
        const char *form, *text; /* text NULL: it is none */
    } cases[] = {
        {"\\ud83d\\udd12", "\xf0\x9f\x94\x92"},
        {"\\ud83d", NULL},
        {"\\udd12", NULL},
        {"\\udd12\\ud83d", NULL},
        {"\\ue000", "\xee\x80\x80"},
        {"\\u0000", NULL},
    };
    char text[SQLOCK_LEADER_TEXT_MAX + 1], id[SQLOCK_KEY_SIZE];

    (void)state;
    (void)snprintf(id, sizeof id, ID, 1U);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(sharers, sizeof sharers,
                       "{\"leader\":\"%s\",\"told\":\"0000000000000001\","
                       "\"text\":\"%s\"}",
                       id, cases[i].form);
        assert_int_equal(lk_leader_text(sharers, id, text),
                         cases[i].text != NULL);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_token_that_is_too_great_is_the_greatest),
    cmocka_unit_test(test_half_a_character_is_no_text_of_a_leader),
    cmocka_unit_test(test_the_first_lease_ends_before_the_last),
    cmocka_unit_test(test_who_has_room_waits_for_nobody),
    cmocka_unit_test(test_a_sharer_that_is_over_has_no_permits),
    cmocka_unit_test(test_readers_have_room_and_a_writer_has_none),
};
const struct suite suite_sharer = SUITE("sharers", tests);
