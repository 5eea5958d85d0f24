/*
 * stock.c - sell what is in stock, never more, and each order once
 *
 *     stock URL ITEM QUANTITY ORDER
 *
 * Run again with the same ORDER, after a crash or a lost answer, it deducts
 * nothing and gives the first answer again.  `sqlock stock init` makes the
 * tables, `sqlock stock set shoe 100` fills them.  Exit status: 0 sold, 3 not
 * enough in stock, 1 failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/stock.h"

enum { EXIT_OUT = 3 };

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    sqlock_stock *stock = NULL;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};
    int rc;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: stock URL ITEM QUANTITY ORDER\n");
        return 2;
    }
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = sqlock_stock_open(&stock, registry, NULL, &err);
    if (rc == 0)
        rc = sqlock_stock_deduct(stock, NULL, argv[4], argv[2],
                                 strtoll(argv[3], NULL, 10), &answer, &err);
    if (rc == 0)
        (void)printf("%s, %lld left\n",
                     answer.is_duplicate ? "sold before" : "sold",
                     (long long)answer.left);
    else if (rc == SQLOCK_EINSUFFICIENT)
        (void)printf("only %lld there\n", (long long)answer.left);
    else
        (void)fprintf(stderr, "stock: %s\n", err.message);
    sqlock_stock_close(stock);
    (void)sqlock_registry_close(registry, NULL);
    if (rc == SQLOCK_EINSUFFICIENT)
        return EXIT_OUT;
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
