/*
 * test_batch.c - how many leases have time in one statement, how much time many
 * have, in which parts and halves they are sent, and what is known of each then
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/batch.h"

static void expect_parts(bool has_parts, uint32_t timeout_ms, size_t count)
{
    struct lk_store store = {.options = {.statement_timeout_ms = timeout_ms}};
    struct lk_batch batch = {.count = count};

    batch.items = calloc(count, sizeof *batch.items);
    assert_non_null(batch.items);
    assert_int_equal(lk_batch_has_parts(&store, &batch), has_parts);
    free(batch.items);
}

TEST(test_a_statement_has_what_it_has_time_for)
{
    expect_parts(false, 10, 1);
    expect_parts(false, 10, 20);
    expect_parts(true, 10, 21);
    expect_parts(false, 500, 1000);
    expect_parts(true, 500, 1001);
    expect_parts(false, 3600000, 1000);
    expect_parts(true, 3600000, 1001);
}

/* Timeouts of hours: a pause of the machine is less. */
TEST(test_the_time_grows_with_the_number)
{
    static const struct {
        size_t count;
        int64_t hours;
    } rows[] = {{1, 1}, {1000, 1}, {1001, 2}, {2000, 2}, {10000, 10}};
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};
    int64_t hour_ns = 3600000 * LK_NS_PER_MS;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t before_ns = sqlock_monotonic_ns();
        int64_t time_ns = lk_batch_deadline(&store, rows[i].count) - before_ns;

        assert_true(time_ns >= rows[i].hours * hour_ns);
        assert_true(time_ns < (rows[i].hours + 1) * hour_ns);
    }
}

/* --- a claim in parts --- */

/* The lengths of the parts that were sent. */
static struct {
    size_t counts[16];
    size_t times;
} sent;

/* The first one times out, which was not carried out. */
static int send(struct lk_store *store, struct lk_batch *batch,
                sqlock_error *err)
{
    (void)store;
    (void)err;
    assert_true(sent.times < sizeof sent.counts / sizeof *sent.counts);
    sent.counts[sent.times++] = batch->count;
    return sent.times == 1 ? SQLOCK_ETIMEDOUT : 0;
}

/* A part of two, before one that shares its lock, is cut; those behind that one
 * are sent together all the same. */
TEST(test_a_short_part_that_is_cut_shortens_no_other)
{
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};
    struct lk_item items[3 + 600] = {{.lease = {.key = "a"}}};
    struct lk_batch batch = {.items = items,
                             .count = 3 + 600,
                             .deadline_ns = sqlock_monotonic_ns() +
                                            3600000 * LK_NS_PER_MS};
    static const size_t expected[] = {2, 1, 1, 1, 600};

    items[2].lease.asked.weight = 1;
    sent.times = 0;
    assert_int_equal(lk_batch_send_parts(&store, &batch, send, 0, NULL), 0);
    assert_int_equal(sent.times, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(sent.counts[i], expected[i]);
}

/* --- in halves --- */

#define HOUR_NS (3600000 * LK_NS_PER_MS)

/* A statement about a lease that has an owner fails with rc. */
static struct {
    int rc;
    size_t times;
    int64_t deadlines_ns[16], latest_ns[16];
} refusal;

static int refuse(struct lk_store *store, struct lk_batch *batch,
                  sqlock_error *err)
{
    bool is_refused = false;

    assert_true(refusal.times < 16);
    refusal.deadlines_ns[refusal.times] = batch->deadline_ns;
    refusal.latest_ns[refusal.times++] = batch->latest_ns;
    batch->sent_boot_ns = (int64_t)refusal.times * 10;
    batch->answered_boot_ns = batch->sent_boot_ns + 1;
    for (size_t i = 0; i < batch->count; i++) {
        is_refused = is_refused || batch->items[i].owner != NULL;
        batch->items[i].rc = 0;
    }
    if (!is_refused) {
        batch->now_us = batch->sent_boot_ns + 2;
        return 0;
    }
    if (lk_batch_is_divisible(batch, refusal.rc))
        return lk_batch_send_parts(store, batch, refuse, refusal.rc, err);
    return lk_error(err, refusal.rc, "statement %zu", refusal.times);
}

