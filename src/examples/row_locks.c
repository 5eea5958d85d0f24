/*
 * row_locks.c - change two rows that are locked FOR UPDATE
 *
 *     row_locks URL FROM TO AMOUNT
 *
 * Moves money between two rows of the table account, which compare_and_set.c
 * describes.  Exit status: 0 done, 3 not enough money, 1 failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/tx.h"

enum { EXIT_MONEY = 3, NO_MONEY = 1, WAIT_MS = 5000 };

struct transfer {
    int64_t from, to, amount;
};

static int lock_account(sqlock_tx *tx, int64_t account, sqlock_error *err)
{
    sqlock_value id = sqlock_integer(account);
    sqlock_table table = SQLOCK_TABLE_INIT;

    table.name = "account";
    table.key_column = "id";
    return sqlock_tx_lock_row(tx, &table, &id, false, WAIT_MS, err);
}

/* Add to an account, unless its balance would fall below 0. */
static int add(sqlock_tx *tx, int64_t account, int64_t amount,
               sqlock_error *err)
{
    const sqlock_value values[] = {sqlock_integer(amount),
                                   sqlock_integer(account),
                                   sqlock_integer(-amount)};
    sqlock_result result = {0};
    int rc;

    rc = sqlock_tx_execute(tx,
                           "UPDATE account SET balance = balance + ?, "
                           "version = version + 1 "
                           "WHERE id = ? AND balance >= ?",
                           values, 3, &result, err);
    if (rc == 0 && result.affected != 1)
        rc = NO_MONEY;
    sqlock_result_clear(&result);
    return rc;
}

static int move(void *context, sqlock_tx *tx, sqlock_error *err)
{
    const struct transfer *transfer = context;
    bool is_up = transfer->from < transfer->to;
    int rc;

    /* Lock the rows by id: two transfers then never wait for each other. */
    rc = lock_account(tx, is_up ? transfer->from : transfer->to, err);
    if (rc == 0)
        rc = lock_account(tx, is_up ? transfer->to : transfer->from, err);
    if (rc == 0)
        rc = add(tx, transfer->from, -transfer->amount, err);
    if (rc == 0)
        rc = add(tx, transfer->to, transfer->amount, err);
    return rc;
}

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    struct transfer transfer;
    sqlock_error err = {0};
    int rc;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: row_locks URL FROM TO AMOUNT\n");
        return 2;
    }
    transfer.from = strtoll(argv[2], NULL, 10);
    transfer.to = strtoll(argv[3], NULL, 10);
    transfer.amount = strtoll(argv[4], NULL, 10);
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = sqlock_tx_retry(registry, move, &transfer, NULL, &err);
    (void)sqlock_registry_close(registry, NULL);
    if (rc == NO_MONEY)
        return EXIT_MONEY;
    if (rc < 0)
        (void)fprintf(stderr, "row_locks: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
