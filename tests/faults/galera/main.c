/*
 * main.c - three nodes of a Galera cluster that all take writes: a lock has one
 * holder, and its tokens rise, over all nodes, also when nodes are killed and
 * paused; row locks, which each node has for itself, are refused
 *
 *     bash tests/faults/galera/with.sh build/tests/galera
 */
#include "galera.h"

#include <stdatomic.h>
#include <stdio.h>

static const struct database *const mysql = &databases[1];

const char *node_variable(unsigned number, const char *what)
{
    return cluster_variable("galera", "GALERA_%u_%s", number, what);
}

sqlock_options node_options(void)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.ttl_ms = 5000;
    options.statement_timeout_ms = 5000;
    options.poll_ms = 5;
    return options;
}

sqlock_registry *node_registry(unsigned number)
{
    sqlock_options options = node_options();
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int rc = sqlock_registry_open(&registry, node_variable(number, "URL"),
                                  &options, &err);

    assert_lock_ok(rc, &err);
    return registry;
}

pid_t node_pid(unsigned number)
{
    return database_pid_in(node_variable(number, "PIDFILE"));
}

static bool is_whole(unsigned number, unsigned size)
{
    struct sql sql;
    bool is_ready =
        sql_open(&sql, mysql, node_variable(number, "URL")) == 0 &&
        sql_try(&sql, NULL, "SELECT COUNT(*) FROM %sLOCK", PREFIX) == 0 &&
        sql_integer(&sql,
                    "SELECT COUNT(*) FROM information_schema.global_status"
                    " WHERE (variable_name = 'wsrep_local_state_comment'"
                    " AND variable_value = 'Synced')"
                    " OR (variable_name = 'wsrep_cluster_size'"
                    " AND variable_value = '%u')",
                    size) == 2;

    sql_close(&sql);
    return is_ready;
}

void node_print(unsigned number)
{
    char text[1024];
    struct sql sql;

    (void)snprintf(text, sizeof text, "does not answer");
    if (sql_open(&sql, mysql, node_variable(number, "URL")) == 0)
        (void)sql_text(&sql, text, sizeof text,
                       "SELECT GROUP_CONCAT(variable_name, '=', variable_value)"
                       " FROM information_schema.global_status WHERE"
                       " variable_name IN ('wsrep_cluster_size',"
                       " 'wsrep_cluster_status', 'wsrep_ready',"
                       " 'wsrep_local_state_comment')");
    sql_close(&sql);
    print_message("node %u: %s\n", number, text);
}

void node_await(unsigned number, unsigned size)
{
    assert_becomes_true(is_whole(number, size), 4 * PATIENCE_MS);
}

static int set_up(void **state)
{
    (void)state;
    cluster_create_table(node_variable(1, "URL"), PREFIX);
    return 0;
}

static void test_F63_row_locks_are_refused(void **state)
{
    static const char *const names[] = {"a"};
    sqlock_registry *registry = node_registry(1);
    const sqlock_table table = {
        .size = sizeof table, .name = "ga_LOCK", .key_column = "LOCK_KEY"};
    sqlock_value key = sqlock_text("k");
    sqlock_error err = {0};
    sqlock_lock *lock;
    sqlock_tx *tx;

    (void)state;
    assert_lock_ok(sqlock_obtain(&lock, registry, "guarded", &err), &err);
    assert_lock_ok(sqlock_acquire(lock, 0, NULL, &err), &err);
    assert_lock_ok(sqlock_tx_begin(&tx, registry, &err), &err);
    assert_code(SQLOCK_ENOTSUP,
                sqlock_tx_lock(tx, names, 1, 0, false, NULL, &err), &err);
    assert_contains(err.message, "Galera");
    assert_code(SQLOCK_ENOTSUP,
                sqlock_tx_lock_row(tx, &table, &key, false, 0, &err), &err);
    assert_code(SQLOCK_ENOTSUP, sqlock_tx_guard(tx, lock, &err), &err);
    /* After a guard that failed, the commit fails, too. */
    assert_code(SQLOCK_ENOTSUP, sqlock_tx_commit(tx, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_drop(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* --- one lock, from all nodes at once --- */

struct contest {
    unsigned grants;
    atomic_uint done;
    atomic_int inside;
    atomic_llong last_token;
};

bool node_is_passing(int rc)
{
    return rc == SQLOCK_ETIMEDOUT || rc == SQLOCK_ERETRY ||
           rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE ||
           rc == SQLOCK_EREADONLY || rc == SQLOCK_EBUSY;
}

static int hold_once(struct worker *worker, struct contest *contest,
                     sqlock_lock *lock)
{
    long long token = sqlock_token(lock);
    long long last;

    if (atomic_fetch_add(&contest->inside, 1) != 0)
        return worker_fail(worker, "two are let in");
    last = atomic_exchange(&contest->last_token, token);
    if (token <= last)
        return worker_fail(worker, "token %lld after %lld", token, last);
    atomic_fetch_add(&contest->done, 1);
    check_sleep(1);
    atomic_fetch_sub(&contest->inside, 1);
    return 0;
}

static int contend(struct worker *worker)
{
    struct contest *contest = worker->context;
    sqlock_registry *registry = node_registry(1 + worker->index % NODES);
    sqlock_lock *lock;
    int rc = sqlock_obtain(&lock, registry, "contested", &worker->err);

    while (rc == 0 && atomic_load(&contest->done) < contest->grants) {
        rc = sqlock_acquire(lock, 2000, NULL, &worker->err);
        if (rc == 0) {
            rc = hold_once(worker, contest, lock);
            if (rc < 0)
                return rc;
            rc = sqlock_release(lock, &worker->err);
        }
        if (node_is_passing(rc))
            rc = 0;
    }
    if (rc < 0)
        return worker_fail(worker, "%d: %s", rc, worker->err.message);
    worker_expect(worker, 0, sqlock_drop(lock, &worker->err));
    worker_expect(worker, 0, sqlock_registry_close(registry, &worker->err));
    return 0;
}

static void test_F64_a_lease_holds_over_all_nodes(void **state)
{
    struct contest contest = {.grants = check_scale(60, 2000)};
    struct workers workers;

    (void)state;
    workers_start(&workers, 2 * NODES, contend, &contest);
    workers_join(&workers);
    assert_true(contest.done >= contest.grants);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F63_row_locks_are_refused),
        cmocka_unit_test(test_F64_a_lease_holds_over_all_nodes),
        cmocka_unit_test(test_F64_nodes_are_killed_and_paused),
    };
    static const struct cluster_suite suite = {
        .program = {.name = "galera",
                    .about = "leases on three nodes that all take writes"},
        .group = {.tests = tests,
                  .count = sizeof tests / sizeof *tests,
                  .test_seconds = TEST_SECONDS,
                  .open = set_up},
        .database = &databases[1],
    };

    return cluster_main(&suite, argc, argv);
}
