/*
 * compare_and_set.c - change a row only if nobody has changed it since it was
 * read, without a lock
 *
 *     compare_and_set URL ACCOUNT AMOUNT
 *
 * Adds AMOUNT, which may be negative, to a row of
 *
 *     CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL,
 *                           version BIGINT NOT NULL);
 *
 * Exit status: 0 done, 3 not enough money, 1 failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/tx.h"

enum { EXIT_MONEY = 3, NO_MONEY = 1 };

struct change {
    int64_t account, amount;
    unsigned tries;
};

static int read_balance(sqlock_tx *tx, int64_t account, int64_t *balance,
                        sqlock_error *err)
{
    sqlock_value id = sqlock_integer(account);
    sqlock_result result = {0};
    int rc;

    rc = sqlock_tx_execute(tx, "SELECT balance FROM account WHERE id = ?", &id,
                           1, &result, err);
    if (rc == 0 && result.rows == 1)
        *balance = result.cells[0].integer;
    else if (rc == 0)
        rc = SQLOCK_ENOTFOUND;
    sqlock_result_clear(&result);
    return rc;
}

/* One attempt; sqlock_tx_retry() begins another when the row had changed. */
static int try_change(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct change *change = context;
    sqlock_value id = sqlock_integer(change->account);
    sqlock_table table = SQLOCK_TABLE_INIT;
    sqlock_assignment set = {.column = "balance"};
    sqlock_row_version seen;
    int64_t balance = 0;
    int rc;

    change->tries++;
    table.name = "account";
    table.key_column = "id";
    table.version_column = "version";
    /* Read the version first: the balance is then at least as new. */
    rc = sqlock_tx_version(tx, &table, &id, &seen, err);
    if (rc == 0)
        rc = read_balance(tx, change->account, &balance, err);
    if (rc < 0)
        return rc;
    if (balance + change->amount < 0)
        return NO_MONEY; /* sqlock_tx_retry() rolls back, and returns it */
    set.value = sqlock_integer(balance + change->amount);
    return sqlock_tx_update(tx, &table, &id, &seen, &set, 1, NULL, err);
}

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    struct change change = {0};
    sqlock_error err = {0};
    int rc;

    if (argc != 4) {
        (void)fprintf(stderr, "usage: compare_and_set URL ACCOUNT AMOUNT\n");
        return 2;
    }
    change.account = strtoll(argv[2], NULL, 10);
    change.amount = strtoll(argv[3], NULL, 10);
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = sqlock_tx_retry(registry, try_change, &change, NULL, &err);
    (void)sqlock_registry_close(registry, NULL);
    if (rc == NO_MONEY)
        return EXIT_MONEY;
    if (rc < 0)
        (void)fprintf(stderr, "compare_and_set: %s\n", err.message);
    else
        (void)printf("done, tries: %u\n", change.tries);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
