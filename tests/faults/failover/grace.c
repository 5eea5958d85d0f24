/*
 * grace.c - a promoted standby, which may lack a lease, grants its lock to
 * nobody before the lease has run out
 */
#include "failover.h"

#define PREFIX_OF_GRACE "gr_"
/* Longer than the failover takes. */
#define TTL_MS 15000

struct user {
    sqlock_registry *registry;
    sqlock_lock *lock;
};

static struct user before; /* has the lock of the old primary */

static void begin(struct user *user)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    options.table_prefix = PREFIX_OF_GRACE;
    options.ttl_ms = TTL_MS;
    assert_lock_ok(
        sqlock_registry_open(&user->registry, cluster_url(), &options, &err),
        &err);
    assert_lock_ok(sqlock_obtain(&user->lock, user->registry, "graced", &err),
                   &err);
}

static void end(struct user *user)
{
    sqlock_error err = {0};

    assert_lock_ok(sqlock_drop(user->lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(user->registry, &err), &err);
}

static bool standby_knows(void)
{
    struct sql sql;
    int64_t longest_ms = 0;

    if (sql_open(&sql, postgres, cluster_standby("URL")) == 0 &&
        sql_integer(&sql, "SELECT count(*) FROM pg_class WHERE relname ="
                          " 'gr_lock_server'") == 1)
        longest_ms = sql_integer(&sql, "SELECT longest_ms FROM gr_lock_server");
    sql_close(&sql);
    return longest_ms == TTL_MS;
}

void grace_set_up(void)
{
    struct sql sql;
    struct user user;
    sqlock_error err = {0};

    cluster_create_table(cluster_url(), PREFIX_OF_GRACE);
    assert_lock_ok(sql_open(&sql, postgres, database_url(postgres)), &sql.err);
    (void)sql_run(&sql, "UPDATE gr_lock_server SET longest_ms = 1000");
    sql_close(&sql);
    begin(&user);
    assert_lock_ok(sqlock_acquire(user.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(user.lock, &err), &err);
    assert_int_equal(sqlock_registry_grace_ms(user.registry), 0);
    end(&user);
    assert_becomes_true(standby_knows(), PATIENCE_MS);
}

void grace_hold(void)
{
    sqlock_error err = {0};

    begin(&before);
    assert_lock_ok(sqlock_acquire(before.lock, 0, NULL, &err), &err);
}

void test_F57_a_promoted_standby_grants_nothing_at_first(void **state)
{
    struct user after;
    sqlock_error err = {0};

    (void)state;
    begin(&after);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    assert_true(sqlock_registry_grace_ms(after.registry) > 0);
    assert_lock_ok(sqlock_acquire(after.lock, PATIENCE_MS, NULL, &err), &err);
    assert_int_equal(sqlock_remaining_ms(before.lock), 0);
    assert_int_equal(sqlock_registry_grace_ms(after.registry), 0);
    assert_lock_ok(sqlock_release(after.lock, &err), &err);
    assert_true(sqlock_release(before.lock, &err) < 0);
    end(&before);
    end(&after);
}
