/*
 * test_renewal.c - until when a lease may be relied on while renewals of it
 * overlap, and after each answer
 *
 * The tested functions read the real clock, so the TTLs differ by hours: a
 * pause of the machine cannot make one deadline look like another.
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/hold.h"

#define HOUR_MS (60 * 60 * 1000u)

struct renewed {
    struct lk_store store;
    struct lk_slot slot;
    struct lk_hold hold;
};

/* Grant a lease of that many hours. */
static void hold(struct renewed *renewed, uint32_t hours)
{
    struct lk_lease *lease = &renewed->hold.lease;

    memset(renewed, 0, sizeof *renewed);
    renewed->slot.store = &renewed->store;
    renewed->hold.slot = &renewed->slot;
    renewed->hold.state = LK_HOLD_HELD;
    (void)snprintf(lease->client_id, sizeof lease->client_id, "%s", "client");
    lease->asked.ttl_ms = hours * HOUR_MS;
    lease->believed.until_boot_ns = lk_believe_until(
        &renewed->store, lk_boottime_ns(), lease->asked.ttl_ms);
}

static void begin(struct renewed *renewed, struct lk_renewal *renewal,
                  uint32_t hours)
{
    lk_renewal_begin(&renewed->hold, renewal, hours * HOUR_MS);
}

/* End a renewal for that many hours: its statement was sent now, and gave
 * rc. */
static void end(struct renewed *renewed, struct lk_renewal *renewal,
                uint32_t hours, int rc)
{
    struct lk_lease lease = renewed->hold.lease;
    int64_t sent_boot_ns = lk_boottime_ns();

    lease.asked.ttl_ms = hours * HOUR_MS;
    lease.believed.until_boot_ns =
        lk_believe_until(&renewed->store, sent_boot_ns, lease.asked.ttl_ms);
    lk_renewal_end(&renewed->hold, renewal, &lease, rc, sent_boot_ns);
}

/* Assert that the deadline is between those of a lease of that many hours and
 * of one an hour shorter. */
static void expect_hours(const struct renewed *renewed, uint32_t hours)
{
    int64_t now_ns = lk_boottime_ns();
    int64_t deadline_ns = renewed->hold.lease.believed.until_boot_ns;

    assert_true(deadline_ns <=
                lk_believe_until(&renewed->store, now_ns, hours * HOUR_MS));
    assert_true(deadline_ns > lk_believe_until(&renewed->store, now_ns,
                                               (hours - 1) * HOUR_MS));
}

TEST(test_a_renewal_alone_moves_the_deadline)
{
    struct renewed renewed;
    struct lk_renewal one;

    hold(&renewed, 2);
    begin(&renewed, &one, 8);
    expect_hours(&renewed, 2);
    end(&renewed, &one, 8, 0);
    expect_hours(&renewed, 8);
    begin(&renewed, &one, 4);
    expect_hours(&renewed, 4);
    end(&renewed, &one, 4, 0);
    expect_hours(&renewed, 4);
    assert_int_equal(renewed.hold.lease.asked.ttl_ms, 4 * HOUR_MS);
}

/* Renewals for 4, 6 and 8 hours begin, in each of three orders, and are
 * answered, in every order.  As all of them overlap, no answer moves the
 * deadline beyond 4 hours. */
TEST(test_the_shortest_of_three_renewals_limits_the_others)
{
    static const unsigned orders[][3] = {
        {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0},
    };
    /* three renewals in each of three orders */
    static const uint32_t hours[] = {4, 8, 6, 8, 4, 6, 8, 6, 4};

    for (size_t from = 0; from < sizeof hours / sizeof *hours; from += 3)
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            struct renewed renewed;
            struct lk_renewal all[3];

            hold(&renewed, 10);
            for (size_t k = 0; k < 3; k++)
                begin(&renewed, &all[k], hours[from + k]);
            for (size_t k = 0; k < 3; k++) {
                unsigned which = orders[i][k];

                end(&renewed, &all[which], hours[from + which], 0);
                expect_hours(&renewed, 4);
            }
        }
}

/* The second renewal, for 4 hours, is answered before the first one, for 8, but
 * the database may have carried it out last.  So it limits the first one, but
 * not the third, which began after that answer. */
TEST(test_a_renewal_that_was_answered_limits_those_beside_it)
{
    struct renewed renewed;
    struct lk_renewal first;
    struct lk_renewal second;
    struct lk_renewal third;

    hold(&renewed, 10);
    begin(&renewed, &first, 8);
    begin(&renewed, &second, 4);
    end(&renewed, &second, 4, 0);
    begin(&renewed, &third, 6);
    end(&renewed, &third, 6, 0);
    expect_hours(&renewed, 6);
    end(&renewed, &first, 8, 0);
    expect_hours(&renewed, 4);
}

