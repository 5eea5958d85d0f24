/*
 * mariadb.c - a MariaDB server that waits for its disk grants at once after a
 * crash; one that does not grants nothing, whether it was killed or its machine
 * lost its power; but it does without the table INT_LOCK_SERVER
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"

static const struct database *const mysql = &databases[1];
static const char with_table[] = "gr_", without_table[] = "ng_";
static const char durable_table[] = "du_";
static struct sql admin;
/* innodb_flush_log_at_trx_commit: a commit waits for the disk (1), is written
 * and not flushed (2), or stays in the server's memory (0). */
static int flush;

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

/* Run a command in the server's folder. */
static void run_at_server(const char *command)
{
    char text[512];
    char *folder = strdup(cluster_variable("crash", "MYSQL_PIDFILE"));

    assert_non_null(folder);
    *strrchr(folder, '/') = '\0';
    (void)snprintf(text, sizeof text, "cd %s && %s", folder, command);
    free(folder);
    assert_int_equal(system(text), 0); /* NOLINT: of our own making */
}

static void set_flush(int when)
{
    (void)sql_run(&admin, "SET GLOBAL innodb_flush_log_at_trx_commit = %d",
                  when);
}

/* Let the server flush what it has committed until now.  No page is written
 * before its log is flushed, and of so few none is written soon. */
static void keep_all(void)
{
    assert_becomes_true(has_run_for_a_while(), PATIENCE_MS);
    set_flush(1);
    (void)sql_run(&admin, "UPDATE gr_LOCK_SERVER SET NOTE = UUID()");
    run_at_server("cp data/ib_logfile0 flushed");
    set_flush(flush);
}

/* Kill the server.  The machine still has all that was written, so the log
 * becomes what was flushed of it: as if the power were cut. */
static void lose_all(void)
{
    if (flush == 2)
        run_at_server("touch hold && { { while [ -e pid ]; do sleep 0.1; done;"
                      " cp flushed data/ib_logfile0; rm hold; } & }");
    server_restart(&admin, admin_url(), SIGKILL);
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
    lose_all();
    check_that_two_hold_it(&forgotten, url(), without_table);
    check_that_nobody_gets_it(&graced, url(), with_table);
    user_end(&graced);
    user_end(&forgotten);
}

/* Let the server do so from now on, and when it is started again. */
static void keep_flush(int when)
{
    FILE *init = fopen(cluster_variable("crash", "CRASH_INIT"), "w");

    assert_non_null(init);
    assert_true(fprintf(init,
                        "SET GLOBAL innodb_flush_log_at_trx_commit = %d;\n",
                        when) > 0);
    assert_int_equal(fclose(init), 0);
    set_flush(when);
    flush = when;
}

static void test_F61_a_server_that_forgets_nothing_grants_at_once(void **state)
{
    struct user before, after;
    sqlock_error err = {0};

    (void)state;
    keep_flush(1);
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
    keep_flush(0);
}

static void test_F61_a_server_that_forgets_leases_grants_none(void **state)
{
    (void)state;
    crash_again(crash);
}

static void test_F61_a_server_whose_power_is_cut_grants_none(void **state)
{
    (void)state;
    keep_flush(2);
    crash_again(crash);
    keep_flush(0);
}

const struct group mariadb_group = {
    .name = "mariadb",
    .tests =
        (const struct CMUnitTest[]){
            cmocka_unit_test(
                test_F61_a_server_that_forgets_nothing_grants_at_once),
            cmocka_unit_test(test_F61_a_server_that_forgets_leases_grants_none),
            cmocka_unit_test(test_F61_a_server_whose_power_is_cut_grants_none),
        },
    .count = 3,
    .open = set_up,
    .close = tear_down,
    .is_sequence = true,
};
