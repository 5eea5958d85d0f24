/*
 * test_many.c - how the statements for many leases go over a table of thousands
 * of rows, or of several parts
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 5
#define JSON_SIZE 4096

/* Keys of a test's own locks, ascending, and JSON about them. */
struct batch {
    char keys[ITEMS][SQLOCK_KEY_SIZE];
    char json[JSON_SIZE];
};

/* Write the JSON of the items [from, to) for that client.  `name` is escaped as
 * in JSON. */
static void write_json(struct batch *batch, size_t from, size_t to,
                       const char *client, int64_t ttl_us, const char *name)
{
    size_t used = 0;

    for (size_t i = from; i < to; i++)
        used += (size_t)snprintf(
            batch->json + used, sizeof batch->json - used,
            "%s{\"k\":\"%s\",\"c\":\"%s\",\"t\":%lld,\"n\":\"%s\","
            "\"h\":\"%s host 1\"}",
            i == from ? "[" : ",", batch->keys[i], client, (long long)ttl_us,
            name, client);
    assert_true(used + 2 < sizeof batch->json);
    memcpy(batch->json + used, "]", 2);
}

static void make_batch(struct batch *batch)
{
    for (size_t i = 0; i < ITEMS; i++)
        next_key(batch->keys[i]);
}

static int many_in(struct session *session, const struct fixture *f,
                   sqlock_statement_kind kind, const struct batch *batch,
                   const char *region)
{
    struct lk_arguments arguments = arguments_for(f, "", 0);

    lk_argument_text(&arguments, SQLOCK_P_ITEMS, batch->json);
    lk_argument_text(&arguments, SQLOCK_P_REGION, region);
    return statement_try(session, f, kind, &arguments);
}

static void many(struct session *session, const struct fixture *f,
                 sqlock_statement_kind kind, const struct batch *batch)
{
    assert_lock_ok(many_in(session, f, kind, batch, REGION), &session->err);
}

/* Assert that the last statement changed `count` rows.  Where its result does
 * not name their keys, assert only whether it changed any. */
static void check_count(const struct session *session, size_t count)
{
    if (session->result.rows > 0 && session->result.affected == 0 &&
        session->result.columns == 1 &&
        cell(session, 0, 0)->type == SQLOCK_INT64)
        fail_msg("%s", "one row of the clock, and nothing affected");
    if (session->result.rows > 0 && cell(session, 0, 0)->type == SQLOCK_TEXT)
        assert_int_equal(session->result.rows, count);
    else
        assert_int_equal(session->result.affected > 0, count > 0);
}

static void claim_item(struct fixture *f, const struct batch *batch, size_t i,
                       const char *client, int64_t ttl_us)
{
    (void)snprintf(f->key, sizeof f->key, "%s", batch->keys[i]);
    assert_less(0, claim(&f->b, f, client, ttl_us));
}

#define ROWS 6000
#define ROW_SIZE 200

/* Return the JSON of ROWS items for a client, to be freed by the caller. */
static char *json_of_rows(const char *client)
{
    char *json = malloc((size_t)ROWS * ROW_SIZE);
    size_t used = 0;

    assert_non_null(json);
    for (unsigned i = 0; i < ROWS; i++)
        used += (size_t)snprintf(
            json + used, ROW_SIZE,
            "%s{\"k\":\"00000000-0000-0000-0000-%012u\",\"c\":\"%s\","
            "\"t\":%lld,\"n\":\"n\",\"h\":\"h\"}",
            i == 0 ? "[" : ",", i, client, (long long)LONG_US);
    memcpy(json + used, "]", 2);
    return json;
}

/* Have the database explain that statement.  The plan is in session->result. */
static void explain(struct session *session, const struct fixture *f,
                    sqlock_statement_kind kind,
                    const struct lk_arguments *arguments)
{
    const struct lk_statement *statement = &subject.statements[f->layout][kind];
    sqlock_value ordered[LK_PLACES_MAX];
    sqlock_statement explained = {0};
    char text[8192];
    int length =
        snprintf(text, sizeof text, "EXPLAIN %s", statement->sent.text);

    assert_in_range(length, 0, sizeof text - 1);
    explained.text = text;
    lk_statement_order(statement, arguments, ordered);
    session_ok(session,
               session_send(session, &explained, ordered, statement->count,
                            check_deadline_ns(DEADLINE_MS)));
    assert_true(session->result.rows > 0);
}

/* Claim ROWS locks in the region "thousands".  Return their JSON, to which the
 * arguments point, to be freed by the caller. */