/* Send eight leases in halves, or with rc 0 in parts, of which that one is
 * refused with `why`.  Before, they have results of another call. */
static void send_eight(struct lk_batch *batch, struct lk_item items[8],
                       size_t refused, int why, int rc, sqlock_error *err)
{
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};

    memset(&refusal, 0, sizeof refusal);
    refusal.rc = why;
    batch->items = items;
    batch->count = 8;
    for (size_t i = 0; i < 8; i++) {
        items[i] = (struct lk_item){
            .lease = {.key = "key"},
            .rc = 1,
            .is_left_out = true,
            .is_told = true,
            .owner = i == refused ? &items[i] : NULL,
        };
    }
    assert_int_equal(lk_batch_send_parts(&store, batch, refuse, rc, err), 0);
}

TEST(test_what_is_refused_alone_is_found)
{
    static const int reasons[] = {SQLOCK_EDATABASE, SQLOCK_EINVAL};

    for (size_t n = 0; n < sizeof reasons / sizeof *reasons; n++)
        for (size_t refused = 0; refused < 8; refused++) {
            struct lk_item items[8];
            struct lk_batch batch = {.deadline_ns = sqlock_monotonic_ns(),
                                     .sent_boot_ns = 5};
            sqlock_error err = {0};

            send_eight(&batch, items, refused, reasons[n], reasons[n], &err);
            for (size_t i = 0; i < 8; i++) {
                assert_int_equal(items[i].rc, i == refused ? reasons[n] : 0);
                assert_int_equal(items[i].is_told, i == refused);
                assert_false(items[i].is_left_out);
            }
            /* two of each length: 4, 2, 1 */
            assert_int_equal(refusal.times, 6);
            assert_int_equal(batch.sent_boot_ns, 5);
            assert_int_equal(batch.answered_boot_ns,
                             refused == 7 ? 61 : batch.answered_boot_ns);
            assert_true(batch.now_us > 0);
            assert_int_equal(err.code, reasons[n]);
        }
}

/* No other half is sent, nor another part. */
TEST(test_an_outage_ends_the_attempts)
{
    struct lk_item items[8];
    struct lk_batch batch = {.deadline_ns = sqlock_monotonic_ns()};

    send_eight(&batch, items, 0, SQLOCK_EUNREACHABLE, SQLOCK_EDATABASE, NULL);
    assert_int_equal(refusal.times, 1);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(items[i].rc, SQLOCK_EUNREACHABLE);
        assert_true(items[i].is_told);
        assert_int_equal(items[i].is_left_out, i >= 4);
    }
}

/* Each half has the time of a statement, and halves of halves no more than that
 * after the time of the whole. */
TEST(test_each_half_has_the_time_of_a_statement)
{
    struct lk_item items[8];
    struct lk_batch batch = {.deadline_ns =
                                 sqlock_monotonic_ns() - HOUR_NS / 2};

    send_eight(&batch, items, 7, SQLOCK_EDATABASE, SQLOCK_EDATABASE, NULL);
    for (size_t i = 0; i < refusal.times; i++) {
        assert_true(refusal.latest_ns[i] == batch.deadline_ns + HOUR_NS);
        assert_true(refusal.deadlines_ns[i] == refusal.latest_ns[i]);
    }
    batch.deadline_ns = sqlock_monotonic_ns() + HOUR_NS;
    send_eight(&batch, items, 7, SQLOCK_EDATABASE, SQLOCK_EDATABASE, NULL);
    for (size_t i = 0; i < refusal.times; i++)
        assert_true(refusal.deadlines_ns[i] < batch.deadline_ns + HOUR_NS / 2);
}

TEST(test_halves_end_with_the_latest_time_of_the_batch)
{
    struct lk_item items[8];
    struct lk_batch batch = {.deadline_ns = sqlock_monotonic_ns(),
                             .latest_ns = sqlock_monotonic_ns() + HOUR_NS / 2};

    send_eight(&batch, items, 7, SQLOCK_EDATABASE, SQLOCK_EDATABASE, NULL);
    for (size_t i = 0; i < refusal.times; i++) {
        assert_true(refusal.latest_ns[i] == batch.latest_ns);
        assert_true(refusal.deadlines_ns[i] == batch.latest_ns);
    }
    batch.latest_ns = sqlock_monotonic_ns();
    send_eight(&batch, items, 7, SQLOCK_EDATABASE, SQLOCK_EBUSY, NULL);
    assert_int_equal(refusal.times, 0);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(items[i].rc, SQLOCK_EBUSY);
        assert_true(items[i].is_left_out && items[i].is_told);
    }
}

