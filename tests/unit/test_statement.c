/*
 * test_statement.c - render templates as statements
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "db/drivers.h"
#include "db/statement.h"

static const sqlock_dialect dollar = {.placeholder = SQLOCK_PLACEHOLDER_DOLLAR};
static const sqlock_dialect question = {.placeholder =
                                            SQLOCK_PLACEHOLDER_QUESTION};

struct rendered {
    const char *template;
    const char *dollar;
    const char *question;
    const char *dollar_order; /* parameters in order, a digit each */
    const char *question_order;
};

static void check(const sqlock_dialect *dialect, const char *template,
                  const char *text, const char *order)
{
    const sqlock_template source = {.text = template};
    struct lk_statement statement;
    size_t i;

    assert_int_equal(
        lk_statement_render(&statement, dialect, &source, "\"T\"", 9), 0);
    assert_string_equal(statement.sent.text, text);
    assert_int_equal(statement.sent.id, 9);
    assert_int_equal(statement.count, strlen(order));
    for (i = 0; i < statement.count; i++)
        assert_int_equal(statement.order[i], order[i] - '0');
    lk_statement_clear(&statement);
    assert_null(statement.text);
}

static void test_templates_are_rendered(void **state)
{
    static const struct rendered rows[] = {
        {"SELECT 1", "SELECT 1", "SELECT 1", "", ""},
        {"{table}", "\"T\"", "\"T\"", "", ""},
        {"a {1} b {2}", "a $1 b $2", "a ? b ?", "12", "12"},
        {"{2} {1} {2}", "$1 $2 $1", "? ? ?", "21", "212"},
        {"{9}{9}", "$1$1", "??", "9", "99"},
        {"{table}.{4} {table}", "\"T\".$1 \"T\"", "\"T\".? \"T\"", "4", "4"},
        {"json '{}' {x", "json '{}' {x", "json '{}' {x", "", ""},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(&dollar, rows[i].template, rows[i].dollar, rows[i].dollar_order);
        check(&question, rows[i].template, rows[i].question,
              rows[i].question_order);
    }
}

static void test_unreadable_templates_are_refused(void **state)
{
    static const char *const bad[] = {"{/}", "{a}", "{:}", "{ }", "{it}"};
    struct lk_statement statement;
    sqlock_template source;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        source = (sqlock_template){.text = bad[i]};
        assert_int_equal(
            lk_statement_render(&statement, &dollar, &source, "T", 1),
            SQLOCK_EINVAL);
        lk_statement_clear(&statement);
    }
    source = (sqlock_template){.text = NULL};
    assert_int_equal(lk_statement_render(&statement, &dollar, &source, "T", 1),
                     SQLOCK_ENOTSUP);
    lk_statement_clear(&statement);
}

static const sqlock_fragment fragments[] = {
    {"now", "clock()"},
    {"us", "{it} us"},
    {"later", "{now} + {us {it}}"},
    {"twice", "{it}{it}"},
    {"row", "KEY = {1}"},
    {"of", "{it}END"},
    {"endless", "{endless}"},
    {"rising", "{rising {it} {it}}"},
    {"ends", "of all layouts"},
    {NULL, NULL},
};
static const sqlock_fragment of_layout[] = {
    {"ends", "of this layout"},
    {NULL, NULL},
};

static void test_fragments_are_put_in(void **state)
{
    static const struct {
        const char *template;
        const char *text;
    } rows[] = {
        {"{now}", "clock()"},
        {"{later {4}}", "clock() + $1 us"},
        {"{later {later {4} - {5}} + 1}",
         "clock() + clock() + $1 - $2 us + 1 us"},
        {"{twice {twice a}}", "aaaa"},
        {"{row} AND {us {1}}", "KEY = $1 AND $1 us"},
        {"{of} {of T.}", "END T.END"},
        {"{now}{table}{now}", "clock()Tclock()"},
    };
    static const sqlock_dialect dialect = {
        .placeholder = SQLOCK_PLACEHOLDER_DOLLAR, .fragments = fragments};
    struct lk_statement statement;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sqlock_template source = {.text = rows[i].template};

        assert_int_equal(
            lk_statement_render(&statement, &dialect, &source, "T", 1), 0);
        assert_string_equal(statement.text, rows[i].text);
        lk_statement_clear(&statement);
    }
}

static void test_a_fragment_in_itself_is_refused(void **state)
{
    static const sqlock_dialect dialect = {.fragments = fragments};
    static const char *const bad[] = {"{endless}", "{rising a}"};
    struct lk_statement statement;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const sqlock_template source = {.text = bad[i]};

        assert_int_equal(
            lk_statement_render(&statement, &dialect, &source, "T", 1),
            SQLOCK_EINVAL);
    }
}

/* Fragments of a statement come before those of its layout, and those of a
 * layout before those of the dialect. */
