/*
 * keys.c - any name can be locked, and different names are different locks
 * (F29)
 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

#define NAME_LIMIT 10000
#define COLUMN_LIMIT 255 /* LOCK_NAME */

/* Acquire and release a lock by that name.  While it is held, the other
 * registry finds it busy, and sqlock_show() gives its key and its name. */
static void check_name(struct fixture *f, const char *name)
{
    sqlock_lock *lock = lock_obtain(f->a, name);
    sqlock_lock *other = lock_obtain(f->b, name);
    sqlock_info *info;

    assert_string_equal(sqlock_name(lock), name);
    lock_take(lock, 0);
    assert_busy(other);
    assert_ok(sqlock_show(f->b, name, &info, &f->err));
    assert_string_equal(info->key, sqlock_key(lock));
    if (f->layout == SQLOCK_LAYOUT_SQLOCK) {
        assert_non_null(info->name);
        assert_true(strlen(info->name) <= COLUMN_LIMIT);
        assert_int_equal(strncmp(name, info->name, strlen(info->name)), 0);
        if (strlen(name) <= COLUMN_LIMIT)
            assert_string_equal(info->name, name);
    } else {
        assert_null(info->name);
    }
    sqlock_info_free(info, 1);
    lock_give(lock);
    lock_drop(lock);
    lock_drop(other);
}

TEST(test_names_of_every_kind)
{
    static const char *const names[] = {
        "",
        " ",
        "'; DROP TABLE INT_LOCK; --",
        "\" OR 1=1 --",
        "back\\slash",
        "`tick`",
        "%s%n%d",
        "{table} {1} $1 ?",
        "line\nbreak\ttab\r\x01\x7f",
        "\xe4\xbd\xa0\xe5\xa5\xbd",
        ("Stra\xc3\x9f"
         "e"),
        "\xf0\x9f\x94\x92",
        "NULL",
        "0",
        "7ab1de00-0000-4000-8000-00000000ABCD",
        "7ab1de00-0000-4000-8000-00000000abcd", /* of the same key */
    };
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++)
        check_name(f, names[i]);
}

TEST(test_names_of_every_length)
{
    static const size_t lengths[] = {1,   36,  37,   100,  254,       255,
                                     256, 257, 1000, 9999, NAME_LIMIT};
    char *name = malloc(NAME_LIMIT + 2);
    sqlock_lock *lock;
    size_t i;

    assert_non_null(name);
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(name, 'n', lengths[i]);
        name[lengths[i]] = '\0';
        check_name(f, name);
    }
    memset(name, 'n', NAME_LIMIT + 1);
    name[NAME_LIMIT + 1] = '\0';
    assert_fails(SQLOCK_EINVAL, sqlock_obtain(&lock, f->a, name, &f->err));
    assert_null(lock);
    free(name);
}

/* LOCK_NAME is cut, but never in the middle of a character. */
TEST(test_long_names_of_long_characters)
{
    char name[402];
    size_t shift;

    for (shift = 0; shift < 4; shift++) {
        size_t length = shift;

        memset(name, 'a', shift);
        while (length + 4 < sizeof name) {
            memcpy(name + length, "\xf0\x9f\x94\x92", 4);
            length += 4;
        }
        name[length] = '\0';
        check_name(f, name);
    }
}

TEST(test_invalid_names_are_refused)
{
    static const char *const bad[] = {"\xff", "a\x80", "\xc3", "\xed\xa0\x80",
                                      "\xc0\x80"};
    sqlock_info *info;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        sqlock_break_options expected = SQLOCK_BREAK_INIT;
        sqlock_lock *lock;
        int rc = sqlock_obtain(&lock, f->a, bad[i], &f->err);

        assert_code(SQLOCK_EINVAL, rc, &f->err);
        assert_null(lock);
        assert_fails(SQLOCK_EINVAL, sqlock_show(f->a, bad[i], &info, &f->err));
        expected.token = 1;
        expected.client_id = "x";
        assert_fails(SQLOCK_EINVAL,
                     sqlock_break(f->a, bad[i], &expected, &f->err));
    }
}

