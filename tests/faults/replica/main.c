/*
 * main.c - one failover of MariaDB, or of Oracle's MySQL: the source is killed,
 * and its replica, which lacks the last acknowledged commits, is promoted; then
 * it is made read-only, and the old source goes on
 *
 *     bash tests/faults/replica/with.sh build/tests/replica
 *
 * The servers serve for one run.  Each test goes on where the one before it has
 * stopped.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/cluster.h"

#define PREFIX "re_"
#define TTL_MS 120000 /* longer than the tests take */

static const struct database *const mysql = &databases[1];

/* Locks acquired on the source.  The replica has received all their changes but
 * those of the last. */
static struct {
    sqlock_registry *registry;
    sqlock_lock *followed;
    sqlock_lock *released;
    sqlock_lock *forgotten;
    int64_t released_token;
    int64_t forgotten_token;
} source;

static const char *variable(const char *what)
{
    return cluster_variable("replica", "MYSQL_%s", what);
}

/* Return a URL that lists the replica before the source. */
static const char *both(void)
{
    static char url[1024];
    const char *at = strrchr(database_url(mysql), '@') + 1;
    const char *replica = variable("REPLICA_URL");
    const char *database = strrchr(replica, '/');

    (void)snprintf(url, sizeof url, "%.*s,%s", (int)(database - replica),
                   replica, at);
    return url;
}

static int open_at(const char *url, sqlock_registry **registry,
                   sqlock_error *err)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.ttl_ms = TTL_MS;
    options.connect_timeout_ms = 2000;
    return sqlock_registry_open(registry, url, &options, err);
}

static sqlock_lock *take(sqlock_registry *registry, const char *name)
{
    sqlock_error err = {0};
    sqlock_lock *lock = NULL;

    assert_lock_ok(sqlock_obtain(&lock, registry, name, &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    return lock;
}

static void run_at(const char *url, const char *statement)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, mysql, url), &sql.err);
    (void)sql_run(&sql, "%s", statement);
    sql_close(&sql);
}

static void on_replica(const char *statement)
{
    run_at(variable("REPLICA_ADMIN_URL"), statement);
}

/* Return whether the lock's row on the replica has this token. */
static bool has_token(const sqlock_lock *lock, int64_t token)
{
    struct sql sql;
    bool has;

    assert_lock_ok(sql_open(&sql, mysql, variable("REPLICA_ADMIN_URL")),
                   &sql.err);
    has = sql_integer(&sql,
                      "SELECT COUNT(*) FROM re_LOCK WHERE LOCK_KEY = '%s' AND"
                      " FENCE = %lld",
                      sqlock_key(lock), (long long)token) == 1;
    sql_close(&sql);
    return has;
}

static int set_up(void **state)
{
    sqlock_error err = {0};

    (void)state;
    cluster_create_table(database_url(mysql), PREFIX);
    assert_lock_ok(open_at(database_url(mysql), &source.registry, &err), &err);
    source.followed = take(source.registry, "followed");
    source.released = take(source.registry, "released");
    source.released_token = sqlock_token(source.released);
    assert_lock_ok(sqlock_release(source.released, &err), &err);
    assert_becomes_true(has_token(source.released, source.released_token),
                        PATIENCE_MS);
    return 0;
}

static void test_F59_no_decision_comes_from_a_replica(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_code(SQLOCK_EREADONLY,
                open_at(variable("REPLICA_URL"), &registry, &err), &err);
    assert_null(registry);
}

