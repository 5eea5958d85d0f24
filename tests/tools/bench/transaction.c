/*
 * transaction.c - the cases that change a row of an application's table in a
 * transaction, by sqlock's public interface alone
 *
 * These cases share one table and one registry with a connection for each
 * client, since servers do not have enough connections for every case.  Each
 * client has a row of its own, except in `cas`, where all clients change one
 * row.  An operation is one committed transaction.  Attempts that fail, because
 * of SQLite's one writer or a version that another client has changed, take
 * time, but are not counted.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlock.h"
#include "sqlock/tx.h"
#include "sqlock/value.h"

/* The leases of `guarded` are not renewed: they outlast any benchmark. */
#define TTL_MS (24u * 3600 * 1000)
#define WAIT_MS 10000
#define ATTEMPTS_MAX 1000000u /* the deadline alone ends a transaction */
#define SHARED_ROW 0          /* clients' own rows follow it */
#define TEXT_SIZE 160

struct tx_state {
    sqlock_registry *registry;
    char table[48];
    char update[TEXT_SIZE];
    unsigned clients;
    unsigned first;                        /* number of the first client */
    bool is_ours;                          /* this process made the table */
    unsigned users;                        /* cases that are set up */
    sqlock_lock *locks[BENCH_CLIENTS_MAX]; /* of `guarded` */
};

/* The arguments of one client's transaction. */
struct work {
    const struct tx_state *state;
    sqlock_lock *lock;
    int64_t row;
};

/* --- the table --- */

/* Execute a DDL statement.  MySQL commits it implicitly, for which sqlock
   returns EINVAL; this is ignored, since insert_rows() shows whether the table
   is there. */
static int run_ddl(struct tx_state *state, const char *text, sqlock_error *err)
{
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_begin(&tx, state->registry, err);
    if (rc != 0)
        return rc;
    rc = sqlock_tx_execute(tx, text, NULL, 0, NULL, err);
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc == SQLOCK_EINVAL ? 0 : rc;
}

static int insert_rows(struct tx_state *state, sqlock_error *err)
{
    char text[TEXT_SIZE];
    sqlock_tx *tx;
    unsigned i;
    int rc;

    (void)snprintf(text, sizeof text,
                   "INSERT INTO %s (id, amount, version) VALUES (?, 0, 1)",
                   state->table);
    rc = sqlock_tx_begin(&tx, state->registry, err);
    if (rc != 0)
        return rc;
    for (i = 0; i <= BENCH_CLIENTS_MAX + 1 && rc == 0; i++) {
        sqlock_value id = sqlock_integer(SHARED_ROW + (int64_t)i);

        rc = sqlock_tx_execute(tx, text, &id, 1, NULL, err);
    }
    if (rc == 0)
        return sqlock_tx_commit(tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc;
}

/* Name the table, for client processes as the benchmark has, which started
 * them. */
static void name_table(struct tx_state *state,
                       const struct bench_target *target)
{
    (void)snprintf(state->table, sizeof state->table, "bench_stock_%ld",
                   (long)(target->is_set_up ? getppid() : getpid()));
    (void)snprintf(state->update, sizeof state->update,
                   "UPDATE %s SET amount = amount + 1, version = version + 1 "
                   "WHERE id = ?",
                   state->table);
}

static int create_table(struct tx_state *state, struct bench_failure *failure)
{
    sqlock_error err = {0};
    char text[TEXT_SIZE];
    int rc;

    state->is_ours = true;
    (void)snprintf(text, sizeof text,
                   "CREATE TABLE %s (id INTEGER PRIMARY KEY, "
                   "amount BIGINT NOT NULL, version BIGINT NOT NULL)",
                   state->table);
    rc = run_ddl(state, text, &err);
    if (rc == 0)
        rc = insert_rows(state, &err);
    return rc == 0 ? 0 : bench_fail_call(failure, state->table, rc, &err);
}

static void drop_table(struct tx_state *state)
{
    sqlock_error err = {0};
    char text[TEXT_SIZE];
    int rc;

    (void)snprintf(text, sizeof text, "DROP TABLE IF EXISTS %s", state->table);
    rc = run_ddl(state, text, &err);
    if (rc != 0)
        (void)fprintf(stderr, "bench: %s: %s\n", text, err.message);
}

/* --- setup and teardown --- */

static int set_up(struct tx_state *state, const struct bench_target *target,
                  struct bench_failure *failure)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc;

    /* A client has a new thread in each slice, but keeps its lease. */
    options.ownership = SQLOCK_OWNED_BY_REGISTRY;
    options.table_prefix = target->lock_prefix;
    options.pool_size = bench_pool_size(target);
    options.ttl_ms = TTL_MS;
    rc = sqlock_registry_open(&state->registry, target->url, &options, &err);
    if (rc != 0)
        return bench_fail_call(failure, "sqlock_registry_open", rc, &err);
    state->clients = target->clients;
    state->first = target->first;
    name_table(state, target);
    return target->is_set_up ? 0 : create_table(state, failure);
}

