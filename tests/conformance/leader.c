/*
 * leader.c - which texts a leader can publish, and where they are told
 */
#include "conformance.h"

#include <string.h>

#include "sqlock/leader.h"

/* --- what is published --- */

/* Assert that another registry tells this text of the lock; NULL: none. */
static void check_text(struct fixture *f, const char *expected)
{
    sqlock_info *info = NULL;

    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    if (expected == NULL)
        assert_null(info->text);
    else if (info->text == NULL)
        fail_msg("no text is told, not %s", expected);
    else
        assert_string_equal(info->text, expected);
    sqlock_info_free(info, 1);
}

static void publish(struct fixture *f, sqlock_lock *lock, const char *text)
{
    assert_ok(sqlock_publish(lock, text, &f->err));
    check_text(f, text);
}

static sqlock_lock *leader(struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, LONG_TTL_MS);
    return lock;
}

TEST_ON(test_a_leader_publishes_a_text, ON_ALL, IN_SQLOCK)
{
    static const char *const texts[] = {
        "10.0.0.7:8080",
        "10.0.0.8:8080",
        "10.0.0.8:8080",
        "",
        "\"quoted\" 'text' \\u0041 \\ { [\" \"],",
        "a\nb\tc\x01\x7f",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92",
    };
    char longest[SQLOCK_LEADER_TEXT_MAX + 1];
    sqlock_lock *lock = leader(f);
    int64_t token = sqlock_token(lock);

    check_text(f, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_row(texts[i]);
        publish(f, lock, texts[i]);
    }
    check_row(NULL);
    memset(longest, 0x1f, sizeof longest);
    longest[SQLOCK_LEADER_TEXT_MAX] = '\0';
    publish(f, lock, longest);
    lock_renew(lock, LONG_TTL_MS);
    check_text(f, longest);
    assert_int_equal(sqlock_token(lock), token);
    lock_give(lock);
    check_text(f, NULL);
    lock_take(lock, LONG_TTL_MS);
    check_text(f, NULL);
    publish(f, lock, "again");
    lock_end(lock);
}

/* A list tells it, too. */
TEST_ON(test_a_list_tells_the_text, ON_ALL, IN_SQLOCK)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_lock *lock = leader(f);
    sqlock_info *rows = NULL;
    size_t count = 0;

    publish(f, lock, "listed");
    options.pattern = f->name;
    options.sort = SQLOCK_SORT_HELD;
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(f->b, &options, &rows, &count, &f->err));
        assert_int_equal(count, 1);
        assert_string_equal(rows[0].text, "listed");
        assert_int_equal(rows[0].mode, SQLOCK_EXCLUSIVE);
        sqlock_info_free(rows, count);
    }
    fixture_expire(f, f->name);
    assert_ok(sqlock_find(f->b, &options, &rows, &count, &f->err));
    assert_int_equal(count, 1);
    assert_null(rows[0].text);
    sqlock_info_free(rows, count);
    (void)!sqlock_release(lock, NULL);
    lock_drop(lock);
}

/* --- what is refused --- */

TEST_ON(test_texts_are_checked, ON_ALL, IN_SQLOCK)
{
    char longer[SQLOCK_LEADER_TEXT_MAX + 2];
    sqlock_lock *lock = leader(f);

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    publish(f, lock, "stays");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, longer, &f->err));
    assert_contains(f->err.message, "1024");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, "\xff", &f->err));
    assert_contains(f->err.message, "UTF-8");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_publish(NULL, "x", &f->err));
    check_text(f, "stays");
    lock_end(lock);
}