static void test_F59_a_list_of_hosts_leads_to_the_source(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_lock_ok(open_at(both(), &registry, &err), &err);
    assert_lock_ok(sqlock_release(take(registry, "list"), &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* Return the path of the file that keeps the source down. */
static const char *hold_path(void)
{
    static char path[512];
    const char *pid_file = variable("PIDFILE");
    const char *slash = strrchr(pid_file, '/');

    if (slash == NULL)
        fail_msg("no path: %s", pid_file);
    (void)snprintf(path, sizeof path, "%.*s/hold", (int)(slash - pid_file),
                   pid_file);
    return path;
}

/* Replication stops, a lock is acquired, and the source is killed: a renewal
 * fails, and no registry can be opened at the replica. */
static void test_F57_the_source_dies_before_its_replica_has_all(void **state)
{
    pid_t server = database_pid(mysql);
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};

    (void)state;
    on_replica("STOP REPLICA");
    source.forgotten = take(source.registry, "forgotten");
    source.forgotten_token = sqlock_token(source.forgotten);
    assert_true(server > 1);
    cluster_keep_down(hold_path());
    assert_int_equal(kill(server, SIGKILL), 0);
    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN,
                   sqlock_renew(source.followed, 0, &err), &err);
    assert_code(SQLOCK_EREADONLY,
                open_at(variable("REPLICA_URL"), &registry, &err), &err);
}

/* The promoted replica grants nothing until an operator lets it.  It has the
 * lease that it had received.  The two other locks can be acquired, with
 * greater tokens, even the one of which it has received nothing. */
static void test_F57_the_promoted_replica_goes_on(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};

    (void)state;
    on_replica("RESET REPLICA ALL");
    on_replica("SET GLOBAL read_only = OFF");
    assert_lock_ok(open_at(variable("REPLICA_URL"), &registry, &err), &err);

    assert_lock_ok(sqlock_obtain(&lock, registry, "forgotten", &err), &err);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten leases");
    assert_lock_ok(sqlock_grace_end(registry, "the old holder is dead", &err),
                   &err);

    assert_lock_ok(sqlock_obtain(&lock, registry, "followed", &err), &err);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(lock, 0, NULL, &err), &err);

    lock = take(registry, "released");
    assert_less(source.released_token, sqlock_token(lock));
    assert_lock_ok(sqlock_release(lock, &err), &err);

    lock = take(registry, "forgotten");
    assert_less(source.forgotten_token, sqlock_token(lock));
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* A release at the dead source fails, and so does closing the registry, which
 * does not hang. */
static void test_F57_the_old_holder_is_told(void **state)
{
    sqlock_error err = {0};

    (void)state;
    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN,
                   sqlock_release(source.forgotten, &err), &err);
    assert_true(sqlock_registry_close(source.registry, &err) < 0);
}

static bool source_answers(void)
{
    struct sql sql;
    int rc = sql_open(&sql, mysql, database_url(mysql));

    sql_close(&sql);
    return rc == 0;
}

static uint32_t changes_of(sqlock_registry *registry)
{
    char epoch[SQLOCK_EPOCH_SIZE];

    return sqlock_registry_epoch(registry, epoch);
}

/* The server in use becomes read-only under an open registry, which goes on at
 * the other host: the old source, which has come back writable, and knows no
 * lease of its successor's, so that an operator has to let it grant. */
static void test_F59_a_server_that_is_demoted_is_left(void **state)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};

    (void)state;
    assert_lock_ok(open_at(both(), &registry, &err), &err);
    assert_lock_ok(sqlock_obtain(&lock, registry, "demoted", &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);

    on_replica("SET GLOBAL read_only = ON");
    assert_code(SQLOCK_EREADONLY, sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_int_equal(unlink(hold_path()), 0);
    assert_becomes_true(source_answers(), 4 * PATIENCE_MS);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten leases");
    assert_lock_ok(sqlock_grace_end(registry, "a switchover", &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_int_equal(changes_of(registry), 1);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F59_no_decision_comes_from_a_replica),
        cmocka_unit_test(test_F59_a_list_of_hosts_leads_to_the_source),
        cmocka_unit_test(test_F57_the_source_dies_before_its_replica_has_all),
        cmocka_unit_test(test_F57_the_promoted_replica_goes_on),
        cmocka_unit_test(test_F57_the_old_holder_is_told),
        cmocka_unit_test(test_F59_a_server_that_is_demoted_is_left),
    };
    static const struct cluster_suite suite = {
        .program = {.name = "replica",
                    .about = "one failover of MySQL or MariaDB to its replica"},
        .group = {.tests = tests,
                  .count = sizeof tests / sizeof *tests,
                  .test_seconds = TEST_SECONDS,
                  .open = set_up,
                  .is_sequence = true},
        .database = &databases[1],
    };

    return cluster_main(&suite, argc, argv);
}
