/*
 * test_ticket.c - the text of a QUEUE
 */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "admin/waiters.h"
#include "lease/ticket.h"

/* MySQL and MariaDB take a longer chain for a deadlock. */
#define LONGEST_CHAIN 31

static void client_id(int place, char id[SQLOCK_KEY_SIZE])
{
    (void)snprintf(id, SQLOCK_KEY_SIZE, "%08x-0000-4000-8000-123456789abc",
                   (unsigned)place);
}

static char *queue_of(int count)
{
    char id[SQLOCK_KEY_SIZE];
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fputs("{\"e\":1000000000000000,\"q\":[", out);
    for (int place = 0; place < count; place++) {
        client_id(place, id);
        (void)fprintf(out,
                      "[\"%s\",1700000070000000,1700000000000000,\"000000\","
                      "\"a test\"],",
                      id);
    }
    (void)fputs("0]}", out);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Return the place of the one whose bell that at a place hears; -1: the
 * holder's. */
static int heard_at(const char *queue, int place)
{
    char before[SQLOCK_KEY_SIZE], id[SQLOCK_KEY_SIZE];

    client_id(place, id);
    assert_int_equal(lk_ticket_place(queue, id, before), place);
    return before[0] != '\0' ? (int)strtol(before, NULL, 16) : -1;
}

TEST(test_the_last_of_many_tickets_hears_the_first_by_few)
{
    static const int counts[] = {1, 2, 17, 18, 60, 300, 3000};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char *queue = queue_of(counts[i]);
        int place = counts[i] - 1;
        int chain = 0;

        while (place >= 0) {
            int heard = heard_at(queue, place);

            assert_true(heard < place);
            place = heard;
            chain++;
        }
        assert_true(chain <= LONGEST_CHAIN);
        free(queue);
    }
}

TEST(test_whose_time_is_over_waits_no_longer)
{
    const int64_t over_us = 1700000070000000;
    struct lk_waiters waiters;
    char *queue = queue_of(2);

    assert_int_equal(lk_waiters_read(queue, "00000001", over_us, &waiters), 0);
    assert_int_equal(waiters.count, 2);
    assert_int_equal(waiters.place, 2);
    assert_string_equal(waiters.text, "a test, for 70.0 s\na test, for 70.0 s");
    free(waiters.text);
    assert_int_equal(lk_waiters_read(queue, "", over_us + 1, &waiters), 0);
    assert_int_equal(waiters.count, 0);
    assert_null(waiters.text);
    free(queue);
}

/* A waiter near the front is told by the one it follows, and does not look in
 * vain. */
TEST(test_those_at_the_front_hear_the_one_before)
{
    char *queue = queue_of(100);

    for (int place = 0; place <= LK_CHAIN_MAX; place++)
        assert_int_equal(heard_at(queue, place), place - 1);
    free(queue);
}

TEST(test_who_has_no_ticket_has_no_place)
{
    char before[SQLOCK_KEY_SIZE], id[SQLOCK_KEY_SIZE];
    char *queue = queue_of(3);

    client_id(3, id);
    assert_int_equal(lk_ticket_place(queue, id, before), -1);
    assert_string_equal(before, "");
    assert_int_equal(lk_ticket_place(NULL, id, before), -1);
    free(queue);
}

/* queue_of() has given all the same end. */
TEST(test_a_ticket_counts_until_its_end)
{
    char *queue = queue_of(2);

    assert_true(lk_queue_has_any(queue, 1700000070000000));
    assert_false(lk_queue_has_any(queue, 1700000070000001));
    assert_false(lk_queue_has_any(NULL, 0));
    free(queue);
}

TEST(test_behind_the_last_ticket_is_no_queue)
{
    char id[SQLOCK_KEY_SIZE];
    char *queue = queue_of(3);
    char *rest;

    client_id(1, id);
    rest = lk_ticket_behind(queue, id);
    assert_non_null(rest);
    client_id(2, id);
    assert_null(lk_ticket_behind(queue, id));
    free(rest);
    free(queue);
}
