/*
 * grace.c - a promoted standby, which may lack a lease, grants its lock to
 * nobody before the lease has run out; without the table INT_LOCK_SERVER it
 * does, and two hold the lock
 */
#include "failover.h"
#include "support/server.h"

/* Longer than the failover takes. */
#define TTL_MS 15000

static const char with_table[] = "gr_", without_table[] = "ng_";

struct user {
    sqlock_registry *registry;
    sqlock_lock *lock;
};

/* They have the lock of the old primary. */
static struct user graced, forgotten;

static void begin(struct user *user, const char *prefix)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    options.table_prefix = prefix;
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

/* Return whether a promoted standby would wait for the lease. */
static bool standby_has_the_length(void)
{
    struct sql sql;
    int64_t length;

    assert_lock_ok(sql_open(&sql, postgres, cluster_standby("URL")), &sql.err);
    length = sql_integer(&sql, "SELECT longest_ms FROM gr_lock_server");
    sql_close(&sql);
    return length == TTL_MS;
}

static bool standby_knows(void)
{
    struct sql sql;
    int64_t known = 0;

    if (sql_open(&sql, postgres, cluster_standby("URL")) == 0 &&
        sql_integer(&sql, "SELECT count(*) FROM pg_class WHERE relname IN "
                          "('gr_lock_server', 'ng_lock')") == 2)
        known = sql_integer(&sql,
                            "SELECT (SELECT longest_ms FROM gr_lock_server) + "
                            "(SELECT count(*) FROM ng_lock)");
    sql_close(&sql);
    return known == TTL_MS + 1;
}

/* A longer lease than all before is not granted before the standbys know how
 * long it is. */
static void check_that_longer_ones_wait(void)
{
    struct user user;
    sqlock_error err = {0};
    struct sql standby, admin;
    int rc;

    begin(&user, with_table);
    assert_code(SQLOCK_EINVAL, sqlock_acquire(user.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "pg_read_all_stats");
    assert_contains(err.message, "init --longest-ttl 15");
    assert_lock_ok(sql_open(&admin, postgres,
                            cluster_variable("failover", "POSTGRES_ADMIN_URL")),
                   &admin.err);
    (void)sql_run(&admin, "GRANT pg_read_all_stats TO sqlock_test");
    assert_lock_ok(
        sql_open(&standby, postgres,
                 cluster_variable("failover", "POSTGRES_ASYNC_ADMIN_URL")),
        &standby.err);
    server_stop_process(
        (pid_t)sql_integer(&standby, "SELECT pid FROM pg_stat_wal_receiver"));
    rc = sqlock_acquire(user.lock, 0, NULL, &err);
    server_go_on(); /* before a failure ends this */
    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_contains(err.message, "in time");
    assert_int_equal(
        sql_integer(&admin, "SELECT allowed_ms FROM gr_lock_server"), 1000);
    end(&user);
    sql_close(&standby);
    sql_close(&admin);
}

/* Wait until the standby has replayed all that it has received by now. */
static void await_replay(void)
{
    struct sql standby;
    char received[40];

    assert_lock_ok(
        sql_open(&standby, postgres,
                 cluster_variable("failover", "POSTGRES_ASYNC_ADMIN_URL")),
        &standby.err);
    assert_true(sql_text(&standby, received, sizeof received,
                         "SELECT pg_last_wal_receive_lsn()"));
    assert_becomes_true(
        sql_integer(&standby,
                    "SELECT count(*) WHERE pg_last_wal_replay_lsn() >= '%s'",
                    received) == 1,
        PATIENCE_MS);
    sql_close(&standby);
}

static void use(const char *prefix)
{
    struct user user;
    sqlock_error err = {0};

    begin(&user, prefix);
    assert_lock_ok(sqlock_acquire(user.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(user.lock, &err), &err);
    assert_int_equal(sqlock_registry_grace_ms(user.registry), 0);
    end(&user);
}

void grace_set_up(void)
{
    struct sql sql;

    cluster_create_table(cluster_url(), with_table);
    cluster_create_table(cluster_url(), without_table);
    assert_lock_ok(sql_open(&sql, postgres, database_url(postgres)), &sql.err);
    (void)sql_run(&sql, "UPDATE gr_lock_server SET longest_ms = 1000,"
                        " allowed_ms = 1000");
    (void)sql_run(&sql, "DROP TABLE ng_lock_server");
    sql_close(&sql);
    check_that_longer_ones_wait();
    use(with_table);
    await_replay();
    assert_true(standby_has_the_length());
    use(without_table);
    assert_becomes_true(standby_knows(), PATIENCE_MS);
}

static void hold(struct user *user, const char *prefix)
{
    sqlock_error err = {0};

    begin(user, prefix);
    assert_lock_ok(sqlock_acquire(user->lock, 0, NULL, &err), &err);
}

void grace_hold(void)
{
    hold(&graced, with_table);
    hold(&forgotten, without_table);
}

/* The control: the asynchronous standby, which was cut off, lacks the lease. */
void test_F57_without_the_table_two_hold_the_lock(void **state)
{
    int expected = cluster_is_synchronous() ? SQLOCK_EBUSY : 0;
    struct user after;
    sqlock_error err = {0};

    (void)state;
    begin(&after, without_table);
    assert_code(expected, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_true(sqlock_remaining_ms(forgotten.lock) > 0);
    if (expected == 0)
        assert_lock_ok(sqlock_release(after.lock, &err), &err);
    assert_int_equal(sqlock_release(forgotten.lock, NULL) < 0, expected == 0);
    end(&forgotten);
    end(&after);
}

void test_F57_a_promoted_standby_grants_nothing_at_first(void **state)
{
    struct user after;
    sqlock_error err = {0};

    (void)state;
    begin(&after, with_table);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    assert_true(sqlock_registry_grace_ms(after.registry) > 0);
    assert_true(sqlock_remaining_ms(graced.lock) > 0);
    assert_lock_ok(sqlock_acquire(after.lock, PATIENCE_MS, NULL, &err), &err);
    assert_int_equal(sqlock_remaining_ms(graced.lock), 0);
    assert_int_equal(sqlock_registry_grace_ms(after.registry), 0);
    assert_lock_ok(sqlock_release(after.lock, &err), &err);
    assert_true(sqlock_release(graced.lock, &err) < 0);
    end(&graced);
    end(&after);
}