/* A database refuses all because of one; but one that is locked, or has no
 * connection, does not do better with fewer. */
TEST(test_which_failures_are_halved)
{
    static const struct {
        int rc;
        bool has_timed_out, is_halved;
    } rows[] = {
        {SQLOCK_EDATABASE, false, true},
        {SQLOCK_EINVAL, false, true},
        {SQLOCK_EBUSY, true, true},
        {SQLOCK_EBUSY, false, false},
        {SQLOCK_EUNREACHABLE, false, false},
        {SQLOCK_EUNCERTAIN, false, false},
        {0, false, false},
    };
    struct lk_item items[2] = {{.rc = 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_batch batch = {
            .items = items, .count = 2, .has_timed_out = rows[i].has_timed_out};

        assert_int_equal(lk_batch_is_divisible(&batch, rows[i].rc),
                         rows[i].is_halved);
        batch.count = 1;
        assert_false(lk_batch_is_divisible(&batch, rows[i].rc));
    }
}

/* --- a batch with parts --- */

/* Send five leases, of which two share their locks, in four parts.  Those whose
 * bits are in `refused` are refused. */
static void share_two(struct lk_batch *batch, struct lk_item items[5], int why,
                      unsigned refused, bool is_claim, sqlock_error *err)
{
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};

    memset(&refusal, 0, sizeof refusal);
    refusal.rc = why;
    for (size_t i = 0; i < 5; i++)
        items[i] = (struct lk_item){
            .lease = {.key = "key",
                      .asked.weight = i == 1 || i == 2 ? 1 : 0,
                      .believed.until_boot_ns = LK_NEVER},
            .owner = refused >> i & 1 ? &items[i] : NULL,
        };
    batch->items = items;
    batch->count = 5;
    batch->is_all_or_none = is_claim;
    batch->deadline_ns = sqlock_monotonic_ns() + HOUR_NS / 2;
    assert_true(lk_batch_has_parts(&store, batch));
    assert_int_equal(lk_batch_send_parts(&store, batch, refuse, 0, err), 0);
}

TEST(test_a_part_that_fails_hinders_no_renewal)
{
    struct lk_item items[5];
    struct lk_batch batch = {.sent_boot_ns = 5};
    sqlock_error err = {0};

    share_two(&batch, items, SQLOCK_EDATABASE, 1U << 1, false, &err);
    assert_int_equal(refusal.times, 4);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(items[i].rc, i == 1 ? SQLOCK_EDATABASE : 0);
        assert_int_equal(items[i].is_told, i == 1);
        assert_false(items[i].is_left_out);
    }
    assert_string_equal(err.message, "statement 2");
    /* the time of one statement for the shares, and of one for the others */
    for (size_t i = 0; i < 4; i++) {
        assert_true(refusal.latest_ns[i] > sqlock_monotonic_ns() + HOUR_NS);
        assert_true(refusal.latest_ns[i] <=
                    sqlock_monotonic_ns() + 2 * HOUR_NS);
    }
    /* the times of the first and of the last statement */
    assert_int_equal(batch.sent_boot_ns, 10);
    assert_int_equal(batch.answered_boot_ns, 41);
    assert_int_equal(batch.now_us, 42);
    share_two(&batch, items, SQLOCK_EDATABASE, 1U << 1 | 1U << 2, false, &err);
    assert_string_equal(err.message, "statement 2");
}

