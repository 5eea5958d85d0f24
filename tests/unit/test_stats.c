/*
 * test_stats.c - the bucket in which a time is counted, and the counter of each
 * result
 */
#include "support/test.h"

#include <string.h>

#include "base/stats.h"

static unsigned bucket_of(int64_t ns)
{
    struct lk_stats stats;
    sqlock_stats read;
    unsigned bucket = 0;

    memset(&stats, 0, sizeof stats);
    lk_count_time(&stats.hold, ns);
    lk_stats_read(&stats, &read);
    assert_int_equal(read.hold.count, 1);
    while (read.hold.buckets[bucket] == 0)
        bucket++;
    return bucket;
}

TEST(test_a_time_counts_below_its_bound)
{
    assert_int_equal(bucket_of(-5), 0);
    assert_int_equal(bucket_of(0), 0);
    for (unsigned i = 0; i + 1 < SQLOCK_STATS_BUCKETS; i++) {
        int64_t bound_ns = SQLOCK_STATS_BOUND_US(i) * 1000;

        assert_int_equal(bucket_of(bound_ns), i);
        assert_int_equal(bucket_of(bound_ns + 1), i + 1);
    }
    assert_int_equal(bucket_of(INT64_MAX), SQLOCK_STATS_BUCKETS - 1);
}

TEST(test_each_result_has_its_counter)
{
    struct lk_stats stats;
    sqlock_stats read;

    memset(&stats, 0, sizeof stats);
    for (int code = 0; code >= SQLOCK_EDEADLOCK - 1; code--)
        lk_count_acquired(&stats, "key", code, 1000);
    lk_stats_read(&stats, &read);
    assert_int_equal(read.granted, 1);
    assert_int_equal(read.busy, 1);
    assert_int_equal(read.timed_out, 1);
    assert_int_equal(read.cancelled, 1);
    assert_int_equal(read.uncertain, 1);
    assert_int_equal(read.attempts, -SQLOCK_EDEADLOCK + 2);
    assert_int_equal(read.failed, read.attempts - 5);
    assert_int_equal(read.wait.count, 1); /* granted ones only */
}

TEST(test_a_connection_replaces_one_that_broke)
{
    struct lk_stats stats;
    sqlock_stats read;

    memset(&stats, 0, sizeof stats);
    lk_count_opened(&stats);
    lk_count_opened(&stats);
    lk_stats_read(&stats, &read);
    assert_int_equal(read.reconnects, 0);
    assert_int_equal(read.connections, 2);
    lk_count(&stats, LK_COUNT_BROKEN);
    lk_count(&stats, LK_COUNT_CLOSED);
    lk_count_opened(&stats);
    lk_count_opened(&stats);
    lk_stats_read(&stats, &read);
    assert_int_equal(read.reconnects, 1);
    assert_int_equal(read.connections, 3);
}