TEST(test_F29_names_that_look_alike_are_different_locks)
{
    static const char *const names[] = {"Job",
                                        "JOB",
                                        "job",
                                        "job ",
                                        " job",
                                        "0",
                                        "641",
                                        ("j\xc3\xb6"
                                         "b")};
    size_t count = sizeof names / sizeof *names;
    sqlock_lock *locks[sizeof names / sizeof *names];
    size_t i;

    for (i = 0; i < count; i++) {
        locks[i] = lock_obtain(i % 2 ? f->a : f->b, names[i]);
        lock_take(locks[i], 0);
    }
    for (i = 0; i < count; i++) {
        lock_give(locks[i]);
        lock_drop(locks[i]);
    }
}

static sqlock_registry *registry_by_rule(struct fixture *f,
                                         sqlock_key_rule rule)
{
    sqlock_options options = fixture_options(f);

    options.key_rule = rule;
    return fixture_registry(f, &options);
}

/* With SQLOCK_KEY_RAW the name is the key: the column LOCK_KEY must distinguish
 * upper and lower case.  Spring's own tables compare keys by the database's
 * default collation, which may ignore case. */
TEST_ON(test_F29_raw_keys_differ_by_case, ON_ALL, IN_SQLOCK)
{
    sqlock_registry *raw = registry_by_rule(f, SQLOCK_KEY_RAW);
    sqlock_lock *lower = lock_obtain(raw, "job-a");
    sqlock_lock *upper = lock_obtain(raw, "JOB-A");

    assert_string_equal(sqlock_key(lower), "job-a");
    lock_take(lower, 0);
    lock_take(upper, 0);
    lock_give(lower);
    lock_give(upper);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_obtain(&lower, raw,
                               "0123456789012345678901234567890123456",
                               &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_obtain(&lower, raw, "", &f->err));
    registry_end(raw);
}

/* A subclass of Spring's registry may store the name itself (pathFor). */
TEST(test_raw_key_is_what_is_in_the_table)
{
    sqlock_registry *raw = registry_by_rule(f, SQLOCK_KEY_RAW);
    sqlock_registry *another = registry_by_rule(f, SQLOCK_KEY_RAW);
    sqlock_lock *lock = lock_obtain(raw, "raw/key-1");
    sqlock_lock *other = lock_obtain(another, "raw/key-1");

    lock_take(lock, 0);
    assert_int_equal(sql_integer(&f->sql,
                                 "SELECT count(*) FROM %s"
                                 " WHERE LOCK_KEY = 'raw/key-1'",
                                 f->table),
                     1);
    assert_busy(other);
    lock_give(lock);
    lock_take_and_give(other);
    registry_end(raw);
    registry_end(another);
}

TEST(test_the_legacy_rule_meets_old_spring)
{
    sqlock_registry *legacy = registry_by_rule(f, SQLOCK_KEY_LEGACY);
    sqlock_lock *old = lock_obtain(legacy, "1-1-1-1-1");
    sqlock_lock *now = lock_obtain(f->a, "1-1-1-1-1");
    sqlock_lock *same = lock_obtain(f->a, f->name);

    assert_string_equal(sqlock_key(old),
                        "00000001-0001-0001-0001-000000000001");
    lock_take(old, 0);
    lock_take(now, 0); /* another key by the current rule */
    lock_give(now);
    lock_give(old);
    lock_take(same, 0);
    assert_busy(lock_obtain(legacy, f->name));
    lock_give(same);
    lock_drop(same);
    lock_drop(now);
    registry_end(legacy);
}

/* Hold the lock of one name in two regions at once: they do not exclude each
 * other. */
static void check_regions(struct fixture *f, const char *one, const char *two)
{
    sqlock_registry *first = fixture_in_region(f, one);
    sqlock_registry *second = fixture_in_region(f, two);
    sqlock_lock *lock = lock_obtain(first, f->name);
    sqlock_lock *other = lock_obtain(second, f->name);

    lock_take(lock, 0);
    lock_take(other, 0);
    lock_give(lock);
    lock_renew(other, 0);
    lock_give(other);
    registry_end(first);
    registry_end(second);
}

TEST(test_regions_are_apart)
{
    char longest[98];

    memset(longest, 'r', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check_regions(f, "shop", "store");
    check_regions(f, "'; --", "\"");
    check_regions(f, longest, "r");
    check_regions(f, "\xe4\xbd\xa0\xe5\xa5\xbd", "\xf0\x9f\x94\x92");
}

TEST_ON(test_F29_regions_differ_by_case, ON_ALL, IN_SQLOCK)
{
    check_regions(f, "shop", "SHOP");
}
