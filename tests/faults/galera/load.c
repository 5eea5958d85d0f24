/*
 * load.c - see galera.h
 *
 * A history has room for some hundreds of leases, so the load goes on to a new
 * lock after GRANTS_PER_LOCK of them.  Each lock has a row in ga_counter, which
 * remembers the lock's greatest token and gives the writes their numbers.
 */
#include "galera.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sqlock/lease.h"
#include "support/history.h"

#define GRANTS_PER_LOCK 200
#define LOCKS_MAX 400
#define THINK_MS 100

struct grant {
    unsigned lock;
    int64_t number; /* of the write */
    int64_t token;
    enum fate fate;
};

static struct {
    struct workers workers;
    atomic_bool over;
    atomic_uint grants;
    struct history *histories[LOCKS_MAX];
    struct grant list[LOCKS_MAX * (GRANTS_PER_LOCK + LOADERS)];
} load;

static const struct database *const mysql = &databases[1];

/* Return whether the loader goes on after rc.  It also does after the codes for
 * a holder whose lease ran out meanwhile. */
static bool is_passing(int rc)
{
    return node_is_passing(rc) || rc == SQLOCK_EEXPIRED || rc == SQLOCK_ELOST ||
           rc == SQLOCK_ECONFLICT || rc == SQLOCK_ERESOURCE;
}

/* --- one write --- */

static int count_up(sqlock_tx *tx, struct grant *grant, sqlock_error *err)
{
    const sqlock_value lock = sqlock_integer(grant->lock);
    const sqlock_value values[] = {sqlock_integer(grant->token), lock};
    sqlock_result result = {0};
    int rc =
        sqlock_tx_execute(tx, "UPDATE ga_counter SET n = n + 1 WHERE id = ?",
                          &lock, 1, NULL, err);

    if (rc == 0)
        rc = sqlock_tx_execute(tx,
                               "INSERT INTO ga_written (id, number, token)"
                               " SELECT id, n, ? FROM ga_counter WHERE id = ?",
                               values, 2, NULL, err);
    if (rc == 0)
        rc = sqlock_tx_execute(tx, "SELECT n FROM ga_counter WHERE id = ?",
                               &lock, 1, &result, err);
    if (rc == 0)
        grant->number = result.cells[0].integer;
    sqlock_result_clear(&result);
    return rc;
}

static int write_fenced(sqlock_registry *registry, sqlock_lock *lock,
                        struct grant *grant, sqlock_error *err)
{
    const sqlock_table table = {.size = sizeof table,
                                .name = "ga_counter",
                                .key_column = "id",
                                .fence_column = "fence",
                                .fence_owner_column = "fence_owner"};
    const sqlock_value key = sqlock_integer(grant->lock);
    char owner[SQLOCK_KEY_SIZE];
    sqlock_tx *tx = NULL;
    int rc = sqlock_tx_begin(&tx, registry, err);

    if (rc < 0)
        return rc;
    sqlock_client_id(lock, owner);
    rc = sqlock_tx_fence(tx, &table, &key, grant->token, owner, err);
    if (rc == 0)
        rc = count_up(tx, grant, err);
    return cluster_end_write(tx, rc, &grant->fate, err);
}

/* --- the load --- */

static int hold(struct worker *worker, sqlock_registry *registry,
                sqlock_lock *lock, unsigned number, int64_t asked_ns)
{
    struct history *history = load.histories[number];
    struct grant *grant = &load.list[atomic_fetch_add(&load.grants, 1)];
    int rc;

    grant->lock = number;
    grant->token = sqlock_token(lock);
    history_granted(history, (int)worker->index, asked_ns,
                    lk_boottime_ns() + sqlock_remaining_ms(lock) * LK_NS_PER_MS,
                    grant->token);
    rc = write_fenced(registry, lock, grant, &worker->err);
    history_ended(history, (int)worker->index);
    return rc;
}

static int take_once(struct worker *worker, sqlock_registry *registry)
{
    unsigned number = atomic_load(&load.grants) / GRANTS_PER_LOCK;
    int64_t asked_ns = lk_boottime_ns();
    sqlock_lock *lock;
    char name[32];
    int rc;

    if (number >= LOCKS_MAX)
        return worker_fail(worker, "there is no room for more grants");
    (void)snprintf(name, sizeof name, "load-%u", number);
    worker_expect(worker, 0,
                  sqlock_obtain(&lock, registry, name, &worker->err));
    rc = sqlock_acquire(lock, 1000, NULL, &worker->err);
    if (rc == 0) {
        int released;

        rc = hold(worker, registry, lock, number, asked_ns);
        released = sqlock_release(lock, rc == 0 ? &worker->err : NULL);
        rc = rc == 0 ? released : rc;
    }
    worker_expect(worker, 0, sqlock_drop(lock, NULL));
    return rc;
}