/* Nothing is claimed behind it, and it has changed nothing itself. */
TEST(test_a_part_that_fails_ends_a_claim)
{
    static const int reasons[] = {SQLOCK_EBUSY, SQLOCK_ETIMEDOUT,
                                  SQLOCK_EUNREACHABLE, SQLOCK_EDATABASE};

    for (size_t n = 0; n < sizeof reasons / sizeof *reasons; n++) {
        bool is_refused =
            reasons[n] == SQLOCK_EBUSY || reasons[n] == SQLOCK_ETIMEDOUT;
        struct lk_item items[5];
        struct lk_batch batch = {.count = 0};

        share_two(&batch, items, reasons[n], 1U << 1, true, NULL);
        assert_int_equal(refusal.times, 2);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(items[i].rc, i == 0 ? 0 : reasons[n]);
            assert_int_equal(items[i].is_told, i > 0);
            assert_int_equal(items[i].is_left_out,
                             i > 1 || (i == 1 && is_refused));
        }
    }
}

/* The resolver frees the rows of a claim that may come late: its halves would
 * need other CLIENT_IDs. */
TEST(test_a_claim_that_may_come_late_is_not_halved)
{
    struct lk_store store = {.options = {.statement_timeout_ms = 3600000}};

    for (int is_late = 0; is_late < 2; is_late++) {
        struct lk_item items[3] = {
            {.lease = {.key = "key", .asked.weight = 1}}};
        struct lk_batch batch = {.items = items,
                                 .count = 3,
                                 .is_all_or_none = true,
                                 .deadline_ns = sqlock_monotonic_ns()};

        memset(&refusal, 0, sizeof refusal);
        refusal.rc = SQLOCK_ETIMEDOUT;
        for (size_t i = 0; i < 3; i++) {
            items[i].lease.key = "key";
            items[i].lease.believed.until_boot_ns = LK_NEVER;
        }
        items[2].lease.believed.fate =
            is_late ? LK_CLAIM_LATE : LK_CLAIM_ANSWERED;
        items[2].owner = &items[2];
        assert_int_equal(lk_batch_send_parts(&store, &batch, refuse, 0, NULL),
                         0);
        assert_int_equal(refusal.times, is_late ? 2 : 4);
        assert_int_equal(items[1].rc, is_late ? SQLOCK_ETIMEDOUT : 0);
        assert_int_equal(items[2].rc, SQLOCK_ETIMEDOUT);
    }
}

/* --- what a statement leaves in its batch --- */

/* A statement that was not sent leaves the time of the one before. */
TEST(test_the_time_of_the_last_statement_stays)
{
    struct lk_item item = {.lease = {.asked.ttl_ms = 500}};
    struct lk_batch batch = {.items = &item, .count = 1, .sent_boot_ns = 7};
    struct lk_run run = {.was_uncertain = true};

    lk_batch_note_times(&batch, &run);
    assert_int_equal(batch.sent_boot_ns, 7);
    assert_int_equal(item.lease.believed.cap_ms, 0); /* it has read only */
    run.sent_boot_ns = 8;
    run.is_write = true;
    lk_batch_note_times(&batch, &run);
    assert_int_equal(batch.sent_boot_ns, 8);
    assert_int_equal(item.lease.believed.cap_ms, 500);
}

/* The row of a lease is known by its CLIENT_ID, where the application chooses
 * the keys; where it does not, by the key as well. */
TEST(test_the_owner_of_a_row_is_found)
{
    struct lk_store store = {.options = {.key_rule = SQLOCK_KEY_RAW}};
    struct lk_item items[2] = {
        {.lease = {.key = "KEY", .client_id = "one"}},
        {.lease = {.key = "key", .client_id = "two"}},
    };
    struct lk_batch batch = {.items = items, .count = 2};
    sqlock_value cells[3] = {
        {.type = SQLOCK_TEXT, .text = "key"},
        {.type = SQLOCK_INT64, .integer = 1},
        {.type = SQLOCK_TEXT, .text = "one"},
    };
    sqlock_result result = {.cells = cells, .rows = 1, .columns = 3};

    assert_ptr_equal(lk_batch_find_owner(&store, &batch, &result, 0), items);
    cells[2].text = "two";
    assert_ptr_equal(lk_batch_find_owner(&store, &batch, &result, 0),
                     items + 1);
    cells[2].text = "three";
    assert_null(lk_batch_find_owner(&store, &batch, &result, 0));
    cells[2].type = SQLOCK_NULL;
    assert_null(lk_batch_find_owner(&store, &batch, &result, 0));
    result.columns = 2;
    assert_ptr_equal(lk_batch_find_owner(&store, &batch, &result, 0),
                     items + 1);
}
