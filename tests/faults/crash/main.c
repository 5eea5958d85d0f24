/*
 * main.c - a MariaDB server that forgets its last commits when it is killed
 * grants nothing until the leases among them are over; without the table
 * INT_LOCK_SERVER it does, and two hold a lock; one that waits for its disk
 * grants at once
 *
 *     bash tests/faults/crash/with.sh build/tests/crash
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cluster.h"
#include "support/server.h"

/* Longer than the server takes to start again. */
#define TTL_MS 25000

static const struct database *const mysql = &databases[1];
static const char with_table[] = "gr_", without_table[] = "ng_";
static const char durable_table[] = "du_";
static struct sql admin;

struct user {
    sqlock_registry *registry;
    sqlock_lock *lock;
};

static const char *admin_url(void)
{
    return cluster_variable("crash", "MYSQL_ADMIN_URL");
}

static void begin(struct user *user, const char *prefix)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    options.table_prefix = prefix;
    options.ttl_ms = TTL_MS;
    assert_lock_ok(sqlock_registry_open(&user->registry, database_url(mysql),
                                        &options, &err),
                   &err);
    assert_lock_ok(sqlock_obtain(&user->lock, user->registry, "lost", &err),
                   &err);
}

/* End what has begun, which may hold a lock that the server has forgotten. */
static void end(struct user *user)
{
    (void)!sqlock_release(user->lock, NULL);
    (void)!sqlock_drop(user->lock, NULL);
    (void)!sqlock_registry_close(user->registry, NULL);
}

/* Acquire the lock, which inserts its row, and release it. */
static void use(const char *prefix)
{
    struct user user;
    sqlock_error err = {0};

    begin(&user, prefix);
    assert_lock_ok(sqlock_acquire(user.lock, PATIENCE_MS, NULL, &err), &err);
    assert_lock_ok(sqlock_release(user.lock, &err), &err);
    end(&user);
}

static int set_up(void **state)
{
    (void)state;
    cluster_create_table(database_url(mysql), with_table);
    cluster_create_table(database_url(mysql), without_table);
    assert_lock_ok(sql_open(&admin, mysql, admin_url()), &admin.err);
    (void)sql_run(&admin, "DROP TABLE ng_LOCK_SERVER");
    (void)sql_run(&admin, "UPDATE gr_LOCK_SERVER SET LONGEST_MS = 1000");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sql_close(&admin);
    return 0;
}

/* The control: the server has forgotten the lease. */
static void check_that_two_hold_it(const struct user *before)
{
    struct user after;
    sqlock_error err = {0};

    begin(&after, without_table);
    assert_lock_ok(sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_true(sqlock_remaining_ms(before->lock) > 0);
    end(&after);
}

static void check_that_nobody_gets_it(const struct user *before)
{
    struct user after;
    sqlock_error err = {0};

    begin(&after, with_table);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    assert_true(sqlock_remaining_ms(before->lock) > 0);
    assert_lock_ok(sqlock_acquire(after.lock, TTL_MS + PATIENCE_MS, NULL, &err),
                   &err);
    assert_int_equal(sqlock_remaining_ms(before->lock), 0);
    end(&after);
}

/* A server is told from the one before by when it was started, which may be two
 * seconds off. */
static bool has_run_for_a_while(void)
{
    return sql_integer(&admin,
                       "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM "
                       "information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME "
                       "= 'UPTIME'") > 4;
}

/* Let the server write what it has committed until now. */
static void keep_all(void)
{
    assert_becomes_true(has_run_for_a_while(), PATIENCE_MS);
    (void)sql_run(&admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    (void)sql_run(&admin, "UPDATE gr_LOCK_SERVER SET NOTE = UUID()");
    (void)sql_run(&admin, "SET GLOBAL innodb_flush_log_at_trx_commit = 0");
}

static void crash(void)
{
    struct user graced, forgotten;
    sqlock_error err = {0};

    use(with_table);
    use(without_table);
    keep_all();
    begin(&graced, with_table);
    begin(&forgotten, without_table);
    assert_lock_ok(sqlock_acquire(graced.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_acquire(forgotten.lock, 0, NULL, &err), &err);
    server_restart(&admin, admin_url(), SIGKILL);
    check_that_two_hold_it(&forgotten);
    check_that_nobody_gets_it(&graced);
    end(&graced);
    end(&forgotten);
}

/* Let the server wait for its disk or not, from now on and when it is started
 * again. */
static void set_durable(bool is_durable)
{
    static const char set[] = "SET GLOBAL innodb_flush_log_at_trx_commit =";
    FILE *init = fopen(cluster_variable("crash", "CRASH_INIT"), "w");

    assert_non_null(init);
    assert_true(fprintf(init, "%s %d;\n", set, is_durable) > 0);
    assert_int_equal(fclose(init), 0);
    (void)sql_run(&admin, "%s %d", set, is_durable);
}

static void test_F61_a_server_that_forgets_nothing_grants_at_once(void **state)
{
    struct user before, after;
    sqlock_error err = {0};

    (void)state;
    set_durable(true);
    cluster_create_table(database_url(mysql), durable_table);
    begin(&before, durable_table);
    assert_lock_ok(sqlock_acquire(before.lock, 0, NULL, &err), &err);
    assert_becomes_true(has_run_for_a_while(), PATIENCE_MS);
    server_restart(&admin, admin_url(), SIGKILL);
    begin(&after, durable_table);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(before.lock, &err), &err);
    assert_lock_ok(sqlock_acquire(after.lock, 0, NULL, &err), &err);
    end(&after);
    end(&before);
    set_durable(false);
}

static void test_F61_a_server_that_forgets_leases_grants_none(void **state)
{
    const char *text = getenv("SQLOCK_TEST_ROUNDS");
    long rounds = text != NULL ? strtol(text, NULL, 10) : 1;

    (void)state;
    for (long i = 0; i < rounds; i++)
        crash();
    print_message("%ld crashes: 1 overlap in each without the table, 0 with "
                  "it\n",
                  rounds);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F61_a_server_that_forgets_nothing_grants_at_once),
        cmocka_unit_test(test_F61_a_server_that_forgets_leases_grants_none),
    };
    static const struct cluster_suite suite = {
        .program = {.name = "crash",
                    .about = "a MariaDB server that forgets its last commits"},
        .group = {.tests = tests,
                  .count = sizeof tests / sizeof *tests,
                  .open = set_up,
                  .close = tear_down,
                  .is_sequence = true},
        .database = &databases[1],
    };

    return cluster_main(&suite, argc, argv);
}
