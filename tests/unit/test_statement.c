/*
 * test_statement.c - make statements of those in sql/: names are put in, and
 * arguments come in order
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "db/drivers.h"
#include "db/statement.h"

TEST(test_names_are_put_in)
{
    static const struct lk_name names[] = {{"INT_LOCK", "\"a\".\"b\""},
                                           {"item", "{INT_LOCK}"},
                                           {"none", ""},
                                           {NULL, NULL}};
    static const struct {
        const char *text;
        const char *written;
    } rows[] = {
        {"", ""},
        {"SELECT 1", "SELECT 1"},
        {"{INT_LOCK}", "\"a\".\"b\""},
        {"x{INT_LOCK}{none}.{INT_LOCK}y", "x\"a\".\"b\".\"a\".\"b\"y"},
        /* what was put in is not looked at again */
        {"{item}", "{INT_LOCK}"},
        {"json '{}' {x {INT} {INT_LOCKS} {it{none}em} {",
         "json '{}' {x {INT} {INT_LOCKS} {item} {"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_writer writer;
        FILE *out = lk_writer_open(&writer);
        char *text;

        assert_non_null(out);
        lk_names_write(out, rows[i].text, names);
        text = lk_writer_close(&writer);
        assert_non_null(text);
        assert_string_equal(text, rows[i].written);
        free(text);
    }
}

static const struct lk_sql list[] = {
    {.kind = SQLOCK_SQL_CLAIM,
     .variants = LK_SQLOCK_QUEUE,
     .text = "{INT_LOCK} ? ? ? ?",
     .insert_id = SQLOCK_INSERT_ID_ROW,
     .is_nowait = true,
     .count = 4,
     .order = {SQLOCK_P_TTL, SQLOCK_P_KEY, SQLOCK_P_CLIENT, SQLOCK_P_KEY}},
    {.kind = SQLOCK_SQL_CLAIM,
     .variants = LK_SQLOCK_POLL | LK_SPRING6_QUEUE | LK_SPRING6_POLL,
     .text = "other",
     .is_unprepared = true},
    {.text = NULL},
};
static const struct lk_name names[] = {{"INT_LOCK", "T"}, {NULL, NULL}};

TEST(test_a_statement_is_that_of_the_variant)
{
    static const struct {
        sqlock_layout layout;
        bool polls;
        sqlock_statement_kind kind;
        const char *text; /* NULL: there is none */
    } rows[] = {
        {SQLOCK_LAYOUT_SQLOCK, false, SQLOCK_SQL_CLAIM, "T ? ? ? ?"},
        {SQLOCK_LAYOUT_SQLOCK, true, SQLOCK_SQL_CLAIM, "other"},
        {SQLOCK_LAYOUT_SPRING7, false, SQLOCK_SQL_CLAIM, NULL},
        {SQLOCK_LAYOUT_SPRING7, true, SQLOCK_SQL_CLAIM, NULL},
        {SQLOCK_LAYOUT_SPRING6, false, SQLOCK_SQL_CLAIM, "other"},
        {SQLOCK_LAYOUT_SPRING6, true, SQLOCK_SQL_CLAIM, "other"},
        {SQLOCK_LAYOUT_SQLOCK, false, SQLOCK_SQL_RENEW, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sqlock_dialect dialect = {.statements = list,
                                        .polls = rows[i].polls};
        struct lk_statement statement;
        int rc = lk_statement_of_kind(&statement, &dialect, rows[i].layout,
                                      rows[i].kind, names, 9);

        assert_int_equal(rc, rows[i].text != NULL ? 0 : SQLOCK_ENOTSUP);
        if (rows[i].text == NULL) {
            assert_null(statement.text);
            continue;
        }
        assert_string_equal(statement.sent.text, rows[i].text);
        lk_statement_clear(&statement);
        assert_null(statement.text);
    }
}

TEST(test_a_statement_is_sent_as_it_is_annotated)
{
    struct lk_statement statement;

    assert_int_equal(lk_statement_render(&statement, &list[0], names, 9), 0);
    assert_int_equal(statement.sent.id, 9);
    assert_int_equal(statement.sent.insert_id, SQLOCK_INSERT_ID_ROW);
    assert_true(statement.sent.is_nowait);
    lk_statement_clear(&statement);
    assert_int_equal(lk_statement_render(&statement, &list[1], names, 9), 0);
    assert_int_equal(statement.sent.id, 0);
    assert_int_equal(statement.sent.insert_id, SQLOCK_INSERT_ID_UNUSED);
    assert_false(statement.sent.is_nowait);
    lk_statement_clear(&statement);
}

TEST(test_arguments_come_in_the_order_of_the_places)
{
    struct lk_arguments arguments = {0};
    sqlock_value values[LK_PLACES_MAX];
    struct lk_statement statement;

    lk_argument_text(&arguments, SQLOCK_P_KEY, "key");
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_TTL, INT64_MIN);
    assert_int_equal(lk_statement_render(&statement, &list[0], names, 1), 0);
    lk_statement_order(&statement, &arguments, values);
    assert_int_equal(values[0].type, SQLOCK_INT64);
    assert_true(values[0].integer == INT64_MIN);
    assert_int_equal(values[1].type, SQLOCK_TEXT);
    assert_string_equal(values[1].text, "key");
    assert_int_equal(values[1].length, 3);
    assert_int_equal(values[2].type, SQLOCK_NULL);
    assert_string_equal(values[3].text, "key");
    lk_statement_clear(&statement);
}

