/*
 * test_peers.c - when our processes leave a lock to Spring services, and how
 * closely they look at one that a service has
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/peers.h"

#define SECOND_NS (1000 * LK_NS_PER_MS)

static struct lk_store store;
static struct lk_slot slot;

static void setup(void)
{
    static char text[] = "there is one";

    memset(&slot, 0, sizeof slot);
    store.statements[SQLOCK_SQL_RELEASE_TO_PEERS].text = text;
    store.statements[SQLOCK_SQL_ENQUEUE].text = text;
    store.options.poll_ms = 100;
    slot.store = &store;
}

/* A service has the row, renews its lease, and deletes the row. */
static void see_turn(unsigned service, int number)
{
    struct lk_row row = {.exists = true,
                         .is_taken = true,
                         .remaining_us = 30000000,
                         .acquired_at_us = number,
                         .expires_at_us = number};
    const struct lk_row gone = {.exists = false};

    (void)snprintf(row.client_id, sizeof row.client_id, "%08x-of-service",
                   service);
    (void)lk_peers_look(&slot, &row);
    row.expires_at_us += 1000000;
    (void)lk_peers_look(&slot, &row);
    (void)lk_peers_look(&slot, &gone);
}

/* The row was opened, `services` have so many turns, and it is taken back. */
static void open_row(unsigned services, int turns)
{
    slot.peers.is_host = true;
    slot.peers.last = LK_PEERS_OPEN;
    for (int i = 0; i < turns; i++)
        see_turn(0xabc00000u + (unsigned)i % services, i + 1);
    lk_peers_end_wait(&slot);
    assert_false(slot.peers.is_host);
}

static void take_a_turn(void)
{
    struct lk_part part = {.slot = &slot};

    lk_peers_granted(&part, true);
}

/* Return after how many turns of this process services are due. */
static int turns_until_due(void)
{
    int turns = 0;

    for (; !lk_peers_are_due(&slot) && turns < 1000; turns++)
        take_a_turn();
    return turns;
}

#define SCENE_TEST(name_) TEST_WITH(name_, .open = setup)

SCENE_TEST(test_we_have_as_many_turns_as_each_service)
{
    static const struct {
        unsigned services;
        int turns, ours;
    } rows[] = {{1, 1, 1}, {1, 7, 7}, {2, 2, 1}, {2, 30, 15}, {3, 30, 10}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setup();
        open_row(rows[i].services, rows[i].turns);
        assert_int_equal(turns_until_due(), rows[i].ours);
    }
}

/* As one of several locks that are claimed again together. */
SCENE_TEST(test_a_lock_that_is_kept_meanwhile_is_no_turn)
{
    struct lk_part part = {.slot = &slot};

    open_row(1, 3);
    for (int i = 0; i < 10; i++)
        lk_peers_granted(&part, false);
    assert_int_equal(turns_until_due(), 3);
}

/* Of two services each had turns lately, if not this time. */
SCENE_TEST(test_services_that_came_lately_count)
{
    open_row(2, 2);
    open_row(1, 6);
    assert_int_equal(turns_until_due(), 3);
    for (int i = 0; i < 8; i++)
        open_row(1, 6);
    assert_int_equal(turns_until_due(), 6);
}

static void check_due_in(int64_t ns)
{
    int64_t left_ns = slot.peers.due_ns - sqlock_monotonic_ns();

    assert_false(lk_peers_are_due(&slot));
    assert_true(left_ns > ns - SECOND_NS && left_ns <= ns);
}

SCENE_TEST(test_services_are_due_less_often_while_none_comes)
{
    static const int seconds[] = {2, 4, 8, 9, 9};

    slot.peers.pause_ns = 2 * SECOND_NS;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        open_row(1, 0);
        check_due_in(seconds[i] * SECOND_NS);
    }
    open_row(1, 1000); /* one came: soon, however many turns it had */
    check_due_in(SECOND_NS);
    open_row(1, 0); /* and did not come again */
    check_due_in(SECOND_NS / 5);
}

/* A lock that nobody else wants is not opened; one that others want is, each 2
 * s at most. */
SCENE_TEST(test_services_are_due_where_others_wait)
{
    slot.place = -1;
    take_a_turn();
    assert_int_equal(slot.peers.due_ns, 0);
    assert_false(lk_peers_are_due(&slot));
    slot.is_contended = true;
    take_a_turn();
    assert_in_range(slot.peers.due_ns, 1, sqlock_monotonic_ns() + SECOND_NS);
}

SCENE_TEST(test_where_there_are_no_services_none_is_due)
{
    slot.is_contended = true;
    store.options.no_peers = true;
    take_a_turn();
    assert_int_equal(slot.peers.due_ns, 0);
    store.options.no_peers = false;
    store.statements[SQLOCK_SQL_RELEASE_TO_PEERS].text = NULL;
    take_a_turn();
    assert_int_equal(slot.peers.due_ns, 0);
}

/* However long a service has held the lock. */
SCENE_TEST(test_a_service_is_looked_at_each_poll_ms)
{
    const struct lk_row row = {.exists = true,
                               .is_taken = true,
                               .remaining_us = 30000000,
                               .client_id = "12345678-of-a-service"};

    assert_true(lk_peers_pause_ns(&slot) == LK_NEVER);
    (void)lk_peers_look(&slot, &row);
    assert_in_range(lk_peers_pause_ns(&slot), 1, 10 * LK_NS_PER_MS);
    slot.peers.since_ns -= 60 * SECOND_NS;
    assert_int_equal(lk_peers_pause_ns(&slot), 100 * LK_NS_PER_MS);
}
