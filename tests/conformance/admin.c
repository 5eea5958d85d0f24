/*
 * admin.c - listing and showing locks; what cannot be broken
 */
#include "conformance.h"

#include <stddef.h>
#include <stdio.h>

#include "sqlock/lease.h"
#include "support/peer.h"

#define SHORT_MS 150

/* Open a registry in a region of its own, so that a list has no rows of other
 * tests.  Write its name to `region`. */
static sqlock_registry *own_region(struct fixture *f, char region[64])
{
    sqlock_options options = fixture_options(f);

    (void)snprintf(region, 64, "region-%u", f->serial);
    options.region = region;
    options.holder_note = "the note";
    return fixture_registry(f, &options);
}

TEST(test_an_empty_region_lists_nothing)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_info *rows = (sqlock_info *)1;
    size_t count = 9;

    assert_ok(list_all(registry, &rows, &count, &f->err));
    assert_int_equal(count, 0);
    sqlock_info_free(rows, count);
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_show(registry, f->name, &rows, &f->err));
    assert_null(rows);
    registry_end(registry);
}

static void check_held(struct fixture *f, const sqlock_info *info,
                       const sqlock_lock *lock)
{
    struct row row = fixture_row(f, f->name);

    assert_int_equal(info->state, SQLOCK_HELD);
    assert_string_equal(info->key, row.key);
    assert_string_equal(info->client_id, row.client);
    assert_true(info->acquired_at_us == row.created_us);
    assert_true(info->expires_at_us == row.expires_us);
    assert_true(info->remaining_ms > 0);
    assert_true(info->remaining_ms <= LONG_TTL_MS);
    if (f->layout != SQLOCK_LAYOUT_SQLOCK)
        return;
    assert_string_equal(info->name, sqlock_name(lock));
    assert_contains(info->holder, "the note");
    assert_true(check_one_line(info->holder));
}

TEST(test_a_held_lock_is_shown)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_info *info;
    sqlock_info *rows;
    size_t count;

    lock_take(lock, 0);
    assert_ok(sqlock_show(registry, f->name, &info, &f->err));
    check_held(f, info, lock);
    if (f->layout != SQLOCK_LAYOUT_SPRING6)
        assert_true(info->token == sqlock_token(lock));
    else
        assert_true(info->token == 0);
    assert_ok(list_all(registry, &rows, &count, &f->err));
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].client_id, info->client_id);
    sqlock_info_free(rows, count);
    sqlock_info_free(info, 1);
    lock_give(lock);
    registry_end(registry);
}

TEST(test_free_and_expired_locks_are_told_apart)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t token;
    sqlock_info *info;
    int rc;

    lock_take(lock, SHORT_MS);
    token = sqlock_token(lock);
    fixture_await_expiry(f, f->name);
    assert_ok(sqlock_show(registry, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_EXPIRED);
    assert_int_equal(info->remaining_ms, 0);
    assert_string_not_equal(info->client_id, "");
    sqlock_info_free(info, 1);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    rc = sqlock_show(registry, f->name, &info, &f->err);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK) {
        assert_lock_ok(rc, &f->err);
        assert_int_equal(info->state, SQLOCK_FREE);
        assert_string_equal(info->client_id, "");
        assert_null(info->holder);
        assert_true(info->token == token);
        assert_int_equal(info->remaining_ms, 0);
    } else {
        assert_code(SQLOCK_ENOTFOUND, rc, &f->err);
    }
    sqlock_info_free(info, 1);
    registry_end(registry);
}

/* Assert that the row's holder is shown as a peer, or on Spring's layouts,
 * which have no column for it, as unknown. */
static void check_stranger(const struct fixture *f, const sqlock_info *info)
{
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_string_equal(info->holder, "peer");
    else
        assert_null(info->holder);
}

TEST(test_a_long_list_comes_whole_and_by_key)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_info *rows;
    size_t count;
    size_t i;

    fixture_put_many(f, region);
    assert_ok(list_all(registry, &rows, &count, &f->err));
    assert_int_equal(count, FIXTURE_MANY);
    for (i = 0; i < count; i++) {
        char key[SQLOCK_KEY_SIZE];

        (void)snprintf(key, sizeof key, "row-%05zu", i);
        assert_string_equal(rows[i].key, key);
        assert_string_equal(rows[i].client_id, "peer-client");
        check_stranger(f, &rows[i]);
    }
    sqlock_info_free(rows, count);
    registry_end(registry);
    fixture_delete_region(f, region);
}

/* --- breaking --- */

/* A program compiled with an older header has shorter structs.  Members beyond
 * `size` are ignored: here a pattern that matches nothing, and an invalid
 * reason. */
TEST(test_options_of_an_older_header_are_taken)
{
    sqlock_find_options find = SQLOCK_FIND_INIT;
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_info *rows;
    size_t count;

    lock_take(lock, 0);
    find.pattern = "nothing*";
    find.size = offsetof(sqlock_find_options, pattern);
    assert_ok(sqlock_find(registry, &find, &rows, &count, &f->err));
    assert_int_equal(count, 1); /* the pattern was ignored */
    how.client_id = rows[0].client_id;
    how.reason = "\xff";
    how.size = offsetof(sqlock_break_options, reason);
    assert_ok(sqlock_break(registry, f->name, &how, &f->err));
    sqlock_info_free(rows, count);
    assert_true(sqlock_release(lock, &f->err) < 0);
    lock_drop(lock);
    registry_end(registry);
}