static char *claim_thousands(struct fixture *f, struct lk_arguments *arguments)
{
    char *json = json_of_rows(f->client_a);

    lk_argument_text(arguments, SQLOCK_P_ITEMS, json);
    lk_argument_text(arguments, SQLOCK_P_REGION, "thousands");
    statement_run(&f->b, f, SQLOCK_SQL_CLAIM_MANY, arguments);
    check_count(&f->b, ROWS);
    return json;
}

/* To compare thousands of items with thousands of rows takes longer than a
 * lease lasts.  The table was filled just now, so the planner has no
 * statistics. */
TEST_ON(test_many_are_not_each_compared_with_every_row, ON_POSTGRES, IN_ALL)
{
    static const sqlock_statement_kind kinds[] = {SQLOCK_SQL_RENEW_MANY,
                                                  SQLOCK_SQL_RELEASE_MANY};
    struct lk_arguments arguments = arguments_for(f, "", 0);
    char *json = claim_thousands(f, &arguments);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        explain(&f->b, f, kinds[i], &arguments);
        for (size_t row = 0; row < f->b.result.rows; row++) {
            const char *step = cell_text(&f->b, row, 0);

            if (strstr(step, "Join Filter:") != NULL &&
                strstr(step, "lock_key") != NULL)
                fail_msg("statement %d: %s", (int)kinds[i], step);
        }
    }
    session_run(&f->b, "DELETE FROM %s WHERE REGION = 'thousands'",
                subject.tables[f->layout].plain);
    free(json);
}

/* Each page of a list would read and sort the whole table if the plan had a
 * sort. */
TEST_ON(test_pages_are_read_in_the_order_of_keys, ON_MYSQL, IN_ALL)
{
    static const char *const regions[] = {"thousands", NULL};
    struct lk_arguments arguments = arguments_for(f, "", 0);
    char *json = claim_thousands(f, &arguments);

    lk_argument_text(&arguments, SQLOCK_P_AFTER, "");
    lk_argument_text(&arguments, SQLOCK_P_AFTER_REGION, "");
    lk_argument_text(&arguments, SQLOCK_P_PATTERN, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_WITH_FREE, 0);
    lk_argument_integer(&arguments, SQLOCK_P_LIMIT, 1000);
    for (size_t i = 0; i < 2; i++) {
        lk_argument_text(&arguments, SQLOCK_P_REGION, regions[i]);
        explain(&f->b, f, SQLOCK_SQL_FIND_PAGE, &arguments);
        for (size_t cell = 0; cell < f->b.result.rows * f->b.result.columns;
             cell++)
            if (f->b.result.cells[cell].type == SQLOCK_TEXT)
                assert_lacks(f->b.result.cells[cell].text, "filesort");
    }
    session_run(&f->b, "DELETE FROM %s WHERE REGION = 'thousands'",
                subject.tables[f->layout].plain);
    free(json);
}

/* A ctid is that of one table: in a child, or in another partition, another row
 * has the same one. */
TEST_ON(test_rows_of_other_partitions_are_left_alone, ON_POSTGRES, IN_SQLOCK)
{
    static const sqlock_statement_kind kinds[] = {
        SQLOCK_SQL_CLAIM_UNQUEUED_MANY, SQLOCK_SQL_RELEASE_UNQUEUED_MANY};
    const char *table = subject.tables[f->layout].plain;
    struct batch batch;

    make_batch(&batch);
    claim_item(f, &batch, 0, f->client_a, LONG_US);
    assert_int_equal(release(&f->b, f, f->client_a), 1);
    write_json(&batch, 0, 1, f->client_a, LONG_US, "n");
    session_run(&f->a, "CREATE TABLE %s_part () INHERITS (%s)", table, table);
    session_run(
        &f->a,
        "INSERT INTO %s_part (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,"
        " EXPIRED_AFTER) SELECT lpad(i::text, 36, '0'), 'part', 'x', "
        "now(), now() + interval '1 hour' "
        "FROM generate_series(1, 50000) AS I (i)",
        table);
    for (size_t i = 0; i < 2; i++) {
        many(&f->b, f, kinds[i], &batch);
        assert_int_equal(f->b.result.rows, 1);
        session_run(&f->a, "SELECT count(*) FROM %s_part WHERE CLIENT_ID = 'x'",
                    table);
        assert_int_equal(cell_integer(&f->a, 0, 0), 50000);
    }
    session_run(&f->a, "DROP TABLE %s_part", table);
}
