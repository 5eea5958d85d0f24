/*
 * test_peers.c - how many turns our processes leave to Spring services
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/peers.h"

#define OURS_MAX 6

static struct lk_store store;

/* Processes of ours that take turns, and services that take the row when it is
 * open: by turns, `burst` turns each time. */
struct game {
    struct lk_slot ours[OURS_MAX];
    int n, m, burst;
    int64_t holds_ns; /* ours, in each turn */
    int opened, used; /* times */
    int turns, theirs;
};

static int setup(void **state)
{
    static char text[] = "there is one";

    (void)state;
    store.statements[SQLOCK_SQL_RELEASE_TO_PEERS].text = text;
    store.statements[SQLOCK_SQL_ENQUEUE].text = text;
    return 0;
}

static void begin(struct game *game, int n, int m, int burst)
{
    *game = (struct game){
        .n = n, .m = m, .burst = burst, .holds_ns = LK_NS_PER_MS / 10};
    for (int i = 0; i < n; i++) {
        game->ours[i].store = &store;
        game->ours[i].peers.used_ns = 1; /* begin to count now */
    }
}

/* Our process sees a turn of a service: it has the row, and deletes it. */
static void see_turn(struct lk_slot *slot, int service, int number)
{
    struct lk_row row = {.exists = true,
                         .is_taken = true,
                         .remaining_us = 30000000,
                         .acquired_at_us = number,
                         .expires_at_us = number};
    const struct lk_row gone = {.exists = false};

    (void)snprintf(row.client_id, sizeof row.client_id, "service %d", service);
    (void)lk_peers_look(slot, &row);
    row.expires_at_us += 1000000;
    (void)lk_peers_look(slot, &row); /* the same turn, renewed */
    (void)lk_peers_look(slot, &gone);
}

/* Our process is refused because another one of the game has the row. */
static void queue(const struct game *game, struct lk_slot *slot)
{
    const struct lk_row row = {.exists = true,
                               .is_taken = true,
                               .is_sqlocks = true,
                               .client_id = "of ours",
                               .place = game->n - 2};

    if (game->n > 1)
        assert_false(lk_peers_refused(slot, &row));
}

static void grant(struct game *game, struct lk_slot *slot)
{
    const struct lk_lease lease = {.is_contended = game->n > 1};

    slot->is_contended = game->n > 1;
    lk_peers_granted(slot, &lease);
}

/* Return which of the services comes, in no order that our processes have. */
static int service_of(int number)
{
    return (int)(((uint32_t)number * 2654435761U) >> 16);
}

/* Our process opens the row, and takes it back. */
static void open_row(struct game *game, struct lk_slot *slot)
{
    const struct lk_row open = {
        .exists = true, .is_taken = true, .is_sqlocks = true};

    assert_true(lk_peers_refused(slot, &open));
    game->opened++;
    for (int i = 0; game->m > 0 && i < game->burst; i++, game->theirs++)
        see_turn(slot, service_of(game->theirs) % game->m, game->theirs + 1);
    slot->peers.used_ns = 0;
    grant(game, slot);
}

/* Each process has that many turns. */
static void play(struct game *game, int rounds)
{
    for (int i = 0; i < rounds * game->n; i++) {
        struct lk_slot *slot = &game->ours[i % game->n];

        queue(game, slot);
        grant(game, slot);
        while (lk_peers_are_due(slot))
            open_row(game, slot);
        lk_peers_charge(slot, game->holds_ns);
        game->turns++;
    }
}

/* Let each of our processes see each service once. */
static void meet(struct game *game)
{
    for (int i = 0; i < game->n; i++) {
        for (int k = 0; k < game->m; k++)
            see_turn(&game->ours[i], k, -1 - k);
        lk_peers_end_wait(&game->ours[i]);
    }
}

static void check_share(int n, int m, int burst)
{
    struct game game;

    begin(&game, n, m, burst);
    meet(&game);
    play(&game, 300);
    print_message("%d of ours, %d services, %d at a time: %d, %d turns\n", n, m,
                  burst, game.turns, game.theirs);
    assert_in_range(game.theirs, 300 * m - n * (m + burst),
                    300 * m + n * (m + burst));
}

