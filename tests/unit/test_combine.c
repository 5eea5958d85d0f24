/*
 * test_combine.c - the answers of a round of combined requests, from what the
 * database says of the sum.  The connections are SQLite's, on which nothing is
 * sent; without that driver there is no round.
 */
#include "support/test.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease/open.h"
#include "stock/combine.h"

#define MOST 3

/* The answers of statements that deduct, one after the other: 1, a row; 0,
 * none; or a code.  And what the last one asked. */
static struct {
    int answers[4];
    int64_t left;
    size_t times;
    int64_t quantity;
    char entries[400]; /* "": none */
} table;

static int execute(void *connection, const sqlock_statement *statement,
                   const sqlock_value *parameters, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err)
{
    sqlock_value left = sqlock_integer(table.left);
    const char *entries = parameters[1].text;
    int rc;

    (void)connection;
    (void)statement;
    (void)count;
    (void)deadline_ns;
    assert_true(table.times < 4);
    rc = table.answers[table.times++];
    table.quantity = parameters[0].integer;
    (void)snprintf(table.entries, sizeof table.entries, "%s",
                   entries != NULL ? entries : "");
    if (rc < 0)
        return sqlock_error_set(err, rc, 0, NULL, "statement %zu", table.times);
    if (rc == 0)
        return 0;
    rc = sqlock_result_start(result, 1);
    return rc < 0 ? rc : sqlock_result_push(result, &left);
}

/* --- the round --- */

static struct lk_store store;
static char path[64];

static void open_store(void)
{
    static sqlock_driver driver;
    const struct lk_pool_options options = {
        .size = 1,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS / 10,
    };
    char url[80];
    int fd;

    (void)snprintf(path, sizeof path, "/tmp/sqlock-combine.XXXXXX");
    fd = mkstemp(path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    lk_store_init(&store);
    store.options.statement_timeout_ms = PATIENCE_MS;
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(lk_db_init(&store.db, url, &options, NULL), 0);
    driver = *store.db.driver;
    driver.execute = execute;
    driver.has_one_writer = false;
    store.db.driver = &driver;
}

static void close_store(void)
{
    lk_store_clear(&store);
    (void)unlink(path);
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

/* Begin a round.  The lines have results of another attempt. */
static void begin(struct round *round, size_t count)
{
    static const unsigned char order[] = {SQLOCK_SP_QUANTITY, SQLOCK_SP_ROWS};
    static char text[] = "UPDATE";

    memset(&table, 0, sizeof table);
    memset(round, 0, sizeof *round);
    round->stock.tables.store = &store;
    round->stock.tables.statements = round->statements;
    for (size_t i = 0; i < SQLOCK_STOCK_KINDS; i++)
        round->statements[i] = (struct lk_statement){
            .text = text, .sent.text = text, .count = 2, .order = order};
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

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_store, .close = close_store)

SCENE_TEST(test_a_round_ends_with_its_first_deadline)
{
    struct round round;

    begin(&round, 3);
    round.ops[0].deadline_ns = 30;
    round.ops[1].deadline_ns = 10;
    round.ops[2].deadline_ns = 20;
    table.answers[0] = 1;
    table.left = 5;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(round.combine.operation.deadline_ns, 10);
    assert_int_equal(table.quantity, 6);
    assert_int_equal(round.combine.known_left, 5);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(round.requests[i].rc, 0);
        assert_int_equal(round.lines[i].left, 9 - 2 * i);
        assert_int_equal(round.lines[i].delta, -2);
    }
}

/* Also of two. */
SCENE_TEST(test_who_is_refused_is_refused_alone)
{
    struct round round;

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

SCENE_TEST(test_an_order_given_twice_has_one_answer)
{
    struct round round;

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
SCENE_TEST(test_an_order_given_twice_fails_twice)
{
    struct round round;

    for (int64_t quantity = 1; quantity <= 2; quantity++) {
        begin(&round, 2);
        round.ops[0].order = round.ops[1].order = "order";
        round.lines[1].quantity = quantity;
        table.answers[0] = SQLOCK_EACCESS;
        lk_combine_run(&round.combine, &round.stock);
        assert_int_equal(table.times, 1);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(round.requests[i].rc, SQLOCK_EACCESS);
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
SCENE_TEST(test_an_answer_stands)
{
    struct round round;

    begin(&round, 3);
    round.requests[1].is_answered = true;
    round.requests[1].rc = SQLOCK_EORDER;
    table.answers[0] = SQLOCK_EACCESS;
    lk_combine_run(&round.combine, &round.stock);
    assert_int_equal(table.quantity, 4);
    assert_int_equal(round.requests[0].rc, SQLOCK_EACCESS);
    assert_int_equal(round.requests[1].rc, SQLOCK_EORDER);
    assert_int_equal(round.requests[2].rc, SQLOCK_EACCESS);
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

#endif
