/*
 * test_peers.c - how long our processes use a lock before they leave it free
 * for Spring services, and when they stop leaving it free
 */
#include "unit.h"

#include "base/clock.h"
#include "lock/peers.h"

#define FIRST_SHARE_NS (80 * LK_NS_PER_MS)
#define UNSEEN_SHARE_NS (20000 * LK_NS_PER_MS)
#define PAUSES 6 /* after shares of 80 ms, doubled up to 2.56 s */

static const sqlock_driver queueing = {.name = "with a bell"};

/* Make a slot of a registry with a bell that has noticed a Spring
 * service: after a refusal, a claim found no row, since services delete their
 * rows. */
static void meet_service(struct lk_slot *slot, struct lk_store *store)
{
    const struct lk_lease lease = {.is_new_row = true};

    store->db.driver = &queueing;
    slot->store = store;
    lk_peers_granted(slot, &lease, true);
}

/* Charge leases of that length until a pause is due; return their sum. */
static int64_t use_share(struct lk_slot *slot, int64_t lease_ns)
{
    int64_t used_ns = 0;

    while (!lk_peers_are_due(slot) && used_ns < 60000 * LK_NS_PER_MS) {
        lk_peers_charge(slot, lease_ns);
        used_ns += lease_ns;
    }
    return used_ns;
}

static void begin_pause(struct lk_slot *slot)
{
    int64_t until_ns = 0;
    int64_t now_ns = sqlock_monotonic_ns();

    assert_int_equal(lk_peers_begin_pause(slot, &until_ns, NULL), 0);
    /* long enough for a poll of a service, every 100 ms by default */
    assert_true(until_ns > now_ns + 100 * LK_NS_PER_MS);
}

static void test_the_share_doubles_while_no_service_comes(void **state)
{
    static struct lk_store store;
    struct lk_slot slot = {.grants = 0};
    int64_t share_ns = FIRST_SHARE_NS;

    (void)state;
    meet_service(&slot, &store);
    for (unsigned i = 0; i < PAUSES; i++, share_ns *= 2) {
        assert_int_equal(use_share(&slot, 10 * LK_NS_PER_MS), share_ns);
        begin_pause(&slot);
        assert_false(lk_peers_are_due(&slot));
    }
}

static void test_pauses_end_when_the_service_is_gone(void **state)
{
    static struct lk_store store;
    struct lk_slot slot = {.grants = 0};

    (void)state;
    meet_service(&slot, &store);
    for (unsigned i = 0; i < PAUSES; i++) {
        (void)use_share(&slot, 10 * LK_NS_PER_MS);
        begin_pause(&slot);
    }
    (void)use_share(&slot, 10 * LK_NS_PER_MS);
    assert_false(lk_peers_are_due(&slot));
    /* pauses begin again when the service comes back */
    meet_service(&slot, &store);
    assert_int_equal(use_share(&slot, 10 * LK_NS_PER_MS), FIRST_SHARE_NS);
}

/* A lease of ours counts as 4 ms at least, about what a service needs for one:
 * so a service gets the lock after 20 of our leases, however short they are. */
static void test_short_leases_count_as_a_turn(void **state)
{
    static struct lk_store store;
    struct lk_slot slot = {.grants = 0};
    unsigned leases = 0;

    (void)state;
    meet_service(&slot, &store);
    while (!lk_peers_are_due(&slot) && leases < 1000) {
        lk_peers_charge(&slot, 0);
        leases++;
    }
    assert_int_equal(leases, 20);
}

static void test_a_row_that_we_have_made_ourselves_is_no_service(void **state)
{
    static struct lk_store store;
    struct lk_slot slot = {.store = &store};
    const struct lk_lease made = {.is_new_row = true};
    const struct lk_lease found = {.is_new_row = false};

    (void)state;
    store.db.driver = &queueing;
    lk_peers_granted(&slot, &made, false);
    assert_int_equal(slot.peers.share_ns, 0);
    lk_peers_granted(&slot, &found, true);
    assert_int_equal(slot.peers.share_ns, 0);
    slot.grants = 1; /* our earlier lease left a row */
    lk_peers_granted(&slot, &made, false);
    assert_int_equal(slot.peers.share_ns, FIRST_SHARE_NS);
}

/* A service that waits for a lock that goes from one of our waiters to the next
 * has not been seen, and would never be. */
static void test_a_service_that_was_not_seen_gets_its_chance(void **state)
{
    static struct lk_store store;
    struct lk_slot slot = {.store = &store};
    int64_t used_ns = 0;

    (void)state;
    store.db.driver = &queueing;
    (void)use_share(&slot, 100 * LK_NS_PER_MS);
    assert_false(lk_peers_are_due(&slot)); /* nobody waits */
    slot.is_contended = true;
    for (unsigned i = 0; i < 20; i++) {
        int64_t share_ns = use_share(&slot, 100 * LK_NS_PER_MS);

        assert_true(lk_peers_are_due(&slot));
        assert_in_range(share_ns, 1, UNSEEN_SHARE_NS);
        begin_pause(&slot);
        assert_false(lk_peers_are_due(&slot));
        used_ns += share_ns;
    }
    /* not after each lease: the least of 20 sums that anybody will see */
    assert_true(used_ns > 2 * UNSEEN_SHARE_NS);
    (void)use_share(&slot, 100 * LK_NS_PER_MS);
    meet_service(&slot, &store);
    assert_int_equal(use_share(&slot, 10 * LK_NS_PER_MS), FIRST_SHARE_NS);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_share_doubles_while_no_service_comes),
    cmocka_unit_test(test_pauses_end_when_the_service_is_gone),
    cmocka_unit_test(test_short_leases_count_as_a_turn),
    cmocka_unit_test(test_a_row_that_we_have_made_ourselves_is_no_service),
    cmocka_unit_test(test_a_service_that_was_not_seen_gets_its_chance),
};
const struct suite suite_peers = SUITE("peers", tests);
