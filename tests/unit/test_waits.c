/*
 * test_waits.c - circles of waits, as the rows of locks tell them
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "lease/waits.h"

#define NOW_US INT64_C(1700000000000000)
#define OVER_US (NOW_US - 1)
#define LATER_US (NOW_US + 60000000)
#define GROUP "00000000-0000-4000-8000-000000000001"
#define OTHER_GROUP "00000000-0000-4000-8000-000000000002"
/* of an owner, as a lease and as a ticket has it */
#define ID "12345678-1234-4000-8000-%08x0001"

static struct lk_waits waits;
static char sharers[4096], queue[4096];

static void clear(void)
{
    lk_waits_clear(&waits);
}

/* Append a ticket or sharer to a text. */
static void append(char *text, unsigned owner, unsigned weight, int64_t end_us,
                   int64_t since, const char *token)
{
    size_t length = strlen(text) - strlen("0]}");

    (void)snprintf(text + length, 4096 - length,
                   "[\"" ID "\",%lld,%lld,\"%06u\",\"%sa test\"],0]}", owner,
                   (long long)end_us, (long long)(NOW_US - 1000000 + since),
                   weight, token);
}

/* Begin the row of a lock; permits 0: no limit. */
static void begin(unsigned permits)
{
    (void)snprintf(sharers, sizeof sharers,
                   "{\"g\":\"" GROUP "\",\"n\":\"%06u\",\"s\":[0]}", permits);
    (void)snprintf(queue, sizeof queue, "{\"e\":%lld,\"q\":[0]}",
                   (long long)LATER_US);
}

static void shares_until(unsigned owner, unsigned weight, int64_t end_us)
{
    append(sharers, owner, weight, end_us, 0, "0000000000000000001\",\"");
}

static void shares(unsigned owner, unsigned weight)
{
    shares_until(owner, weight, LATER_US);
}

/* weight 0: alone.  The wait began `since` us after the first one. */
static void wants(unsigned owner, unsigned weight, int64_t since)
{
    append(queue, owner, weight, LATER_US, since, "");
}

static void end_as(const char *client_id)
{
    assert_true(lk_waits_add_lock(&waits, client_id, sharers, queue, NOW_US));
}

static void end_shared(void)
{
    end_as(GROUP);
}

/* A lock that one has alone, and that another wants alone. */
static void crosses(unsigned holder, unsigned waiter, int64_t since)
{
    char id[SQLOCK_KEY_SIZE];

    begin(0);
    (void)snprintf(id, sizeof id, ID, holder);
    wants(waiter, 0, since);
    end_as(id);
}

static void told(unsigned owner)
{
    assert_true(lk_waits_are_closed(&waits, owner));
}

static void not_told(unsigned owner)
{
    assert_false(lk_waits_are_closed(&waits, owner));
}

#define SCENE_TEST(name_) TEST_WITH(name_, .close = clear)

SCENE_TEST(test_the_last_in_a_circle_is_told)
{
    crosses(1, 2, 1);
    crosses(2, 3, 2);
    crosses(3, 1, 3);
    told(1);
    not_told(2);
    not_told(3);
    not_told(4);
}

SCENE_TEST(test_who_wants_a_lock_alone_waits_for_each_sharer)
{
    begin(0);
    shares(2, 1);
    shares(3, 1);
    wants(1, 0, 2);
    end_shared();
    not_told(1);
    crosses(1, 3, 1);
    told(1);
    not_told(3);
}

SCENE_TEST(test_a_reader_waits_for_the_writer_before_it_only)
{
    begin(0);
    shares(2, 1);
    wants(3, 1, 1);
    end_shared();
    crosses(3, 2, 2);
    not_told(2);
    begin(0);
    shares(2, 1);
    wants(4, 0, 1);
    wants(3, 1, 1);
    end_shared();
    told(2);
}

SCENE_TEST(test_a_sharer_outside_may_let_one_in)
{
    begin(3);
    shares(2, 1);
    shares(3, 2);
    wants(1, 2, 3);
    end_shared();
    crosses(1, 2, 1);
    not_told(1);
    crosses(1, 3, 2); /* behind the other one */
    told(1);
}

SCENE_TEST(test_more_permits_are_wanted_than_the_others_leave)
{
    begin(3);
    shares(2, 1);
    shares(3, 2);
    wants(1, 3, 3);
    end_shared();
    crosses(1, 2, 1);
    told(1);
}

/* The sharer outside lets in the one before it, too. */
SCENE_TEST(test_a_queue_takes_room_as_long_as_it_is_stuck)
{
    begin(3);
    shares(2, 1);
    shares(3, 2);
    wants(4, 2, 1);
    wants(1, 1, 3);
    end_shared();
    crosses(1, 2, 2);
    not_told(1);
    crosses(1, 4, 2);
    told(1);
}

/* The one that is told there may let it in. */
SCENE_TEST(test_a_circle_elsewhere_is_told_elsewhere)
{
    begin(2);
    shares(2, 1);
    shares(3, 1);
    wants(1, 1, 9);
    end_shared();
    crosses(1, 2, 1);
    crosses(4, 3, 2);
    crosses(3, 4, 3);
    told(4);
    not_told(1);
    not_told(3);
}

SCENE_TEST(test_what_is_over_keeps_nobody_out)
{
    begin(0);
    shares_until(2, 1, OVER_US);
    wants(1, 0, 2);
    end_shared();
    crosses(1, 2, 1);
    not_told(1);
    begin(0);
    shares(2, 1);
    wants(1, 0, 2);
    end_as(OTHER_GROUP); /* the sharers are of the past */
    not_told(1);
}

SCENE_TEST(test_who_waits_later_closes_the_circle)
{
    begin(2);
    shares(2, 1);
    shares(3, 1);
    wants(1, 1, 1);
    end_shared();
    crosses(1, 2, 2);
    crosses(1, 3, 3);
    not_told(1);
    not_told(2);
    told(3);
}

SCENE_TEST(test_waits_of_one_owner_are_no_circle)
{
    begin(0);
    shares(1, 1);
    wants(1, 0, 1);
    end_shared();
    crosses(1, 1, 2);
    not_told(1);
}
