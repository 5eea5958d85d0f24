/*
 * mariadb.c - a MariaDB server that waits for its disk grants at once after a
 * crash; one that does not grants nothing; but it does without the table
 * INT_LOCK_SERVER
 */
#include <signal.h>
#include <stdio.h>

#include "crash.h"

static const struct database *const mysql = &databases[1];
static const char with_table[] = "gr_", without_table[] = "ng_";
static const char durable_table[] = "du_";
static struct sql admin;

static const char *admin_url(void)
{
    return cluster_variable("crash", "MYSQL_ADMIN_URL");
}

static const char *url(void)
{
    return database_url(mysql);
}

static int set_up(void **state)
{
    (void)state;
    cluster_create_table(url(), with_table);
    cluster_create_table(url(), without_table);
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

    user_use(url(), with_table);
    user_use(url(), without_table);
    keep_all();
    user_begin(&graced, url(), with_table);
    user_begin(&forgotten, url(), without_table);
    assert_lock_ok(sqlock_acquire(graced.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_acquire(forgotten.lock, 0, NULL, &err), &err);
    server_restart(&admin, admin_url(), SIGKILL);
    check_that_two_hold_it(&forgotten, url(), without_table);
    check_that_nobody_gets_it(&graced, url(), with_table);
    user_end(&graced);
    user_end(&forgotten);
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
    cluster_create_table(url(), durable_table);
    user_begin(&before, url(), durable_table);
    assert_lock_ok(sqlock_acquire(before.lock, 0, NULL, &err), &err);
    assert_becomes_true(has_run_for_a_while(), PATIENCE_MS);
    server_restart(&admin, admin_url(), SIGKILL);
    user_begin(&after, url(), durable_table);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(before.lock, &err), &err);
    assert_lock_ok(sqlock_acquire(after.lock, 0, NULL, &err), &err);
    user_end(&after);
    user_end(&before);
    set_durable(false);
}

static void test_F61_a_server_that_forgets_leases_grants_none(void **state)
{
    (void)state;
    crash_again(crash);
}

const struct group mariadb_group = {
    .name = "mariadb",
    .tests =
        (const struct CMUnitTest[]){
            cmocka_unit_test(
                test_F61_a_server_that_forgets_nothing_grants_at_once),
            cmocka_unit_test(test_F61_a_server_that_forgets_leases_grants_none),
        },
    .count = 2,
    .open = set_up,
    .close = tear_down,
    .is_sequence = true,
};