static void test_services_get_their_share_by_head(void **state)
{
    (void)state;
    for (int n = 1; n <= OURS_MAX; n++)
        for (int m = 1; m <= 4; m++)
            check_share(n, m, 1);
}

/* A service may take the row again before we can.  It is left to services less
 * often then. */
static void test_turns_that_services_have_beyond_their_share_count(void **state)
{
    (void)state;
    for (int n = 1; n <= OURS_MAX; n++)
        for (int burst = 2; burst <= 20; burst += 6)
            check_share(n, 2, burst);
}

/* So do those that they have although the row was not opened. */
static void test_turns_that_services_have_unasked_count(void **state)
{
    struct game game;

    (void)state;
    begin(&game, 4, 2, 1);
    meet(&game);
    for (int i = 0; i < 100; i++)
        see_turn(&game.ours[1], i % 2, i + 1);
    grant(&game, &game.ours[1]);
    play(&game, 300);
    assert_in_range(game.theirs, 500 - 8, 500 + 8);
}

/* A service that came once costs one opening of each process that saw it. */
static void test_a_service_that_does_not_come_again_is_forgotten(void **state)
{
    struct game game;

    (void)state;
    begin(&game, 4, 1, 1);
    see_turn(&game.ours[2], 0, 1);
    lk_peers_end_wait(&game.ours[2]);
    game.m = 0;
    play(&game, 100);
    assert_int_equal(game.opened, 1);
    /* and gets its share when it comes back */
    game.m = 1;
    meet(&game);
    play(&game, 100);
    assert_in_range(game.theirs, 100 - 4, 100 + 4);
    /* one that has come often has another chance */
    game.m = 0;
    game.opened = 0;
    play(&game, 100);
    /* a machine that stalls may take one more for time that was used */
    assert_in_range(game.opened, 2 * game.n, 2 * game.n + 1);
}

/* Of two services one goes away: the share becomes that of one. */
static void test_the_share_is_that_of_services_seen_lately(void **state)
{
    struct game game;
    int before;

    (void)state;
    begin(&game, 2, 2, 1);
    meet(&game);
    play(&game, 100);
    game.m = 1;
    play(&game, 100);
    before = game.theirs;
    play(&game, 100);
    assert_in_range(game.theirs - before, 100 - 4, 100 + 4);
}

static void test_where_no_service_was_seen_there_is_none(void **state)
{
    const struct lk_lease made = {.is_new_row = true};
    struct game game;

    (void)state;
    begin(&game, 1, 0, 1);
    lk_peers_granted(&game.ours[0], &made); /* the first claim makes the row */
    play(&game, 10000);                     /* nobody else waits */
    assert_int_equal(game.opened, 0);
    game.ours[0].grants = 1; /* our earlier lease left a row */
    lk_peers_granted(&game.ours[0], &made);
    play(&game, 10);
    assert_int_equal(game.opened, 1);
}

/* A service that waits for a lock that goes from one of our waiters to the next
 * has not been seen, and would never be. */
static void test_a_service_that_was_not_seen_gets_its_chance(void **state)
{
    struct game game;

    (void)state;
    begin(&game, 3, 0, 1);
    for (int i = 0; i < 3; i++)
        game.ours[i].peers.used_ns = 0;
    game.holds_ns = 100 * LK_NS_PER_MS;
    play(&game, 1000);
    /* in 300 s: each 20 s at least, each 10 s on average */
    assert_in_range(game.opened, 15, 60);
    game.m = 1;
    play(&game, 1000);
    assert_true(game.theirs > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_services_get_their_share_by_head, setup),
    cmocka_unit_test_setup(
        test_turns_that_services_have_beyond_their_share_count, setup),
    cmocka_unit_test_setup(test_turns_that_services_have_unasked_count, setup),
    cmocka_unit_test_setup(test_a_service_that_does_not_come_again_is_forgotten,
                           setup),
    cmocka_unit_test_setup(test_the_share_is_that_of_services_seen_lately,
                           setup),
    cmocka_unit_test_setup(test_where_no_service_was_seen_there_is_none, setup),
    cmocka_unit_test_setup(test_a_service_that_was_not_seen_gets_its_chance,
                           setup),
};
const struct suite suite_peers = SUITE("peers", tests);