static void test_the_nearest_fragment_counts(void **state)
{
    static const sqlock_fragment own[] = {{"ends", "of this statement"},
                                          {NULL, NULL}};
    static const sqlock_dialect dialect = {
        .fragments = fragments,
        .layout_fragments = {[SQLOCK_LAYOUT_SPRING7] = of_layout},
        .statements = {[SQLOCK_SQL_SERVER] = {.text = "{ends}"},
                       [SQLOCK_SQL_DESCRIBE] = {.text = "{ends}", .with = own},
                       [SQLOCK_SQL_REAP] = {.text = ""},
                       [SQLOCK_SQL_WAITERS] = {.text = "{ends}",
                                               .layouts =
                                                   1 << SQLOCK_LAYOUT_SPRING7}},
    };
    static const struct {
        sqlock_layout layout;
        sqlock_statement_kind kind;
        const char *text; /* NULL: the statement is missing */
    } rows[] = {
        {SQLOCK_LAYOUT_SQLOCK, SQLOCK_SQL_SERVER, "of all layouts"},
        {SQLOCK_LAYOUT_SPRING7, SQLOCK_SQL_SERVER, "of this layout"},
        {SQLOCK_LAYOUT_SPRING7, SQLOCK_SQL_DESCRIBE, "of this statement"},
        {SQLOCK_LAYOUT_SPRING7, SQLOCK_SQL_WAITERS, "of this layout"},
        {SQLOCK_LAYOUT_SPRING6, SQLOCK_SQL_WAITERS, NULL},
        {SQLOCK_LAYOUT_SQLOCK, SQLOCK_SQL_REAP, NULL},
    };
    struct lk_statement statement;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int rc = lk_statement_of_kind(&statement, &dialect, rows[i].layout,
                                      rows[i].kind, "T", 1);

        assert_int_equal(rc, rows[i].text != NULL ? 0 : SQLOCK_ENOTSUP);
        if (rows[i].text != NULL)
            assert_string_equal(statement.text, rows[i].text);
        lk_statement_clear(&statement);
    }
}

static void test_too_many_places_are_refused(void **state)
{
    char text[LK_PLACES_MAX * 3 + 8] = "";
    const sqlock_template source = {.text = text};
    struct lk_statement statement;
    size_t i;

    (void)state;
    for (i = 0; i < LK_PLACES_MAX; i++)
        memcpy(text + 3 * i, "{1}", 4);
    assert_int_equal(
        lk_statement_render(&statement, &question, &source, "T", 1), 0);
    lk_statement_clear(&statement);
    memcpy(text + 3 * i, "{1}", 4);
    assert_int_equal(
        lk_statement_render(&statement, &question, &source, "T", 1),
        SQLOCK_EINVAL);
    lk_statement_clear(&statement);
}

static void test_arguments_come_in_the_order_of_the_places(void **state)
{
    const sqlock_template source = {.text = "{4} {1} {3} {1}"};
    struct lk_arguments arguments = {0};
    sqlock_value values[LK_PLACES_MAX];
    struct lk_statement statement;

    (void)state;
    lk_argument_text(&arguments, SQLOCK_P_KEY, "key");
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_DURATION_US, INT64_MIN);
    assert_int_equal(
        lk_statement_render(&statement, &question, &source, "T", 1), 0);
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

static void test_only_the_prefix_is_replaced_in_a_schema(void **state)
{
    char *text = lk_schema_render("INT_LOCK (INT_STOCK_AGE, XINT_LOCK, INT,"
                                  " \"INT_\"); -- INT_LOCK, INT_",
                                  "a.B_");

    (void)state;
    assert_non_null(text);
    assert_string_equal(text, "a.B_LOCK (a.B_STOCK_AGE, XINT_LOCK, INT,"
                              " \"a.B_\"); -- a.B_LOCK, a.B_");
    free(text);
}

static void test_every_statement_of_every_driver_can_be_rendered(void **state)
{
    size_t i;
    size_t layout;
    size_t kind;

    (void)state;
    for (i = 0; lk_drivers[i] != NULL; i++) {
        const sqlock_dialect *dialect = lk_drivers[i]->dialect;

        for (layout = 0; layout < SQLOCK_LAYOUTS; layout++)
            for (kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
                bool is_optional = kind >= SQLOCK_SQL_CLAIM_MANY;
                struct lk_statement statement;
                int rc = lk_statement_of_kind(
                    &statement, dialect, (sqlock_layout)layout,
                    (sqlock_statement_kind)kind, "NAME", 1);

                if (rc != 0 && !(is_optional && rc == SQLOCK_ENOTSUP))
                    fail_msg("%s layout %zu statement %zu: %d",
                             lk_drivers[i]->name, layout, kind, rc);
                if (rc == 0)
                    assert_null(strchr(statement.text, '{'));
                lk_statement_clear(&statement);
            }
    }
    assert_true(i > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_templates_are_rendered),
    cmocka_unit_test(test_unreadable_templates_are_refused),
    cmocka_unit_test(test_fragments_are_put_in),
    cmocka_unit_test(test_a_fragment_in_itself_is_refused),
    cmocka_unit_test(test_the_nearest_fragment_counts),
    cmocka_unit_test(test_too_many_places_are_refused),
    cmocka_unit_test(test_arguments_come_in_the_order_of_the_places),
    cmocka_unit_test(test_only_the_prefix_is_replaced_in_a_schema),
    cmocka_unit_test(test_every_statement_of_every_driver_can_be_rendered),
};
const struct suite suite_statement = SUITE("statements", tests);
