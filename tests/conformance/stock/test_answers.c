/*
 * test_answers.c - the answers of each strategy: done, with the quantity that
 * is left; insufficient, with the quantity that is there; no such item
 */
#include "suite.h"

#include <stddef.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

TEST(test_all_items_are_listed)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    sqlock_stock_item *items = NULL;
    const char *names[] = {shop_item(f, 7), shop_item(f, 0)};
    size_t count = 0;
    int found = 0;

    assert_ok(sqlock_stock_list(stock, &items, &count, &f->err));
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(items[i - 1].name, items[i].name) < 0);
        for (int k = 0; k < 2; k++)
            if (strcmp(items[i].name, names[k]) == 0) {
                assert_int_equal(items[i].quantity, k == 0 ? 7 : 0);
                found++;
            }
    }
    assert_int_equal(found, 2);
    sqlock_free(items);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_list(stock, NULL, &count, &f->err));
    sqlock_stock_close(stock);
}

/* --- many at once --- */

#define SELLERS 16

struct market {
    sqlock_stock *stocks[2]; /* of different registries */
    const char *item;
};

/* A program that was built when the structs had fewer members: nothing is
 * written behind those that it has. */
TEST(test_structs_are_as_large_as_the_callers_header_has_them)
{
    struct old_line {
        const char *item;
        int64_t quantity;
        int result;
    };
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *const items[] = {shop_item(f, 5), shop_item(f, 1)};
    struct old_line lines[] = {{items[0], 1, -1}, {items[1], 2, -1}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;
    sqlock_stock_line *given = (void *)lines;

    answer.size = offsetof(sqlock_stock_answer, is_duplicate);
    answer.attempts = 4711;
    assert_fails(SQLOCK_EINSUFFICIENT,
                 sqlock_stock_change_sized(
                     stock, NULL, SQLOCK_STOCK_DEDUCT, NULL, given, 2, 0,
                     &answer, offsetof(sqlock_stock_line, left), &f->err));
    assert_int_equal(lines[0].result, SQLOCK_ECANCELED);
    assert_int_equal(lines[1].result, SQLOCK_EINSUFFICIENT);
    assert_string_equal(lines[1].item, items[1]);
    assert_int_equal(answer.left, 1);
    assert_int_equal(answer.line, 1);
    assert_int_equal(answer.attempts, 4711);
    stats.size = offsetof(sqlock_stock_stats, retries);
    stats.retries = 4711;
    assert_ok(sqlock_stock_statistics(stock, &stats, &f->err));
    assert_int_equal(stats.operations, 1);
    assert_int_equal(stats.retries, 4711);
    reaped.size = offsetof(sqlock_stock_reaped, reservations);
    reaped.reservations = 4711;
    assert_ok(sqlock_stock_reap(stock, NULL, &reaped, &f->err));
    assert_int_equal(reaped.reservations, 4711);
    sqlock_stock_close(stock);
}

TEST(test_a_struct_without_its_size_is_refused)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 5);
    sqlock_stock_line line = {.item = item, .quantity = 1};
    sqlock_stock_answer answer = {0};
    sqlock_stock_stats stats = {.size = sizeof stats + 1};
    sqlock_stock_reaped reaped = {0};

    assert_fails(SQLOCK_EINVAL, sqlock_stock_deduct(stock, NULL, NULL, item, 1,
                                                    &answer, &f->err));
    assert_contains(f->err.message, "SQLOCK_STOCK_ANSWER_INIT");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_claim(stock, NULL, "no/order", &answer, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_deduct_many(stock, NULL, NULL, &line, 1, &answer,
                                          &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_change_sized(stock, NULL, SQLOCK_STOCK_DEDUCT,
                                           NULL, &line, 1, 0, NULL,
                                           sizeof line + 1, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_stock_change_sized(
                                    stock, NULL, (sqlock_stock_change)3, NULL,
                                    &line, 1, 0, NULL, sizeof line, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_statistics(stock, &stats, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_stock_statistics(stock, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_reap(stock, NULL, &reaped, &f->err));
    assert_int_equal(shop_there(f, item), 5);
    sqlock_stock_close(stock);
}

/* No header has such a row: the item's address would be read by half, or the
 * result be written behind the row. */
TEST(test_a_row_that_ends_within_a_member_is_refused)
{
    static const size_t sizes[] = {0, 1, 3, 8, 9, 12, 16, 20, 25, 31};
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 5);
    sqlock_stock_line lines[] = {{.item = item, .quantity = 1},
                                 {.item = item, .quantity = 1}};
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_item *items;
    size_t i, count;

    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_fails(SQLOCK_EINVAL, sqlock_stock_change_sized(
                                        stock, NULL, SQLOCK_STOCK_DEDUCT, NULL,
                                        lines, 2, 0, NULL, sizes[i], &f->err));
    assert_string_equal(f->err.message,
                        "the size of sqlock_stock_line is 31, but 32 here: "
                        "give its sizeof, and do not use a library that is "
                        "older than the header");
    assert_fails(SQLOCK_EINVAL,
                 sqlock_stock_list_sized(stock, &items, &count, 9, &f->err));
    answer.size = offsetof(sqlock_stock_answer, left) + 1;
    assert_fails(SQLOCK_EINVAL, sqlock_stock_deduct(stock, NULL, NULL, item, 1,
                                                    &answer, &f->err));
    assert_int_equal(shop_there(f, item), 5);
    sqlock_stock_close(stock);
}
