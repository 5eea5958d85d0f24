/*
 * postgres.c - with durability=fast PostgreSQL forgets the last leases in a
 * crash, and grants nothing until these are over; but it does if the mark is
 * put back that the crash has taken away
 */
#include <signal.h>
#include <stdio.h>

#include "crash.h"
#include "sqlock/tx.h"

static const struct database *const postgres = &databases[0];
static const char with_mark[] = "fm_", mark_put_back[] = "fp_",
                  copied[] = "fc_";
static char fast[512];
static struct sql admin;

static const char *admin_url(void)
{
    return cluster_variable("crash", "POSTGRES_ADMIN_URL");
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(fast, sizeof fast, "%s?durability=fast",
                   database_url(postgres));
    cluster_create_table(database_url(postgres), with_mark);
    cluster_create_table(database_url(postgres), mark_put_back);
    cluster_create_table(database_url(postgres), copied);
    assert_lock_ok(sql_open(&admin, postgres, admin_url()), &admin.err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sql_close(&admin);
    return 0;
}

/* Let the server write what it has committed until now, and from then on only
 * what a commit waits for. */
static void keep_all(void)
{
    (void)sql_run(&admin, "UPDATE fm_LOCK_SERVER SET NOTE = 'kept'");
    server_stop_process((pid_t)sql_integer(&admin,
                                           "SELECT pid FROM pg_stat_activity "
                                           "WHERE backend_type = 'walwriter'"));
}

static bool has_lease(const char *prefix)
{
    return sql_integer(&admin,
                       "SELECT count(*) FROM %sLOCK WHERE CLIENT_ID IS NOT "
                       "NULL",
                       prefix) > 0;
}

static void crash(void)
{
    struct user graced, forgotten;
    sqlock_error err = {0};
    int64_t mark;

    user_use(fast, with_mark);
    user_use(fast, mark_put_back);
    mark = sql_integer(&admin, "SELECT MARK FROM fp_LOCK_MARK");
    (void)sql_run(&admin, "CREATE TABLE IF NOT EXISTS kept AS "
                          "SELECT * FROM fp_LOCK_MARK");
    keep_all();
    user_begin(&graced, fast, with_mark);
    user_begin(&forgotten, fast, mark_put_back);
    assert_lock_ok(sqlock_acquire(graced.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_acquire(forgotten.lock, 0, NULL, &err), &err);
    server_crash(&admin, admin_url());
    assert_false(has_lease(with_mark));
    assert_false(has_lease(mark_put_back));
    (void)sql_run(&admin, "INSERT INTO fp_LOCK_MARK SELECT * FROM kept");
    (void)sql_run(&admin, "DROP TABLE kept");
    assert_int_equal(sql_integer(&admin, "SELECT MARK FROM fp_LOCK_MARK"),
                     mark);
    check_that_two_hold_it(&forgotten, fast, mark_put_back);
    check_that_nobody_gets_it(&graced, fast, with_mark);
    user_end(&graced);
    user_end(&forgotten);
}

static void
test_F61_fast_leases_that_a_crash_forgets_are_waited_for(void **state)
{
    (void)state;
    crash_again(crash);
}

/* Somebody who waits for the disk learns of it, too. */
static void test_F61_a_durable_session_waits_for_fast_leases(void **state)
{
    struct user before;
    sqlock_error err = {0};

    (void)state;
    user_use(fast, with_mark);
    keep_all();
    user_begin(&before, fast, with_mark);
    assert_lock_ok(sqlock_acquire(before.lock, 0, NULL, &err), &err);
    server_crash(&admin, admin_url());
    assert_false(has_lease(with_mark));
    check_that_nobody_gets_it(&before, database_url(postgres), with_mark);
    user_end(&before);
    user_use(fast, with_mark);
}

/* Also of what a session commits that was opened for fast leases. */
static void test_F61_what_is_no_lease_is_kept(void **state)
{
    struct user user;
    sqlock_tx *tx;
    sqlock_error err = {0};

    (void)state;
    (void)sql_run(&admin, "CREATE TABLE written (id integer)");
    (void)sql_run(&admin, "GRANT ALL ON written TO sqlock_test");
    user_use(fast, with_mark);
    keep_all();
    user_begin(&user, fast, with_mark);
    assert_lock_ok(sqlock_acquire(user.lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_tx_begin(&tx, user.registry, &err), &err);
    assert_lock_ok(sqlock_tx_execute(tx, "INSERT INTO written VALUES (1)", NULL,
                                     0, NULL, &err),
                   &err);
    assert_lock_ok(sqlock_tx_guard(tx, user.lock, &err), &err);
    assert_lock_ok(sqlock_tx_commit(tx, &err), &err);
    server_crash(&admin, admin_url());
    assert_int_equal(sql_integer(&admin, "SELECT count(*) FROM written"), 1);
    assert_true(has_lease(with_mark));
    (void)sql_run(&admin, "DROP TABLE written");
    (void)sql_run(&admin, "UPDATE fm_LOCK_SERVER SET GRANTS_FROM = SINCE");
    user_end(&user);
}

static void test_F61_a_clean_restart_takes_no_mark_away(void **state)
{
    struct user after;
    sqlock_error err = {0};

    (void)state;
    user_use(fast, with_mark);
    server_restart(&admin, admin_url(), SIGINT);
    user_begin(&after, fast, with_mark);
    assert_lock_ok(sqlock_acquire(after.lock, 0, NULL, &err), &err);
    user_end(&after);
}

/* The server restarts by itself after a process of it was killed. */
static void test_F61_a_killed_session_takes_the_mark_away(void **state)
{
    struct user after;
    sqlock_error err = {0};
    pid_t session = (pid_t)sql_integer(&admin, "SELECT pg_backend_pid()");

    (void)state;
    user_use(fast, with_mark);
    server_restart_itself(&admin, admin_url(), session);
    user_begin(&after, fast, with_mark);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    user_end(&after);
    (void)sql_run(&admin, "UPDATE fm_LOCK_SERVER SET GRANTS_FROM = SINCE");
}

/* As a dump does that is restored: it has the mark, but not its table. */
static void test_F61_a_copy_of_the_mark_does_not_count(void **state)
{
    struct user after;
    sqlock_error err = {0};

    (void)state;
    user_use(fast, with_mark);
    (void)sql_run(&admin, "DELETE FROM fc_LOCK_SERVER");
    (void)sql_run(&admin,
                  "INSERT INTO fc_LOCK_SERVER SELECT * FROM fm_LOCK_SERVER");
    (void)sql_run(&admin,
                  "INSERT INTO fc_LOCK_MARK SELECT * FROM fm_LOCK_MARK");
    user_begin(&after, fast, copied);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    user_end(&after);
}

const struct group postgres_group = {
    .name = "postgres",
    .tests =
        (const struct CMUnitTest[]){
            cmocka_unit_test(test_F61_a_clean_restart_takes_no_mark_away),
            cmocka_unit_test(test_F61_a_copy_of_the_mark_does_not_count),
            cmocka_unit_test(test_F61_a_killed_session_takes_the_mark_away),
            cmocka_unit_test(test_F61_what_is_no_lease_is_kept),
            cmocka_unit_test(
                test_F61_fast_leases_that_a_crash_forgets_are_waited_for),
            cmocka_unit_test(test_F61_a_durable_session_waits_for_fast_leases),
        },
    .count = 6,
    .open = set_up,
    .close = tear_down,
    .is_sequence = true,
};
