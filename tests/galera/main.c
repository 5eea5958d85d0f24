/*
 * main.c - three nodes of a Galera cluster that all take writes: leases and
 * tokens hold over all of them, what would not is refused
 *
 *     bash tests/galera/with.sh build/tests/galera
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/database.h"
#include "support/workers.h"

#define NODES 3
#define PREFIX "ga_"

static const struct database *const mysql = &databases[1];

static const char *node(unsigned number, const char *what)
{
    char name[64];
    const char *value;

    (void)snprintf(name, sizeof name, "SQLOCK_TEST_GALERA_%u_%s", number, what);
    value = getenv(name);
    if (value == NULL)
        fail_msg("%s is not set: run this by tests/galera/with.sh", name);
    return value;
}

static sqlock_options options_of(void)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = PREFIX;
    options.ttl_ms = 5000;
    options.statement_timeout_ms = 5000;
    options.poll_ms = 5;
    return options;
}

static sqlock_registry *registry_at(unsigned number)
{
    sqlock_options options = options_of();
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int rc =
        sqlock_registry_open(&registry, node(number, "URL"), &options, &err);

    assert_lock_ok(rc, &err);
    return registry;
}

static int set_up(void **state)
{
    sqlock_options options = options_of();
    sqlock_error err = {0};

    (void)state;
    assert_lock_ok(sqlock_schema_create(node(1, "URL"), &options,
                                        SQLOCK_LAYOUT_SQLOCK, &err),
                   &err);
    return 0;
}

static void test_F63_row_locks_are_refused(void **state)
{
    static const char *const names[] = {"a"};
    sqlock_registry *registry = registry_at(1);
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
    /* A guard that failed must not be overlooked. */
    assert_code(SQLOCK_ENOTSUP, sqlock_tx_commit(tx, &err), &err);
    assert_lock_ok(sqlock_release(lock, &err), &err);
    assert_lock_ok(sqlock_drop(lock, &err), &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
}

/* --- one lock, from all nodes at once --- */

struct contest {
    unsigned nodes; /* workers take turns on them */
    unsigned grants;
    atomic_uint done;
    atomic_int inside;
    atomic_llong last_token;
};

/* What a broken node or a conflict gives: try again. */
static bool is_passing(int rc)
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
    atomic_fetch_sub(&contest->inside, 1);
    return 0;
}

static int contend(struct worker *worker)
{
    struct contest *contest = worker->context;
    sqlock_registry *registry = registry_at(1 + worker->index % contest->nodes);
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
        if (is_passing(rc))
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
    struct contest contest = {.nodes = NODES, .grants = check_scale(60, 2000)};
    struct workers workers;

    (void)state;
    workers_start(&workers, 2 * NODES, contend, &contest);
    workers_join(&workers);
    assert_true(contest.done >= contest.grants);
}

static void test_F64_a_killed_node_costs_no_lock(void **state)
{
    struct contest contest = {.nodes = NODES - 1,
                              .grants = check_scale(60, 2000)};
    struct workers workers;
    FILE *file;
    long pid = 0;

    (void)state;
    workers_start(&workers, 2 * (NODES - 1), contend, &contest);
    assert_becomes_true(contest.done >= 5, PATIENCE_MS);
    file = fopen(node(3, "PIDFILE"), "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    (void)fclose(file);
    assert_true(pid > 1);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
    workers_join(&workers);
    assert_true(contest.done >= contest.grants);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F63_row_locks_are_refused),
        cmocka_unit_test(test_F64_a_lease_holds_over_all_nodes),
        cmocka_unit_test(test_F64_a_killed_node_costs_no_lock),
    };

    if (database_url(mysql) == NULL) {
        print_message("skipped: no Galera here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, set_up, NULL) == 0 ? 0 : 1;
}
