/*
 * transfer.c - money from one account to another, in three styles
 *
 *     transfer URL lock|version|guard FROM TO AMOUNT
 *     transfer URL create ACCOUNTS AMOUNT
 *
 * lock     both rows FOR UPDATE, in one order, then written
 * version  read without a lock; written only where the version is still the one
 *          that was read; again from the start where it is not
 * guard    a lease says who may transfer, whatever it reads and writes; the
 *          database checks it within the transaction
 *
 * Exit status: 0 done, 1 failed, 3 not enough money, 2 wrong use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock.h"
#include "sqlock/tx.h"
#include "sqlock/value.h"

enum { EXIT_USAGE = 2, EXIT_MONEY = 3, NO_MONEY = 1 };

struct transfer {
    int64_t from, to, amount;
    sqlock_lock *lock; /* of style guard */
};

static sqlock_table accounts(void)
{
    sqlock_table table = SQLOCK_TABLE_INIT;

    table.name = "transfer_account";
    table.key_column = "id";
    table.version_column = "version";
    return table;
}

/* What is in an account.  0, or what sqlock gave. */
static int read_balance(sqlock_tx *tx, int64_t id, int64_t *out,
                        sqlock_error *err)
{
    sqlock_value key = sqlock_integer(id);
    sqlock_result result = {0};
    int rc;

    rc = sqlock_tx_execute(tx,
                           "SELECT balance FROM transfer_account WHERE id = ?",
                           &key, 1, &result, err);
    if (rc == 0 && result.rows == 1)
        *out = result.cells[0].integer;
    else if (rc == 0)
        rc = SQLOCK_ENOTFOUND;
    sqlock_result_clear(&result);
    return rc;
}

/* Add to an account whatever is in it. */
static int add(sqlock_tx *tx, int64_t id, int64_t amount, sqlock_error *err)
{
    const sqlock_value values[] = {sqlock_integer(amount), sqlock_integer(id)};

    return sqlock_tx_execute(tx,
                             "UPDATE transfer_account SET balance = balance + "
                             "?, version = version + 1 WHERE id = ?",
                             values, 2, NULL, err);
}

static int move(sqlock_tx *tx, const struct transfer *transfer,
                sqlock_error *err)
{
    int64_t balance = 0;
    int rc;

    rc = read_balance(tx, transfer->from, &balance, err);
    if (rc == 0 && balance < transfer->amount)
        return NO_MONEY;
    if (rc == 0)
        rc = add(tx, transfer->from, -transfer->amount, err);
    if (rc == 0)
        rc = add(tx, transfer->to, transfer->amount, err);
    return rc;
}

/* --- the three styles, each a sqlock_tx_fn --- */

static int with_row_locks(void *context, sqlock_tx *tx,
                          const sqlock_attempt *attempt, sqlock_error *err)
{
    const struct transfer *transfer = context;
    sqlock_table table = accounts();
    bool up = transfer->from < transfer->to;
    sqlock_value first = sqlock_integer(up ? transfer->from : transfer->to);
    sqlock_value second = sqlock_integer(up ? transfer->to : transfer->from);
    int rc;

    (void)attempt;
    /* In one order, so that two transfers never wait for each other. */
    rc = sqlock_tx_lock_row(tx, &table, &first, false, 5000, err);
    if (rc == 0)
        rc = sqlock_tx_lock_row(tx, &table, &second, false, 5000, err);
    return rc < 0 ? rc : move(tx, transfer, err);
}

static int change_version(sqlock_tx *tx, int64_t id, int64_t amount,
                          sqlock_error *err)
{
    sqlock_table table = accounts();
    sqlock_value key = sqlock_integer(id);
    sqlock_assignment set = {.column = "balance"};
    sqlock_row_version seen;
    int64_t balance = 0;
    int rc;

    /* The version first: what is read after it is at least as new. */
    rc = sqlock_tx_version(tx, &table, &key, &seen, err);
    if (rc == 0)
        rc = read_balance(tx, id, &balance, err);
    if (rc < 0)
        return rc;
    if (balance + amount < 0)
        return NO_MONEY;
    set.value = sqlock_integer(balance + amount);
    return sqlock_tx_update(tx, &table, &key, &seen, &set, 1, NULL, err);
}

static int with_versions(void *context, sqlock_tx *tx,
                         const sqlock_attempt *attempt, sqlock_error *err)
{
    const struct transfer *transfer = context;
    bool up = transfer->from < transfer->to;
    int rc;

    (void)attempt;
    rc = change_version(tx, up ? transfer->from : transfer->to,
                        up ? -transfer->amount : transfer->amount, err);
    if (rc == 0)
        rc = change_version(tx, up ? transfer->to : transfer->from,
                            up ? transfer->amount : -transfer->amount, err);
    return rc;
}