/* Two renewals overlap and are answered, then a third one begins: it sets the
 * row anew, so the earlier ones do not limit it. */
TEST(test_a_renewal_after_the_others_moves_the_deadline)
{
    struct renewed renewed;
    struct lk_renewal first;
    struct lk_renewal second;

    hold(&renewed, 10);
    begin(&renewed, &first, 4);
    begin(&renewed, &second, 6);
    end(&renewed, &first, 4, 0);
    end(&renewed, &second, 6, 0);
    begin(&renewed, &first, 8);
    end(&renewed, &first, 8, 0);
    expect_hours(&renewed, 8);
}

/* Two renewals overlap; one succeeds, then the other fails.  The failed one's
 * copy of the lease is older than the answer to the first, so its deadline does
 * not count. */
TEST(test_a_renewal_that_failed_beside_another_moves_nothing)
{
    struct renewed renewed;
    struct lk_renewal failed;
    struct lk_renewal other;
    struct lk_lease copy;

    hold(&renewed, 2);
    copy = renewed.hold.lease;
    begin(&renewed, &failed, 8);
    begin(&renewed, &other, 8);
    end(&renewed, &other, 8, 0);
    lk_renewal_end(&renewed.hold, &failed, &copy, SQLOCK_EBUSY,
                   lk_boottime_ns());
    expect_hours(&renewed, 8);
}

/* The lease was released during the renewal. */
TEST(test_a_renewal_of_a_released_lease_moves_nothing)
{
    struct renewed renewed;
    struct lk_renewal one;
    struct lk_lease lease;

    hold(&renewed, 4);
    begin(&renewed, &one, 4);
    lease = renewed.hold.lease;
    renewed.hold.state = LK_HOLD_RELEASING;
    lease.asked.ttl_ms = 8 * HOUR_MS;
    lease.believed.until_boot_ns =
        lk_believe_until(&renewed.store, lk_boottime_ns(), lease.asked.ttl_ms);
    lk_renewal_end(&renewed.hold, &one, &lease, 0, lk_boottime_ns());
    expect_hours(&renewed, 4);
    assert_int_equal(renewed.hold.lease.asked.ttl_ms, 4 * HOUR_MS);
}

/* End a renewal for that many hours whose statement got no answer. */
static void end_in_doubt(struct renewed *renewed, struct lk_renewal *renewal,
                         uint32_t hours)
{
    struct lk_lease lease = renewed->hold.lease;

    lk_lease_cap(&lease, hours * HOUR_MS);
    lk_renewal_end(&renewed->hold, renewal, &lease, SQLOCK_EUNCERTAIN,
                   lk_boottime_ns());
}

/* A statement for 4 hours that got no answer may still arrive and shorten the
 * row.  So a later renewal for 8 hours counts as one for 4. */
TEST(test_an_unanswered_renewal_limits_those_after_it)
{
    struct renewed renewed;
    struct lk_renewal one;

    hold(&renewed, 10);
    begin(&renewed, &one, 4);
    end_in_doubt(&renewed, &one, 4);
    expect_hours(&renewed, 4);
    begin(&renewed, &one, 8);
    end(&renewed, &one, 8, 0);
    expect_hours(&renewed, 4);
    assert_int_equal(renewed.hold.lease.asked.ttl_ms, 4 * HOUR_MS);
}

/* A renewal for 4 hours gets no answer, then an overlapping one for 8 hours
 * succeeds.  The TTL, which later renewals ask for, is limited to 4 hours, as
 * well as the deadline. */
TEST(test_an_unanswered_renewal_limits_one_beside_it)
{
    struct renewed renewed;
    struct lk_renewal answered;
    struct lk_renewal unanswered;
    struct lk_lease lease;

    hold(&renewed, 10);
    lease = renewed.hold.lease;
    lease.asked.ttl_ms = 8 * HOUR_MS;
    lease.believed.until_boot_ns =
        lk_believe_until(&renewed.store, lk_boottime_ns(), lease.asked.ttl_ms);
    begin(&renewed, &answered, 8);
    begin(&renewed, &unanswered, 4);
    end_in_doubt(&renewed, &unanswered, 4);
    lk_renewal_end(&renewed.hold, &answered, &lease, 0, lk_boottime_ns());
    expect_hours(&renewed, 4);
    assert_int_equal(renewed.hold.lease.asked.ttl_ms, 4 * HOUR_MS);
}
