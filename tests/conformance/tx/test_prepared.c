/*
 * test_prepared.c - statements of the application that change rows are prepared
 * once per connection, and mean the same as if they were not
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMES 4

/* A registry with one connection, and a statement with two parameters. */
struct story {
    sqlock_registry *registry;
    char text[160];
};

static void story_open(struct fixture *f, struct story *story)
{
    sqlock_options options = fixture_options(f);

    options.pool_size = 1;
    story->registry = fixture_registry(f, &options);
    (void)snprintf(story->text, sizeof story->text,
                   "UPDATE %s SET state = ? WHERE id = ?", stock_name(f));
}

/* Write a state to row 1 in a transaction of its own. */
static int write_state(struct fixture *f, struct story *story,
                       sqlock_value state)
{
    const sqlock_value values[] = {state, sqlock_integer(1)};
    sqlock_tx *tx;
    int rc;

    assert_ok(sqlock_tx_begin(&tx, story->registry, &f->err));
    rc = sqlock_tx_execute(tx, story->text, values, 2, NULL, &f->err);
    if (rc == 0)
        return sqlock_tx_commit(tx, &f->err);
    assert_int_equal(sqlock_tx_rollback(tx, NULL), 0);
    return rc;
}

static void assert_state(struct fixture *f, const char *expected)
{
    char state[40];

    assert_true(sql_text(&f->sql, state, sizeof state,
                         "SELECT COALESCE(state, 'null') FROM %s WHERE id = 1",
                         stock_name(f)));
    assert_string_equal(state, expected);
}

/* Return how many statements the registry's connection has prepared. */
static long long prepared(struct fixture *f, struct story *story)
{
    const char *text = f->database->bit == ON_MYSQL
                           ? "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"
                           : "SELECT '', count(*) FROM pg_prepared_statements";
    sqlock_result result = {0};
    sqlock_value *cell;
    sqlock_tx *tx;
    long long count;

    assert_ok(sqlock_tx_begin(&tx, story->registry, &f->err));
    assert_ok(sqlock_tx_execute(tx, text, NULL, 0, &result, &f->err));
    cell = &result.cells[1];
    count = cell->type == SQLOCK_TEXT ? atoll(cell->text) : cell->integer;
    sqlock_result_clear(&result);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    return count;
}

TEST_ON(test_a_statement_is_prepared_once, ON_SERVERS, 0)
{
    struct story story;
    long long before;

    if (database_is_pooled(f->database))
        skip();
    story_open(f, &story);
    before = prepared(f, &story);
    for (int i = 0; i < TIMES; i++)
        assert_ok(write_state(f, &story, sqlock_text("sent")));
    assert_int_equal(prepared(f, &story), before + 1);
    registry_end(story.registry);
}

TEST(test_a_statement_takes_parameters_of_every_type)
{
    const sqlock_value written[] = {sqlock_integer(7), sqlock_text("seven"),
                                    sqlock_text(NULL)};
    static const char *const read[] = {"7", "seven", "null"};
    struct story story;

    story_open(f, &story);
    for (size_t i = 0; i < 3 * TIMES; i++) {
        assert_ok(write_state(f, &story, written[i / TIMES]));
        assert_state(f, read[i / TIMES]);
    }
    registry_end(story.registry);
}

/* Two parameters whose types are exchanged are those of another statement. */
TEST(test_types_count_in_their_order)
{
    const sqlock_value values[] = {sqlock_integer(7), sqlock_text("seven"),
                                   sqlock_integer(7)};
    char text[200];
    struct story story;

    story_open(f, &story);
    (void)snprintf(text, sizeof text,
                   "UPDATE %s SET state = ?, owner = ? WHERE id = 1",
                   stock_name(f));
    for (size_t i = 0; i < 4; i++) {
        sqlock_tx *tx;

        assert_ok(sqlock_tx_begin(&tx, story.registry, &f->err));
        assert_ok(
            sqlock_tx_execute(tx, text, &values[i % 2], 2, NULL, &f->err));
        assert_ok(sqlock_tx_commit(tx, &f->err));
        assert_state(f, i % 2 == 0 ? "7" : "seven");
    }
    registry_end(story.registry);
}

/* Write a state, in a second transaction if the first one is to be tried
 * again. */
