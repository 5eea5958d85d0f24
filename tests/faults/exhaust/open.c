/*
 * open.c - opening, closing, and what needs no registry
 */
#include "exhaust.h"
#include "sqlock/tx.h"

static void act_open(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);
    sqlock_registry *registry = (sqlock_registry *)state; /* not NULL */
    sqlock_error err = {0};
    int rc;

    rc = sqlock_registry_open(&registry, f->url, &options, &err);
    if (exhaust_expect(rc, &err)) {
        rc = sqlock_registry_close(registry, &err);
        (void)exhaust_expect(rc, &err);
    } else {
        assert_null(registry);
        assert_true(rc == SQLOCK_ENOMEM || rc == SQLOCK_ERESOURCE ||
                    rc == SQLOCK_EUNREACHABLE);
    }
}

static void check_open(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);

    (void)state;
    registry_end(fixture_registry(f, &options));
}

static void test_opening_a_registry(void **state)
{
    static const struct experiment experiment = {
        .act = act_open,
        .check = check_open,
    };

    exhaust_all(*state, &experiment);
}

static void act_schema(struct fixture *f, void *state)
{
    sqlock_options options = exhaust_options(f);
    sqlock_layout layout = SQLOCK_LAYOUT_SPRING6;
    sqlock_table table = SQLOCK_TABLE_INIT;
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    char *text = state; /* not NULL */
    int rc;

    rc = sqlock_key_of(key, "name", SQLOCK_KEY_CURRENT, &err);
    (void)exhaust_expect(rc, &err);
    rc =
        sqlock_schema_text(&text, f->url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    if (exhaust_expect(rc, &err))
        assert_non_null(text);
    else
        assert_null(text);
    sqlock_free(text);
    table.name = "stock";
    table.key_column = "id";
    table.fence_column = "fence";
    table.fence_owner_column = "owner";
    text = state;
    rc = sqlock_fence_ddl(&text, f->url, &table, &err);
    assert_true(exhaust_expect(rc, &err) == (text != NULL));
    sqlock_free(text);
    rc = sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    (void)exhaust_expect(rc, &err);
    rc = sqlock_schema_check(f->url, &options, &layout, &err);
    assert_true(exhaust_expect(rc, &err) == (layout == SQLOCK_LAYOUT_SQLOCK));
}

static void test_schemas(void **state)
{
    static const struct experiment experiment = {
        .act = act_schema,
        .check = check_open,
    };

    exhaust_all(*state, &experiment);
}

static const struct test tests[] = {
    TEST(test_opening_a_registry),
    TEST(test_schemas),
};
const struct topic topic_open = TOPIC(tests);
