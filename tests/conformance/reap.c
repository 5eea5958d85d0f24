/*
 * reap.c - old rows are removed, but never that of a lease which is not over
 * (F31)
 */
#include "conformance.h"

#include <stdio.h>

#include "support/workers.h"

#define MINUTE_US INT64_C(60000000)

static bool has_key(struct fixture *f, const char *key)
{
    return sql_integer(&f->sql, "SELECT count(*) FROM %s WHERE LOCK_KEY = '%s'",
                       f->table, key) == 1;
}

static int64_t reap(struct fixture *f, sqlock_registry *registry,
                    int64_t retention_ms)
{
    int64_t removed = -1;

    assert_ok(sqlock_reap(registry, retention_ms, &removed, &f->err));
    assert_true(removed >= 0);
    return removed;
}

/* Insert a row whose lease ended that many minutes ago, and began a minute
 * before (client NULL: free). */
static void put_old(struct fixture *f, const char *key, const char *region,
                    const char *client, int minutes)
{
    fixture_put_row(f, key, region, client, -(minutes + 1) * MINUTE_US,
                    -minutes * MINUTE_US);
}

static sqlock_registry *own_region(struct fixture *f, char region[64])
{
    (void)snprintf(region, 64, "reap-%u", f->serial);
    return fixture_in_region(f, region);
}

/* A stranger has written the last key: of no more characters than ours, but of
 * more bytes. */
TEST_ON(test_a_key_of_any_length_goes, ON_SQLITE, IN_ALL)
{
    static const char key[] =
        "z-\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"
        "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc";
    char region[64];
    sqlock_registry *registry = own_region(f, region);

    put_old(f, "dead", region, "holder", 20);
    put_old(f, key, region, "holder", 20);
    assert_int_equal(reap(f, registry, SQLOCK_RETENTION_DEFAULT_MS), 2);
    assert_false(has_key(f, key));
    registry_end(registry);
}

TEST(test_old_rows_go_and_young_ones_stay)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);

    put_old(f, "dead-20", region, "holder", 20);
    put_old(f, "free-20", region, NULL, 20);
    put_old(f, "dead-5", region, "holder", 5);
    put_old(f, "free-5", region, NULL, 5);
    put_old(f, "elsewhere-20", "another region", "holder", 20);
    fixture_put_row(f, "alive", region, "holder",
                    f->layout == SQLOCK_LAYOUT_SPRING6 ? MINUTE_US : -1000,
                    MINUTE_US);
    assert_int_equal(reap(f, registry, SQLOCK_RETENTION_DEFAULT_MS), 2);
    assert_false(has_key(f, "dead-20"));
    assert_false(has_key(f, "free-20"));
    assert_true(has_key(f, "dead-5"));
    assert_true(has_key(f, "free-5"));
    assert_true(has_key(f, "elsewhere-20"));
    assert_int_equal(reap(f, registry, 60000), 2);
    assert_int_equal(reap(f, registry, 0), 0);
    assert_true(has_key(f, "elsewhere-20"));
    assert_true(has_key(f, "alive"));
    registry_end(registry);
}

/* Its tickets may be of those who wait, if a clock has stepped. */
TEST_ON(test_a_row_with_tickets_stays_a_day_longer, ON_ALL, IN_SQLOCK)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);

    put_old(f, "free-1410", region, NULL, 23 * 60 + 30);
    put_old(f, "free-1470", region, NULL, 24 * 60 + 30);
    put_old(f, "dead-1410", region, "holder", 23 * 60 + 30);
    put_old(f, "dead-1470", region, "holder", 24 * 60 + 30);
    (void)sql_run(&f->sql,
                  "UPDATE %s SET QUEUE = "
                  "'{\"e\":1000000000000000,\"q\":["
                  "[\"00000000-0000-4000-8000-000000000000\","
                  "1000000000000000,1000000000000000,\"000000\",\"one\"],0]}' "
                  "WHERE REGION = '%s'",
                  f->table, region);
    assert_int_equal(reap(f, registry, SQLOCK_RETENTION_DEFAULT_MS), 2);
    assert_true(has_key(f, "free-1410"));
    assert_true(has_key(f, "dead-1410"));
    registry_end(registry);
}

TEST(test_many_old_rows_go_in_batches)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    int i;

    assert_int_equal(sql_begin(&f->sql), 0);
    for (i = 0; i < 2100; i++) {
        char key[SQLOCK_KEY_SIZE];

        (void)snprintf(key, sizeof key, "batch-%d", i);
        put_old(f, key, region, i % 2 ? "holder" : NULL, i % 3 ? 20 : 5);
    }
    assert_int_equal(sql_commit(&f->sql), 0);
    assert_int_equal(reap(f, registry, SQLOCK_RETENTION_DEFAULT_MS), 1400);
    assert_int_equal(reap(f, registry, SQLOCK_RETENTION_DEFAULT_MS), 0);
    assert_int_equal(reap(f, registry, 0), 700);
    registry_end(registry);
}

TEST(test_retention_out_of_bounds_is_refused)
{
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX};
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t removed = 77;
        int rc = sqlock_reap(f->a, bad[i], &removed, &f->err);

        assert_code(SQLOCK_EINVAL, rc, &f->err);
        assert_contains(f->err.message, "must be 0 to ");
        assert_true(removed == 77);
    }
}

/* --- F31: renewing and reaping in a tight loop --- */

struct race {
    sqlock_lock *lock;
    sqlock_registry *reaper;
    unsigned rounds;
    atomic_bool done;
};

static int renew_on(struct worker *worker)
{
    struct race *race = worker->context;
    unsigned i;
    int rc = 0;

    for (i = 0; i < race->rounds && rc == 0; i++) {
        rc = lock_try(race->lock, 0, LONG_TTL_MS, &worker->err);
        if (rc == 0)
            rc = sqlock_renew(race->lock, 0, &worker->err);
        if (rc == 0)
            rc = sqlock_renew(race->lock, 0, &worker->err);
        if (rc == 0)
            rc = sqlock_release(race->lock, &worker->err);
    }
    atomic_store(&race->done, true);
    if (rc < 0)
        return worker_fail(worker, "round %u gave %d: %s", i, rc,
                           worker->err.message);
    return 0;
}

static int reap_on(struct worker *worker)
{
    struct race *race = worker->context;

    if (worker->index == 0)
        return renew_on(worker);
    while (!atomic_load(&race->done))
        worker_expect(worker, 0,
                      sqlock_reap(race->reaper, 0, NULL, &worker->err));
    return 0;
}

TEST(test_F31_reaping_never_touches_a_lease_that_is_renewed)
{
    struct race race = {.reaper = f->b, .rounds = check_scale(150, 50000)};
    struct workers workers;

    race.lock = lock_obtain(f->a, f->name);
    workers_start(&workers, 2, reap_on, &race);
    workers_join(&workers);
    lock_drop(race.lock);
}
