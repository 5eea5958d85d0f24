/*
 * main.c - one failover of PostgreSQL: the primary is killed under guarded
 * writes of several processes, and a standby is promoted
 *
 *     bash tests/faults/failover/with.sh build/tests/failover
 *
 * The servers serve for one run.  with.sh starts new ones for each run, one run
 * for each kind of standby, which is the last argument: sync or async.
 */
#include "failover.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENOUGH 40 /* writes of all writers to wait for, before and after */

static pid_t writers[WRITERS];

static void run_sql(const char *url, const char *const *statements)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, postgres, url), &sql.err);
    for (; *statements != NULL; statements++)
        (void)sql_run(&sql, "%s", *statements);
    sql_close(&sql);
}

static int set_up(void **state)
{
    static const char *const tables[] = {
        "CREATE TABLE counter (lane BIGINT PRIMARY KEY, n BIGINT NOT NULL,"
        " fence BIGINT NOT NULL DEFAULT 0, fence_owner VARCHAR(255))",
        "INSERT INTO counter VALUES (0, 0), (1, 0), (2, 0)",
        "CREATE TABLE written (lane BIGINT NOT NULL, number BIGINT NOT NULL,"
        " token BIGINT NOT NULL, PRIMARY KEY (lane, number))",
        NULL,
    };
    static const char *const without_grace[] = {
        "DROP TABLE " PREFIX "lock_server", NULL};
    const char *kind = program_arguments()[0];

    (void)state;
    cluster_choose(kind == NULL || strcmp(kind, "async") != 0);
    print_message("failover to the %s standby\n",
                  cluster_is_synchronous() ? "synchronous" : "asynchronous");
    run_sql(database_url(postgres), tables);
    cluster_create_table(cluster_url(), PREFIX);
    /* Tokens and guards are to keep their promises without grace. */
    run_sql(database_url(postgres), without_grace);
    grace_set_up();
    judged = notes_make();
    judged->port = strtol(strrchr(cluster_standby("URL"), ':') + 1, NULL, 10);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    judge_sum_up();
    return 0;
}

static int open_at(const char *url, sqlock_registry **registry,
                   sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.connect_timeout_ms = 2000;
    return sqlock_registry_open(registry, url, &options, err);
}

/* Return whether the server has the lock table, created on the primary. */
static bool has_table(const char *url)
{
    struct sql sql;
    int64_t count = 0;

    if (sql_open(&sql, postgres, url) == 0)
        count = sql_integer(&sql, "SELECT count(*) FROM pg_class WHERE"
                                  " relname = 'fo_lock'");
    sql_close(&sql);
    return count == 1;
}

static void test_F59_no_decision_comes_from_a_standby(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_becomes_true(has_table(cluster_standby("URL")), PATIENCE_MS);
    assert_code(SQLOCK_EREADONLY,
                open_at(cluster_standby("URL"), &registry, &err), &err);
    assert_null(registry);
}

static void test_F59_a_list_of_hosts_leads_to_the_primary(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_lock_ok(open_at(cluster_url_backwards(), &registry, &err), &err);
    assert_lock_ok(sqlock_obtain(&lock, registry, "list", &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_drop(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* --- the failover --- */

static unsigned count_writes(bool late)
{
    unsigned count = 0;

    for (size_t i = 0; i < WRITERS; i++)
        count +=
            late ? judged->writers[i].late : judged->writers[i].acknowledged;
    return count;
}

static void start_writers(void)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = writer_fork();
        if (writers[i] == 0) {
            writer_run(&judged->writers[i], judged);
            _exit(0);
        }
    }
}

static void end_writers(void)
{
    judged->over = 1;
    for (unsigned i = 0; i < WRITERS; i++) {
        int status = -1;

        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
}

static void await_writes(bool late, unsigned count)
{
    if (!wait_until(count_writes(late) >= count, PATIENCE_MS))
        fail_msg("no more writes: %s", judged->writers[0].message);
}

static void test_F57_a_failover_under_guarded_writes(void **state)
{
    (void)state;
    start_writers();
    await_writes(false, ENOUGH);
    if (!cluster_is_synchronous())
        cluster_cut_off();
    holder_start(judged);
    grace_hold();
    await_writes(false, count_writes(false) + ENOUGH);
    cluster_kill_primary();
    cluster_promote();
    await_writes(true, ENOUGH);
}

static void test_F57_the_writers_end(void **state)
{
    (void)state;
    end_writers();
    for (unsigned i = 0; i < WRITERS; i++)
        print_message("writer %u: %u writes, %u calls refused, last %d: %s\n",
                      i, judged->writers[i].acknowledged,
                      judged->writers[i].refused, judged->writers[i].last,
                      judged->writers[i].message);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F59_no_decision_comes_from_a_standby),
        cmocka_unit_test(test_F59_a_list_of_hosts_leads_to_the_primary),
        cmocka_unit_test(test_F57_a_new_session_is_no_new_epoch),
        cmocka_unit_test(test_F57_a_failover_under_guarded_writes),
        cmocka_unit_test(test_F57_a_promotion_is_reported),
        cmocka_unit_test(test_F57_without_the_table_two_hold_the_lock),
        cmocka_unit_test(test_F57_a_promoted_standby_grants_nothing_at_first),
        cmocka_unit_test(test_F57_a_superseded_holder_writes_no_more),
        cmocka_unit_test(test_F57_the_writers_end),
        cmocka_unit_test(test_F57_no_token_is_given_twice),
        cmocka_unit_test(test_F57_acknowledged_writes_are_there),
        cmocka_unit_test(test_F57_no_write_comes_after_its_successors),
    };
    static const struct cluster_suite suite = {
        .program = {.name = "failover",
                    .about = "one failover of PostgreSQL under guarded writes",
                    .arguments = "[sync|async]"},
        .group = {.tests = tests,
                  .count = sizeof tests / sizeof *tests,
                  .test_seconds = TEST_SECONDS,
                  .open = set_up,
                  .close = tear_down,
                  .is_sequence = true},
        .database = &databases[0],
    };

    return cluster_main(&suite, argc, argv);
}
