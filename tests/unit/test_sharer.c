/*
 * test_sharer.c - what the text of SHARERS tells those who wait for permits
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "admin/sharers.h"
#include "lease/leader_text.h"
#include "lease/sharer.h"

#define NOW_US INT64_C(1700000000000000)
#define SECOND_US INT64_C(1000000)
#define TOKEN_LENGTH 19
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

TEST(test_the_first_lease_ends_before_the_last)
{
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

/* Check what is told of the row so much later: how many share it, what they
 * have taken, each of them, and who has had it for longest. */
static void check_told(sqlock_state state, int64_t later_us, int count,
                       unsigned taken, const char *names)
{
    struct lk_sharing sharing;
    char id[SQLOCK_KEY_SIZE];

    (void)snprintf(id, sizeof id, ID, 0U);
    assert_int_equal(
        lk_sharing_read(&sharing, sharers, id, state, NOW_US + later_us), 0);
    assert_int_equal(sharing.count, count);
    assert_int_equal(sharing.taken, taken);
    assert_string_equal(sharing.names, names);
    assert_string_equal(sharing.holder, "a test");
    lk_sharing_clear(&sharing);
}

TEST(test_sharers_are_told_until_all_are_over)
{
    begin(3);
    shares(1, 2, 10 * SECOND_US);
    shares(2, 1, 5 * SECOND_US);
    check_told(SQLOCK_HELD, 7 * SECOND_US, 1, 2,
               "a test, weight 2, token 1, for 7.0 s, 3.0 s left");
    check_told(SQLOCK_EXPIRED, 60 * SECOND_US, 0, 0,
               "a test, weight 2, token 1, for 10.0 s, expired\n"
               "a test, token 1, for 5.0 s, expired");
    begin(3);
    append(sharers, 1, 1, 5 * SECOND_US, "0000000000000000001\",\"broken by ");
    shares(2, 1, 5 * SECOND_US);
    check_told(SQLOCK_HELD, 0, 2, 2,
               "broken by a test, token 1, for 0.0 s, 5.0 s left\n"
               "a test, token 1, for 0.0 s, 5.0 s left");
}

TEST(test_who_has_room_waits_for_nobody)
{
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

TEST(test_a_sharer_that_is_over_has_no_permits)
{
    begin(3);
    shares(1, 2, -1);
    shares(2, 1, 0);
    waits(4, 2);
    waits(5, 1);
    assert_int_equal(rounds_of(4), 0);
    assert_int_equal(rounds_of(5), 1);
}

/* As a claim counts it: its owner may be away for a while. */
TEST(test_a_ticket_that_is_over_counts)
{
    begin(3);
    shares(1, 2, 5 * SECOND_US);
    append(queue, 4, 1, -1, "");
    append(queue, 5, 3, -1, "");
    waits(6, 1);
    assert_int_equal(rounds_of(4), 0);
    assert_int_equal(rounds_of(6), 2);
}

TEST(test_readers_have_room_and_a_writer_has_none)
{
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
TEST(test_a_token_that_is_too_great_is_the_greatest)
{
    static const char *const tokens[][2] = {
        {"9999999999999999999\",\"", "9223372036854775807"},
        {"9223372036854775808\",\"", "9223372036854775807"},
        {"9223372036854775806\",\"", "9223372036854775806"},
        {"0000000000000000017\",\"", "17"},
    };
    struct lk_sharer sharer;
    char text[24];

    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const char *at = sharers;

        begin(0);
        append(sharers, 1, 1, SECOND_US, tokens[i][0]);
        assert_true(lk_sharer_next(&at, &sharer));
        (void)snprintf(text, sizeof text, "%lld", (long long)sharer.token);
        assert_string_equal(text, tokens[i][1]);
    }
}

/* The text behind a holder that is too short is not read as its end. */
TEST(test_a_sharer_without_a_token_ends_the_list)
{
    const char *at = sharers;
    struct lk_sharer sharer;

    begin(0);
    append(sharers, 1, 1, SECOND_US, "x\"],0]}............\",\"");
    assert_string_equal(strstr(sharers, "x\"],") + TOKEN_LENGTH,
                        "\",\"a test\"],0]}");
    assert_false(lk_sharer_next(&at, &sharer));
}

TEST(test_a_text_counts_in_its_form_only)
{
    static const struct {
        const char *behind; /* the CLIENT_ID */
        const char *text;   /* NULL: it is none */
    } rows[] = {
        {" 0000000000000001 told here", "here"},
        {" 00000000000000ff kept ", ""},
        {" 0000000000000001 said here", NULL},
        {" 000000000000001 told here", NULL},
        {" 00000000000000001 told here", NULL},
        {"0000000000000001 told here", NULL},
        {" 0000000000000001 told", NULL},
        {"", NULL},
    };
    char text[128], id[SQLOCK_KEY_SIZE], other[SQLOCK_KEY_SIZE];
    struct lk_leader leader;

    (void)snprintf(id, sizeof id, ID, 1U);
    (void)snprintf(other, sizeof other, ID, 2U);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(rows[i].behind);
        (void)snprintf(text, sizeof text, "%s%s", id, rows[i].behind);
        assert_int_equal(lk_leader_read(&leader, text, id),
                         rows[i].text != NULL);
        if (rows[i].text != NULL)
            assert_string_equal(leader.text, rows[i].text);
        assert_false(lk_leader_read(&leader, text, other));
    }
    check_row(NULL);
}

/* The statements read six digits, and no number elsewhere. */
TEST(test_permits_have_six_digits)
{
    static const struct {
        const char *digits;
        unsigned permits;
    } rows[] = {{"000003\"", 3},  {"999999\"", 999999}, {"1000000\"", 0},
                {"0000003\"", 0}, {"00003\"", 0},       {"00003", 0},
                {"000003", 0},    {"00000x\"", 0},      {"4294967297\"", 0},
                {"", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(rows[i].digits);
        (void)snprintf(sharers, sizeof sharers, "{\"g\":\"" ID "\",\"n\":\"%s",
                       0U, rows[i].digits);
        assert_int_equal(lk_sharers_permits(sharers), rows[i].permits);
    }
    check_row(NULL);
}
