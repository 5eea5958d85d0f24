/*
 * test_lines.c - what each line of an order is told: done, refused, or not
 * changed for another line's sake; by each strategy, and to a duplicate as the
 * first time
 */
#include "suite.h"

/* How an order is sent. */
static const struct way {
    const char *name;
    bool has_order;
    bool has_tx;
} ways[] = {
    {"alone", false, false},
    {"with an order", true, false},
    {"in a transaction", false, true},
    {"with an order in a transaction", true, true},
};

/* Run what follows by each `way` in turn, whose name is printed first. */
#define each_way for (const struct way *way = ways; is_way(way); way++)
static bool is_way(const struct way *way)
{
    bool is_one = way < ways + sizeof ways / sizeof *ways;

    if (is_one)
        print_message("%s\n", way->name);
    return is_one;
}

/* Deduct the lines, and return the result. */
static int deduct_by(struct fixture *f, sqlock_stock *stock,
                     const struct way *way, sqlock_stock_line *lines,
                     size_t count, sqlock_stock_answer *answer)
{
    const char *order =
        way->has_order ? shop_order(lines[0].item, way->name) : NULL;
    sqlock_tx *tx = NULL;
    int rc;

    if (way->has_tx)
        assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    rc = sqlock_stock_deduct_many(stock, tx, order, lines, count, answer,
                                  &f->err);
    if (tx != NULL) {
        sqlock_error err = {0};
        int committed = sqlock_tx_commit(tx, &err);

        assert_lock_ok(committed, &err);
    }
    return rc;
}

TEST(test_a_line_knows_what_is_left_without_an_answer)
{
    each_strategy
    {
        sqlock_stock *stock = shop_open(f, strategy);

        each_way
        {
            sqlock_stock_line line = {.item = shop_item(f, 10), .quantity = 1};
            int rc;

            rc = deduct_by(f, stock, way, &line, 1, NULL);
            assert_ok(rc);
            assert_int_equal(line.left, 9);
        }
        sqlock_stock_close(stock);
    }
}

/* Lines of an earlier call are sent again, with one that cannot be. */
TEST(test_lines_that_are_not_sent_keep_no_old_answer)
{
    sqlock_stock *stock = shop_open(f, SQLOCK_STOCK_CONDITIONAL);
    const char *item = shop_item(f, 10);
    static const struct {
        const char *item;
        int64_t quantity;
        int result;
    } wrong[] = {
        {"", 1, SQLOCK_EINVAL},
        {"none of it", 0, SQLOCK_EINVAL},
        {NULL, 1, SQLOCK_ECANCELED}, /* the item of the other line */
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
        sqlock_stock_line lines[2] = {{.item = item, .quantity = 1}};
        bool is_named = wrong[i].result == SQLOCK_EINVAL;

        assert_ok(sqlock_stock_deduct_many(stock, NULL, NULL, lines, 1, NULL,
                                           &f->err));
        assert_int_equal(lines[0].result, 0);
        lines[1].item = is_named ? wrong[i].item : item;
        lines[1].quantity = wrong[i].quantity;
        assert_fails(SQLOCK_EINVAL,
                     sqlock_stock_deduct_many(stock, NULL, NULL, lines, 2,
                                              &answer, &f->err));
        assert_int_equal(lines[0].result, SQLOCK_ECANCELED);
        assert_int_equal(lines[0].left, -1);
        assert_int_equal(lines[1].result, wrong[i].result);
        assert_int_equal(lines[1].left, -1);
        assert_int_equal(answer.line, is_named);
        assert_int_equal(answer.attempts, 0);
    }
    sqlock_stock_close(stock);
}