static int write_again(struct fixture *f, struct story *story,
                       sqlock_value state)
{
    int rc = write_state(f, story, state);

    return rc == SQLOCK_ERETRY ? write_state(f, story, state) : rc;
}

TEST_ON(test_a_statement_outlives_a_change_of_its_table, ON_SERVERS, 0)
{
    struct story story;

    story_open(f, &story);
    for (int i = 0; i < TIMES; i++)
        assert_ok(write_state(f, &story, sqlock_text("12")));
    (void)sql_run(&f->sql, "UPDATE %s SET state = '1'", stock_name(f));
    (void)sql_run(
        &f->sql,
        f->database->bit == ON_MYSQL
            ? "ALTER TABLE %s MODIFY state BIGINT"
            : "ALTER TABLE %s ALTER state TYPE BIGINT USING state::bigint",
        stock_name(f));
    assert_ok(write_again(f, &story, sqlock_text("13")));
    assert_int_equal(sql_integer(&f->sql, "SELECT state FROM %s WHERE id = 1",
                                 stock_name(f)),
                     13);
    (void)sql_run(&f->sql, "DROP TABLE %s", stock_name(f));
    assert_fails(SQLOCK_ESCHEMA, write_again(f, &story, sqlock_text("14")));
    stock_create(f);
    registry_end(story.registry);
}

TEST_ON(test_a_statement_means_a_table_of_the_session, ON_MYSQL, 0)
{
    const sqlock_value values[] = {sqlock_text("lost"), sqlock_integer(1)};
    struct story story;
    sqlock_tx *tx;

    story_open(f, &story);
    for (int i = 0; i < TIMES; i++)
        assert_ok(write_state(f, &story, sqlock_text("kept")));
    assert_ok(sqlock_tx_begin(&tx, story.registry, &f->err));
    assert_ok(sqlock_tx_execute(tx, "USE information_schema", NULL, 0, NULL,
                                &f->err));
    assert_true(sqlock_tx_execute(tx, story.text, values, 2, NULL, &f->err) <
                0);
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    assert_ok(write_state(f, &story, sqlock_text("here")));
    assert_state(f, "here");
    registry_end(story.registry);
}

/* A trigger refuses some states, by errors that a change of the table has, too:
 * those end the transaction as such, at the latest when it is tried again. */
TEST_ON(test_a_statement_that_a_trigger_refuses_is_told_so, ON_POSTGRES, 0)
{
    const char *name = stock_name(f);
    struct story story;

    (void)sql_run(
        &f->sql,
        "CREATE FUNCTION %s_refuse() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN IF NEW.state LIKE '42%%' THEN RAISE EXCEPTION "
        "'refused' USING ERRCODE = NEW.state; END IF; RETURN NEW; "
        "END $$",
        name);
    (void)sql_run(&f->sql,
                  "CREATE TRIGGER refuse BEFORE UPDATE ON %s FOR EACH ROW "
                  "EXECUTE PROCEDURE %s_refuse()",
                  name, name);
    story_open(f, &story);
    for (int i = 0; i < TIMES; i++)
        assert_ok(write_state(f, &story, sqlock_text("fine")));
    for (int i = 0; i < TIMES; i++) {
        assert_fails(SQLOCK_EACCESS,
                     write_state(f, &story, sqlock_text("42501")));
        assert_fails(SQLOCK_ESCHEMA,
                     write_again(f, &story, sqlock_text("42P01")));
    }
    assert_ok(write_state(f, &story, sqlock_text("fine")));
    registry_end(story.registry);
    (void)sql_run(&f->sql, "DROP FUNCTION %s_refuse() CASCADE", name);
}

/* More texts than have numbers. */
TEST(test_any_number_of_statements_may_be_sent)
{
    struct story story;

    story_open(f, &story);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 70; i++) {
            char written[16];

            (void)snprintf(written, sizeof written, "%d", i);
            (void)snprintf(story.text, sizeof story.text,
                           "UPDATE %s SET state = ? WHERE id = ? AND %d = %d",
                           stock_name(f), i, i);
            assert_ok(write_state(f, &story, sqlock_text(written)));
            assert_state(f, written);
        }
    registry_end(story.registry);
}
