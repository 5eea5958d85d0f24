/*
 * test_combine.c - the answers of a round of combined requests, from what the
 * strategy says of the sum
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "db/statement.h"
#include "stock/combine.h"

#define MOST 3

/* The answers of deduct(), one after the other, and what it was asked last. */
static struct {
    int answers[4];
    int64_t left;
    size_t times;
    int64_t quantity, deadline_ns; /* of the last */
    bool wants_left;
    char entries[400]; /* "": none */
} table;

static int deduct(struct lk_stock_operation *op, struct lk_stock_line *line,
                  const char *entries, int64_t *left, sqlock_error *err)
{
    int rc;

    assert_true(table.times < 4);
    rc = table.answers[table.times++];
    table.quantity = line->quantity;
    table.deadline_ns = op->deadline_ns;
    table.wants_left = op->wants_left;
    (void)snprintf(table.entries, sizeof table.entries, "%s",
                   entries != NULL ? entries : "");
    *left = table.left;
    return rc < 0 ? lk_error(err, rc, "statement %zu", table.times) : rc;
}

/* A round of requests for one item. */
struct round {
    sqlock_stock stock;
    struct lk_statement statements[SQLOCK_STOCK_KINDS];
    struct lk_stock_operation ops[MOST];
    struct lk_stock_line lines[MOST];
    struct lk_combined_request requests[MOST];
    struct lk_combined_request *places[MOST];
    struct lk_combine combine;
};

static const struct lk_stock_rows rows = {
    .deduct = deduct,
    .combines = SQLOCK_STOCK_SQL_RECORD, /* stands for any */
    .always_tells = true,
};
static const struct lk_stock_strategy strategy = {.rows = &rows};

/* Begin a round.  The lines have results of another attempt. */
static void begin(struct round *round, size_t count)
{
    static char text[] = "INSERT";

    memset(&table, 0, sizeof table);
    memset(round, 0, sizeof *round);
    round->stock.strategy = &strategy;
    round->stock.tables.statements = round->statements;
    round->statements[rows.combines].text = text;
    for (size_t i = 0; i < count; i++) {
        round->lines[i] = (struct lk_stock_line){
            .name = "item", .quantity = 2, .left = 99, .result = 99};
        round->ops[i] = (struct lk_stock_operation){
            .lines = &round->lines[i], .count = 1, .deadline_ns = INT64_MAX};
        round->requests[i].op = &round->ops[i];
        round->places[i] = &round->requests[i];
    }
    round->combine.requests = round->places;
    round->combine.count = count;
    round->combine.known_left = -1;
}

static void test_a_round_ends_with_its_first_deadline(void **state)
{
    struct round round;

    (void)state;
    begin(&round, 3);
    round.ops[0].deadline_ns = 30;
    round.ops[1].deadline_ns = 10;
    round.ops[2].deadline_ns = 20;
    round.ops[0].wants_left = true;
    table.answers[0] = 1;
    table.left = 5;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.deadline_ns, 10);
    assert_true(table.wants_left);
    assert_int_equal(table.quantity, 6);
    assert_int_equal(round.combine.known_left, 5);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(round.requests[i].rc, 0);
        assert_int_equal(round.lines[i].left, 9 - 2 * i);
        assert_int_equal(round.lines[i].delta, -2);
    }
}

/* Also of two. */
static void test_who_is_refused_is_refused_alone(void **state)
{
    struct round round;

    (void)state;
    begin(&round, 2);
    table.answers[0] = SQLOCK_EDATABASE;
    table.answers[1] = 1;
    table.answers[2] = SQLOCK_EDATABASE;
    table.left = 1; /* another session may put more there */
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.times, 3);
    assert_int_equal(table.quantity, 2);
    assert_int_equal(round.requests[0].rc, 0);
    assert_int_equal(round.requests[1].rc, SQLOCK_EDATABASE);
    assert_string_equal(round.requests[1].err.message, "statement 3");
}

static void test_an_order_given_twice_has_one_answer(void **state)
{
    struct round round;

    (void)state;
    begin(&round, 3);
    round.ops[0].order = "order";
    round.ops[1].order = "another";
    round.ops[2].order = "order";
    table.answers[0] = 1;
    table.left = 10;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.quantity, 4);
    /* what the statement adds to the rest */
    assert_null(strstr(table.entries, "\"b\":-1"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(round.requests[i].rc, 0);
        assert_int_equal(round.lines[i].left, i == 1 ? 10 : 12);
        assert_int_equal(round.lines[i].result, 0);
        assert_int_equal(round.ops[i].is_duplicate, i == 2);
    }
}

/* Nothing is known of the order then, and so nothing of a misuse. */
static void test_an_order_given_twice_fails_twice(void **state)
{
    struct round round;

    (void)state;
    for (int64_t quantity = 1; quantity <= 2; quantity++) {
        begin(&round, 2);
        round.ops[0].order = round.ops[1].order = "order";
        round.lines[1].quantity = quantity;
        table.answers[0] = SQLOCK_EUNREACHABLE;
        lk_combine_run(&round.combine, &round.stock);
        assert_int_equal(table.times, 1);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(round.requests[i].rc, SQLOCK_EUNREACHABLE);
            assert_string_equal(round.requests[i].err.message, "statement 1");
            assert_false(round.ops[i].is_duplicate);
        }
    }
    begin(&round, 2);
    round.ops[0].order = round.ops[1].order = "order";
    table.answers[0] = SQLOCK_ENOTFOUND;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(round.requests[1].rc, SQLOCK_ENOTFOUND);
    assert_int_equal(round.lines[1].result, SQLOCK_ENOTFOUND);
    assert_false(round.ops[1].is_duplicate);
}

/* One that is answered keeps its answer when the others fail. */
static void test_an_answer_stands(void **state)
{
    struct round round;

    (void)state;
    begin(&round, 3);
    round.requests[1].is_answered = true;
    round.requests[1].rc = SQLOCK_EORDER;
    table.answers[0] = SQLOCK_ERETRY;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.quantity, 4);
    assert_int_equal(round.requests[0].rc, SQLOCK_ERETRY);
    assert_int_equal(round.requests[1].rc, SQLOCK_EORDER);
    assert_int_equal(round.requests[2].rc, SQLOCK_ERETRY);
    begin(&round, 3);
    round.requests[1].is_answered = true;
    round.requests[1].rc = SQLOCK_EORDER;
    table.answers[0] = SQLOCK_EDATABASE;
    table.answers[1] = table.answers[2] = 1;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.times, 3);
    assert_int_equal(round.requests[0].rc, 0);
    assert_int_equal(round.requests[1].rc, SQLOCK_EORDER);
    assert_int_equal(round.requests[2].rc, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_round_ends_with_its_first_deadline),
    cmocka_unit_test(test_who_is_refused_is_refused_alone),
    cmocka_unit_test(test_an_order_given_twice_has_one_answer),
    cmocka_unit_test(test_an_order_given_twice_fails_twice),
    cmocka_unit_test(test_an_answer_stands),
};
const struct suite suite_combine = SUITE("combined requests", tests);