TEST(test_breaking_what_is_not_there)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;

    /* neither a token nor a client id */
    assert_fails(SQLOCK_EINVAL,
                 sqlock_break(f->a, f->name, &expected, &f->err));
    expected.token = 1;
    expected.client_id = "00000000-0000-4000-8000-000000000000";
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_break(f->a, f->name, &expected, &f->err));
    expected.size = 0;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_break(f->a, f->name, &expected, &f->err));
    expected.size = sizeof expected;
    expected.reason = "this reason is far longer than the eighty bytes that "
                      "there is room for in the row of a lock";
    assert_fails(SQLOCK_EINVAL,
                 sqlock_break(f->a, f->name, &expected, &f->err));
    expected.reason = "\xff";
    assert_fails(SQLOCK_EINVAL,
                 sqlock_break(f->a, f->name, &expected, &f->err));
}

/* The row says when the holder before the Spring service acquired the lock, not
 * when the service did. */
TEST_ON(test_when_a_peer_acquired_a_used_lock_is_not_known, ON_ALL, IN_SQLOCK)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct peer peer = {f, &f->sql, "11111111-aaaa-4aaa-8aaa-111111111111",
                        LONG_TTL_MS};
    sqlock_info *info;

    lock_take(lock, SHORT_MS);
    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    assert_true(info->acquired_at_us > 0 && info->held_ms >= 0);
    sqlock_info_free(info, 1);
    fixture_await_expiry(f, f->name);
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_HELD);
    assert_string_equal(info->holder, "peer");
    assert_int_equal(info->acquired_at_us, 0);
    assert_int_equal(info->held_ms, -1);
    sqlock_info_free(info, 1);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_int_equal(peer_release(&peer, f->name), 1);
    lock_drop(lock);
}

TEST(test_a_holder_that_is_no_sqlock_is_a_peer)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_info *rows;
    size_t count;

    fixture_put_row(f, "some-key", region, "somebody", -1000, 60000000);
    assert_ok(list_all(registry, &rows, &count, &f->err));
    assert_int_equal(count, 1);
    check_stranger(f, &rows[0]);
    sqlock_info_free(rows, count);
    registry_end(registry);
}

/* sqlock_find() gives the taken locks only, ordered and limited by the
 * database: those held for longest first. */
TEST(test_held_locks_are_found_in_order)
{
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_info *rows;
    size_t count;

    fixture_put_row(f, "first-key", region, "somebody", -9000, 60000000);
    lock_take(lock, LONG_TTL_MS);
    options.sort = SQLOCK_SORT_HELD;
    assert_ok(sqlock_find(registry, &options, &rows, &count, &f->err));
    assert_int_equal(count, 2);
    assert_string_equal(rows[0].key, "first-key");
    assert_true(rows[0].held_ms > 0);
    assert_string_equal(rows[1].key, sqlock_key(lock));
    assert_string_equal(rows[1].region, region);
    assert_int_equal(rows[1].waiters,
                     f->layout == SQLOCK_LAYOUT_SQLOCK ? 0 : -1);
    sqlock_info_free(rows, count);
    options.limit = 1;
    assert_ok(sqlock_find(registry, &options, &rows, &count, &f->err));
    assert_int_equal(count, 1);
    sqlock_info_free(rows, count);
    lock_give(lock);
    assert_ok(sqlock_find(registry, NULL, &rows, &count, &f->err));
    assert_int_equal(count, 1);
    sqlock_info_free(rows, count);
    options.sort = (sqlock_sort)9;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_find(registry, &options, &rows, &count, &f->err));
    assert_null(rows);
    registry_end(registry);
}

/* Behind those that are held come those that have expired, and last those of
 * peers, which do not say since when. */
TEST_ON(test_locks_that_nobody_has_for_long_come_last, ON_ALL, IN_SQLOCK)
{
    static const char *const keys[] = {"held", "long", "brief", "peer"};
    char region[64];
    sqlock_registry *registry = own_region(f, region);
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_info *rows;
    size_t count;

    fixture_put_row(f, "peer", region, "somebody", -90000000, 60000000);
    (void)sql_run(&f->sql, "UPDATE %s SET FENCE = 1 WHERE REGION = '%s'",
                  f->table, region);
    fixture_put_row(f, "brief", region, "gone", -90000000, -89000000);
    fixture_put_row(f, "long", region, "gone", -90000000, -1000000);
    fixture_put_row(f, "held", region, "somebody", -1000000, 60000000);
    options.sort = SQLOCK_SORT_HELD;
    assert_ok(sqlock_find(registry, &options, &rows, &count, &f->err));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(rows[i].key, keys[i]);
    sqlock_info_free(rows, count);
    registry_end(registry);
    fixture_delete_region(f, region);
}