static int take_locks(struct tx_state *state, struct bench_failure *failure)
{
    sqlock_error err = {0};
    char name[64];
    unsigned i;
    int rc;

    for (i = 0; i < state->clients; i++) {
        (void)snprintf(name, sizeof name, "bench guard %u", state->first + i);
        rc = sqlock_obtain(&state->locks[i], state->registry, name, &err);
        if (rc == 0)
            rc = sqlock_acquire(state->locks[i], WAIT_MS, NULL, &err);
        if (rc != 0)
            return bench_fail_call(failure, name, rc, &err);
    }
    return 0;
}

int tx_setup(void **out, const struct bench_target *target,
             struct bench_failure *failure)
{
    static struct tx_state shared;

    *out = &shared;
    shared.users++;
    return shared.users == 1 ? set_up(&shared, target, failure) : 0;
}

int tx_guarded_setup(void **out, const struct bench_target *target,
                     struct bench_failure *failure)
{
    int rc = tx_setup(out, target, failure);

    return rc == 0 ? take_locks(*out, failure) : rc;
}

/* The locks are released when the registry is closed. */
void tx_teardown(void *opaque)
{
    struct tx_state *state = opaque;

    state->users--;
    if (state->users > 0)
        return;
    if (state->is_ours)
        drop_table(state);
    (void)sqlock_registry_close(state->registry, NULL);
    memset(state, 0, sizeof *state);
}

/* --- the transactions, each a sqlock_tx_fn --- */

static int change(const struct work *work, sqlock_tx *tx, sqlock_error *err)
{
    sqlock_value id = sqlock_integer(work->row);
    sqlock_result result = {0};
    int rc;

    rc = sqlock_tx_execute(tx, work->state->update, &id, 1, &result, err);
    if (rc == 0 && result.affected != 1)
        rc = SQLOCK_ENOTFOUND;
    sqlock_result_clear(&result);
    return rc;
}

static int unguarded(void *context, sqlock_tx *tx, sqlock_error *err)
{
    return change(context, tx, err);
}

static int guarded(void *context, sqlock_tx *tx, sqlock_error *err)
{
    const struct work *work = context;
    int rc;

    rc = sqlock_tx_guard(tx, work->lock, err);
    return rc == 0 ? change(work, tx, err) : rc;
}

/* --- the operations --- */

static int commit_one(struct tx_state *state, unsigned client, int64_t row,
                      sqlock_tx_fn fn, struct bench_failure *failure)
{
    struct work work = {state, state->locks[client], row};
    sqlock_retry_options options = SQLOCK_RETRY_INIT;
    sqlock_error err = {0};
    int rc;

    options.attempts = ATTEMPTS_MAX;
    rc = sqlock_tx_retry(state->registry, fn, &work, &options, &err);
    return rc == 0 ? 0 : bench_fail_call(failure, "sqlock_tx_retry", rc, &err);
}

static int64_t row_of(const struct tx_state *state, unsigned client)
{
    return SHARED_ROW + 1 + (int64_t)(state->first + client);
}

int tx_unguarded(void *state, unsigned client, struct bench_failure *failure)
{
    return commit_one(state, client, row_of(state, client), unguarded, failure);
}

int tx_guarded(void *state, unsigned client, struct bench_failure *failure)
{
    return commit_one(state, client, row_of(state, client), guarded, failure);
}