static int body(struct worker *worker)
{
    sqlock_registry *registry = node_registry(1 + worker->index % NODES);
    int rc = 0;

    while (rc == 0 && !atomic_load(&load.over)) {
        int64_t rested = check_deadline_ns(THINK_MS);

        rc = take_once(worker, registry);
        if (rc < 0 && !is_passing(rc) && worker->report[0] == '\0')
            (void)worker_fail(worker, "%d: %s", rc, worker->err.message);
        if (is_passing(rc))
            rc = 0;
        while (check_pause(rested) && !atomic_load(&load.over))
            continue;
    }
    (void)sqlock_registry_close(registry, NULL); /* its node may be gone */
    return rc;
}

void load_start(void)
{
    struct sql sql;

    assert_lock_ok(sql_open(&sql, mysql, node_variable(1, "URL")), &sql.err);
    (void)sql_run(&sql, "CREATE TABLE ga_counter (id INT PRIMARY KEY,"
                        " n BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0,"
                        " fence_owner VARCHAR(255))");
    (void)sql_run(&sql, "CREATE TABLE ga_written (id INT NOT NULL,"
                        " number BIGINT NOT NULL, token BIGINT NOT NULL,"
                        " PRIMARY KEY (id, number))");
    for (unsigned i = 0; i < LOCKS_MAX; i++) {
        (void)sql_run(&sql, "INSERT INTO ga_counter (id, n) VALUES (%u, 0)", i);
        load.histories[i] = calloc(1, sizeof *load.histories[i]);
        assert_non_null(load.histories[i]);
        history_init(load.histories[i]);
    }
    sql_close(&sql);
    for (unsigned i = 1; i <= NODES; i++)
        node_await(i, NODES);
    workers_start(&load.workers, LOADERS, body, NULL);
}

unsigned load_grants(void)
{
    return atomic_load(&load.grants);
}

void load_print(void)
{
    for (unsigned i = 0; i < LOADERS; i++)
        print_message("at node %u: %s\n", 1 + i % NODES,
                      load.workers.one[i].err.message);
}

/* --- the judgement --- */

static int64_t count_there(struct sql *sql, const struct grant *grant)
{
    return sql_integer(sql,
                       "SELECT COUNT(*) FROM ga_written WHERE id = %u AND"
                       " number = %lld AND token = %lld",
                       grant->lock, (long long)grant->number,
                       (long long)grant->token);
}

/* Check on one node that no acknowledged write is missing, that no refused one
 * is there, and that the tokens of each lock rise with its writes' numbers. */
static void judge_node(unsigned node)
{
    unsigned totals[3] = {0};
    int64_t carried = 0;
    int64_t lost = 0;
    struct sql sql;

    assert_lock_ok(sql_open(&sql, mysql, node_variable(node, "URL")), &sql.err);
    (void)sql_run(&sql, "SET SESSION wsrep_sync_wait = 1");
    for (unsigned i = 0; i < load_grants(); i++) {
        const struct grant *grant = &load.list[i];

        totals[grant->fate]++;
        if (grant->fate == ACKNOWLEDGED)
            lost += count_there(&sql, grant) == 0;
        else if (grant->fate == UNKNOWN)
            carried += count_there(&sql, grant);
    }
    print_message("node %u: %u writes acknowledged, %lld of them lost; %u"
                  " commits without an answer, %lld of them carried out; %u"
                  " writes refused\n",
                  node, totals[ACKNOWLEDGED], (long long)lost, totals[UNKNOWN],
                  (long long)carried, totals[UNWRITTEN]);
    assert_int_equal(lost, 0);
    assert_int_equal(sql_integer(&sql, "SELECT COUNT(*) FROM ga_written"),
                     totals[ACKNOWLEDGED] + carried);
    assert_int_equal(sql_integer(&sql, "SELECT SUM(n) FROM ga_counter"),
                     totals[ACKNOWLEDGED] + carried);
    assert_int_equal(
        sql_integer(&sql, "SELECT COUNT(*) FROM (SELECT token, LAG(token) OVER"
                          " (PARTITION BY id ORDER BY number) AS last FROM"
                          " ga_written) AS w WHERE token <= last"),
        0);
    sql_close(&sql);
}

void load_end(void)
{
    atomic_store(&load.over, true);
    workers_join(&load.workers);
    for (unsigned i = 0; i < LOCKS_MAX; i++)
        history_check(load.histories[i]);
    for (unsigned i = 1; i <= NODES; i++)
        judge_node(i);
    for (unsigned i = 0; i < LOCKS_MAX; i++) {
        history_clear(load.histories[i]);
        free(load.histories[i]);
    }
}
