/*
 * test_options.c - options of a registry at their limits: a value out of bounds
 * is refused with EINVAL, before a database is connected to
 */
#include "support/test.h"

#include <string.h>

#include "lease/options.h"

static sqlock_options basic(void)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    return options;
}

static void expect(const sqlock_options *given, int expected)
{
    sqlock_options out;
    sqlock_error err = {0};
    int rc = lk_options_complete(&out, given, &err);

    assert_code(expected, rc, &err);
}

/* Assert that sqlock_registry_open(), before it connects, and
 * lk_options_complete() refuse the options. */
static void expect_refused(const sqlock_options *given)
{
    sqlock_registry *registry = (sqlock_registry *)1;
    sqlock_error err = {0};
    int rc = sqlock_registry_open(&registry, "sqlite:/nonexistent/dir/db",
                                  given, &err);

    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_null(registry);
    expect(given, SQLOCK_EINVAL);
}

TEST(test_zero_means_the_documented_default)
{
    sqlock_options options = basic();
    sqlock_options out;
    int pass;

    for (pass = 0; pass < 2; pass++) {
        sqlock_error err = {0};
        int rc = lk_options_complete(&out, pass == 0 ? NULL : &options, &err);

        assert_lock_ok(rc, &err);
        assert_string_equal(out.region, "DEFAULT");
        assert_string_equal(out.table_prefix, "INT_");
        assert_int_equal(out.ttl_ms, 10000);
        assert_int_equal(out.pool_size, 4);
        assert_int_equal(out.ownership, SQLOCK_OWNED_BY_THREAD);
        assert_int_equal(out.key_rule, SQLOCK_KEY_CURRENT);
        assert_int_equal(out.peer_ttl_ms, 10000);
        assert_int_equal(out.connect_timeout_ms, 5000);
        assert_int_equal(out.statement_timeout_ms, 1250);
        assert_int_equal(out.poll_ms, 100);
        assert_null(out.on_event);
    }
}

TEST(test_statement_timeout_follows_the_ttl)
{
    static const struct {
        uint32_t ttl;
        uint32_t expected;
    } rows[] = {
        {10, 500}, {4000, 500}, {8000, 1000}, {40000, 5000}, {604800000, 5000}};
    size_t i;

    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        sqlock_options options = basic();
        sqlock_options out;

        options.ttl_ms = rows[i].ttl;
        assert_int_equal(lk_options_complete(&out, &options, NULL), 0);
        assert_int_equal(out.statement_timeout_ms, rows[i].expected);
    }
}

TEST(test_margin_is_a_twentieth_of_the_ttl)
{
    sqlock_options options = basic();

    assert_int_equal(lk_margin_ms(&options, 10), 1);
    assert_int_equal(lk_margin_ms(&options, 20), 1);
    assert_int_equal(lk_margin_ms(&options, 40), 2);
    assert_int_equal(lk_margin_ms(&options, 10000), 500);
    options.margin_ms = 7;
    assert_int_equal(lk_margin_ms(&options, 10000), 7);
}

#define NUMBER_ROWS 6

TEST(test_numbers_out_of_bounds_are_refused)
{
    static const struct {
        size_t offset;
        uint32_t least;
        uint32_t most;
    } rows[NUMBER_ROWS] = {
        {offsetof(sqlock_options, ttl_ms), 10, 604800000},
        {offsetof(sqlock_options, peer_ttl_ms), 10, 604800000},
        {offsetof(sqlock_options, pool_size), 1, 64},
        {offsetof(sqlock_options, connect_timeout_ms), 10, 3600000},
        {offsetof(sqlock_options, statement_timeout_ms), 10, 3600000},
        {offsetof(sqlock_options, poll_ms), 1, 3600000},
    };
    size_t i;

    for (i = 0; i < NUMBER_ROWS; i++) {
        sqlock_options options = basic();
        uint32_t value;

        value = rows[i].least;
        memcpy((char *)&options + rows[i].offset, &value, sizeof value);
        expect(&options, 0);
        value = rows[i].most;
        memcpy((char *)&options + rows[i].offset, &value, sizeof value);
        expect(&options, 0);
        value = rows[i].most + 1;
        memcpy((char *)&options + rows[i].offset, &value, sizeof value);
        expect_refused(&options);
        value = UINT32_MAX;
        memcpy((char *)&options + rows[i].offset, &value, sizeof value);
        expect_refused(&options);
        if (rows[i].least > 1) {
            value = rows[i].least - 1; /* such as 9 ms */
            memcpy((char *)&options + rows[i].offset, &value, sizeof value);
            expect_refused(&options);
        }
    }
}

TEST(test_a_margin_must_leave_some_of_the_ttl)
{
    sqlock_options options = basic();

    options.ttl_ms = 100;
    options.margin_ms = 99;
    expect(&options, 0);
    options.margin_ms = 100;
    expect_refused(&options);
    options.margin_ms = UINT32_MAX;
    expect_refused(&options);
}