TEST(test_only_the_prefix_is_replaced_in_a_schema)
{
    char *text = lk_schema_render("INT_LOCK (INT_STOCK_AGE, XINT_LOCK, INT,"
                                  " \"INT_\"); -- INT_LOCK, INT_",
                                  "a.B_");

    assert_non_null(text);
    assert_string_equal(text, "a.B_LOCK (a.B_STOCK_AGE, XINT_LOCK, INT,"
                              " \"a.B_\"); -- a.B_LOCK, a.B_");
    free(text);
}

/* --- the statements of sql/ --- */

/* Return how many parameters the text has: its `?` outside quotes, or its
 * greatest $N. */
static size_t places_of(const char *text, sqlock_placeholder style)
{
    bool is_quoted = false;
    size_t places = 0;

    for (; *text != '\0'; text++) {
        is_quoted ^= *text == '\'';
        if (is_quoted)
            continue;
        if (style == SQLOCK_PLACEHOLDER_QUESTION && *text == '?')
            places++;
        if (style == SQLOCK_PLACEHOLDER_DOLLAR && *text == '$') {
            size_t number = strtoul(text + 1, NULL, 10);

            places = number > places ? number : places;
        }
    }
    return places;
}

/* Return whether a {fragment} was not put in.  QUEUE is JSON, with {"... */
static bool has_fragment(const char *text)
{
    while ((text = strchr(text, '{')) != NULL)
        if (*++text != '"')
            return true;
    return false;
}

/* Check each statement of a list, with all names put in. */
static void check_list(const sqlock_driver *driver, const struct lk_sql *sql,
                       unsigned kinds, unsigned parameters)
{
    static const struct lk_name all[] = {
        {"INT_LOCK", "T"},
        {"INT_LOCK_SERVER", "T"},
        {"INT_LOCK_MARK", "T"},
        {"INT_DONE", "T"},
        {"INT_STOCK", "T"},
        {"INT_STOCK_ENTRY", "T"},
        {"INT_STOCK_RESERVATION", "T"},
        {"item", "I"},
        {"quantity", "Q"},
        {"version", "V"},
        {"most", "1"},
        {NULL, NULL},
    };
    uint32_t seen[128] = {0};

    assert_true(kinds <= sizeof seen / sizeof *seen);
    for (; sql->text != NULL; sql++) {
        struct lk_statement statement;

        assert_true(sql->kind < kinds);
        assert_int_equal(sql->variants & seen[sql->kind], 0);
        seen[sql->kind] |= sql->variants;
        assert_int_equal(lk_statement_render(&statement, sql, all, 1), 0);
        assert_false(has_fragment(statement.text));
        assert_null(strchr(statement.text, ';'));
        if (places_of(statement.text, driver->dialect->placeholder) !=
            statement.count)
            fail_msg("%s: %zu parameters in %s", driver->name, statement.count,
                     statement.text);
        for (size_t i = 0; i < statement.count; i++)
            assert_true(statement.order[i] < parameters);
        lk_statement_clear(&statement);
    }
}

TEST(test_every_statement_of_every_driver_can_be_sent)
{
    for (size_t i = 0; lk_drivers[i] != NULL; i++) {
        const sqlock_driver *driver = lk_drivers[i];

        check_list(driver, driver->dialect->statements, SQLOCK_SQL_KINDS,
                   SQLOCK_PARAMETERS);
        if (driver->stock != NULL)
            check_list(driver, driver->stock->statements, SQLOCK_STOCK_KINDS,
                       SQLOCK_PARAMETERS);
    }
    assert_non_null(lk_drivers[0]);
}