static int with_guard(void *context, sqlock_tx *tx,
                      const sqlock_attempt *attempt, sqlock_error *err)
{
    const struct transfer *transfer = context;
    int rc;

    (void)attempt;
    rc = sqlock_tx_guard(tx, transfer->lock, err);
    return rc < 0 ? rc : move(tx, transfer, err);
}

/* --- running them --- */

static int complain(const sqlock_error *err)
{
    (void)fprintf(stderr, "transfer: %s\n", err->message);
    return EXIT_FAILURE;
}

static int run(sqlock_registry *registry, sqlock_tx_fn style,
               struct transfer *transfer)
{
    sqlock_error err = {0};
    int rc = sqlock_tx_retry(registry, style, transfer, NULL, NULL, &err);

    if (rc == NO_MONEY) {
        (void)fprintf(stderr, "transfer: not enough money\n");
        return EXIT_MONEY;
    }
    return rc == 0 ? EXIT_SUCCESS : complain(&err);
}

static int run_guarded(sqlock_registry *registry, struct transfer *transfer)
{
    sqlock_error err = {0};
    int status = EXIT_FAILURE;
    int rc;

    rc = sqlock_obtain(&transfer->lock, registry, "transfers", &err);
    if (rc == 0)
        rc = sqlock_acquire(transfer->lock, 30000, NULL, &err);
    if (rc < 0) {
        (void)complain(&err);
    } else {
        status = run(registry, with_guard, transfer);
        rc = sqlock_release(transfer->lock, &err);
        if (rc < 0)
            (void)complain(&err); /* the money has been moved all the same */
    }
    (void)sqlock_drop(transfer->lock, NULL);
    return status;
}

static int create(void *context, sqlock_tx *tx, const sqlock_attempt *attempt,
                  sqlock_error *err)
{
    const struct transfer *wanted = context;
    int rc;

    (void)attempt;
    rc = sqlock_tx_execute(tx, "DELETE FROM transfer_account", NULL, 0, NULL,
                           err);
    for (int64_t id = 1; rc == 0 && id <= wanted->to; id++) {
        const sqlock_value values[] = {sqlock_integer(id),
                                       sqlock_integer(wanted->amount)};

        rc = sqlock_tx_execute(tx,
                               "INSERT INTO transfer_account "
                               "(id, balance, version) VALUES (?, ?, 1)",
                               values, 2, NULL, err);
    }
    return rc;
}

static int make_table(sqlock_registry *registry)
{
    sqlock_error err = {0};
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_begin(&tx, registry, &err);
    if (rc < 0)
        return complain(&err);
    rc = sqlock_tx_execute(tx,
                           "CREATE TABLE IF NOT EXISTS transfer_account "
                           "(id INTEGER PRIMARY KEY, balance BIGINT NOT NULL, "
                           "version BIGINT NOT NULL)",
                           NULL, 0, NULL, &err);
    if (rc == SQLOCK_EINVAL) { /* MySQL commits here, by itself */
        (void)sqlock_tx_rollback(tx, NULL);
        return EXIT_SUCCESS;
    }
    if (rc == 0)
        rc = sqlock_tx_commit(tx, &err);
    else
        (void)sqlock_tx_rollback(tx, NULL);
    return rc == 0 ? EXIT_SUCCESS : complain(&err);
}

static int choose(sqlock_registry *registry, const char *style,
                  struct transfer *transfer)
{
    if (strcmp(style, "create") == 0)
        return make_table(registry) == EXIT_SUCCESS
                   ? run(registry, create, transfer)
                   : EXIT_FAILURE;
    if (strcmp(style, "lock") == 0)
        return run(registry, with_row_locks, transfer);
    if (strcmp(style, "version") == 0)
        return run(registry, with_versions, transfer);
    if (strcmp(style, "guard") == 0)
        return run_guarded(registry, transfer);
    return EXIT_USAGE;
}

/* A whole number above zero, or -1. */
static int64_t number(const char *text)
{
    int64_t value = 0;

    for (; *text >= '0' && *text <= '9' && value < 1000000000; text++)
        value = value * 10 + (*text - '0');
    return *text != '\0' || value == 0 ? -1 : value;
}

int main(int argc, char **argv)
{
    bool creates = argc == 5 && strcmp(argv[2], "create") == 0;
    struct transfer transfer = {0};
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int status;
    int rc;

    if (argc != 6 && !creates)
        return EXIT_USAGE;
    transfer.from = number(argv[3]);
    transfer.to = creates ? transfer.from : number(argv[4]);
    transfer.amount = number(argv[argc - 1]);
    if (transfer.from < 0 || transfer.to < 0 || transfer.amount < 0 ||
        (!creates && transfer.from == transfer.to))
        return EXIT_USAGE;
    rc = sqlock_schema_create(argv[1], NULL, SQLOCK_LAYOUT_SQLOCK, &err);
    if (rc == 0)
        rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc < 0 || registry == NULL)
        return complain(&err);
    status = choose(registry, argv[2], &transfer);
    (void)sqlock_registry_close(registry, NULL);
    return status;
}