static void fill(char *out, size_t length)
{
    memset(out, 'r', length);
    out[length] = '\0';
}

TEST(test_regions_at_their_limits)
{
    static const char *const bad[] = {
        "", "#tx", "shop#tx", "a\xff", "\xed\xa0\x80", "\xc3", " ", "shop ",
    };
    char region[200];
    sqlock_options options = basic();
    size_t i;

    options.region = region;
    fill(region, 1);
    expect(&options, 0);
    fill(region, 97);
    expect(&options, 0);
    fill(region, 98);
    expect_refused(&options);
    fill(region, 199);
    expect_refused(&options);
    options.region = "#txx";
    expect(&options, 0);
    options.region = "tx";
    expect(&options, 0);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.region = bad[i];
        expect_refused(&options);
    }
}

TEST(test_notes_at_their_limits)
{
    char note[100];
    sqlock_options options = basic();

    options.holder_note = note;
    fill(note, 80);
    expect(&options, 0);
    fill(note, 81);
    expect_refused(&options);
    options.holder_note = "n\xff";
    expect_refused(&options);
    options.holder_note = "";
    expect(&options, 0);
}

TEST(test_a_prefix_that_is_no_identifier_is_refused_at_open)
{
    static const char *const bad[] = {"x;y", "x y", "a.b.c",
                                      "9",   "x\"", "\xff"};
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        sqlock_options options = basic();
        sqlock_registry *registry = (sqlock_registry *)1;
        sqlock_error err = {0};
        int rc;

        options.table_prefix = bad[i];
        rc = sqlock_registry_open(&registry, "sqlite:/nonexistent/dir/db",
                                  &options, &err);
        assert_code(SQLOCK_EINVAL, rc, &err);
        assert_null(registry);
    }
}

TEST(test_choices_that_do_not_exist_are_refused)
{
    sqlock_options options = basic();

    options.ownership = (sqlock_ownership)3;
    expect_refused(&options);
    options.ownership = (sqlock_ownership)-1;
    expect_refused(&options);
    options = basic();
    options.key_rule = (sqlock_key_rule)3;
    expect_refused(&options);
    options = basic();
    options.event_level = (sqlock_level)(SQLOCK_LEVEL_DEBUG - 1);
    expect_refused(&options);
    options.event_level = (sqlock_level)(SQLOCK_LEVEL_ERROR + 1);
    expect_refused(&options);
}

TEST(test_a_struct_of_the_wrong_size_is_refused)
{
    sqlock_options options = basic();

    options.size = 0;
    expect_refused(&options);
    options.size = sizeof options + 1;
    expect_refused(&options);
    options.size = (size_t)-1;
    expect_refused(&options);
}

/* An older program passes a shorter struct: the members behind its end count as
 * zero. */
TEST(test_a_shorter_struct_of_an_older_program_is_taken)
{
    sqlock_options options = basic();
    sqlock_options out;

    options.ttl_ms = 1234;
    options.poll_ms = 9;
    options.size = offsetof(sqlock_options, poll_ms);
    assert_int_equal(lk_options_complete(&out, &options, NULL), 0);
    assert_int_equal(out.ttl_ms, 1234);
    assert_int_equal(out.poll_ms, 100);
}

/* No header has such a struct: a member would be read by half. */
TEST(test_a_size_that_ends_within_a_member_is_refused)
{
    sqlock_options options = basic();
    size_t size;

    for (size = sizeof size; size <= sizeof options; size++) {
        options.size = size;
        if (size % sizeof(void *) != 0)
            expect_refused(&options);
        else
            expect(&options, 0);
    }
}

TEST(test_ttl_of_one_call_at_its_limits)
{
    sqlock_options options = basic();
    sqlock_error err = {0};
    uint32_t ttl = 1;
    int rc = lk_ttl_check(&options, &ttl, 0, 777, &err);

    assert_lock_ok(rc, &err);
    assert_int_equal(ttl, 777);
    rc = lk_ttl_check(&options, &ttl, 10, 777, &err);
    assert_lock_ok(rc, &err);
    assert_int_equal(ttl, 10);
    rc = lk_ttl_check(&options, &ttl, 604800000, 777, &err);
    assert_lock_ok(rc, &err);
    rc = lk_ttl_check(&options, &ttl, 604800001, 777, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    rc = lk_ttl_check(&options, &ttl, 9, 777, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
    options.margin_ms = 500;
    rc = lk_ttl_check(&options, &ttl, 501, 777, &err);
    assert_lock_ok(rc, &err);
    rc = lk_ttl_check(&options, &ttl, 500, 777, &err);
    assert_code(SQLOCK_EINVAL, rc, &err);
}
