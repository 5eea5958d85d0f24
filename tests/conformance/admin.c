/*
 * admin.c - listing, showing and breaking locks
 */
#include "conformance.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

static void test_an_empty_region_lists_nothing(void **state)
{
    struct fixture *f = *state;
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

static void test_a_held_lock_is_shown(void **state)
{
    struct fixture *f = *state;
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

static void test_free_and_expired_locks_are_told_apart(void **state)
{
    struct fixture *f = *state;
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

static void test_a_long_list_comes_whole_and_by_key(void **state)
{
    struct fixture *f = *state;
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

/* Return options that name the holder in that row.  They point into *row. */
static sqlock_break_options expecting(const struct row *row)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;

    expected.token = row->fence;
    expected.client_id = row->client;
    return expected;
}

static void test_F80_a_broken_holder_finds_itself_lost(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_break_options expected;
    struct row before;
    struct row after;

    lock_take(lock, LONG_TTL_MS);
    before = fixture_row(f, f->name);
    expected = expecting(&before);
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    after = fixture_row(f, f->name);
    assert_string_not_equal(after.client, before.client);
    assert_true(after.expires_us == before.expires_us);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_less(before.fence, after.fence);
    /* the lock is busy until the old lease would have expired */
    assert_busy(other);
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_false(sqlock_is_held(lock));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_busy(other);
    lock_drop(lock);
    lock_drop(other);
}

static void
test_F80_a_broken_lock_passes_on_when_the_lease_is_over(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_break_options expected;
    struct row row;

    lock_take(lock, 400);
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    assert_ok(lock_try(other, PATIENCE_MS, 0, &f->err));
    assert_less(row.expires_us, sqlock_token(other));
    lock_give(other);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    lock_drop(other);
}

static void test_breaking_now_frees_at_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_break_options expected;
    int64_t token;
    struct row row;

    lock_take(lock, LONG_TTL_MS);
    token = sqlock_token(lock);
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.now = true;
    expected.reason = "host burnt down";
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    lock_take(other, 0);
    assert_less(token, sqlock_token(other));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_true(sqlock_is_held(other));
    lock_give(other);
    lock_drop(lock);
    lock_drop(other);
}

/* Assert that sqlock_show() gives this state and this holder. */
static void check_holder(struct fixture *f, sqlock_state state,
                         const char *expected)
{
    sqlock_info *info;

    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    assert_int_equal(info->state, state);
    assert_string_equal(info->holder, expected);
    sqlock_info_free(info, 1);
}

static void test_F80_breaking_keeps_who_and_why(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_break_options expected;
    struct row row;

    lock_take(lock, LONG_TTL_MS);
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.reason = "host burnt down";
    expected.who = "anna@desk";
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    check_holder(f, SQLOCK_HELD, "broken by anna@desk: host burnt down");
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.reason = "no more patience";
    expected.who = "anna@desk";
    expected.now = true;
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    check_holder(f, SQLOCK_FREE, "broken by anna@desk: no more patience");
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void
test_F80_breaking_another_than_the_holder_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_break_options expected;
    struct row row;
    struct row after;

    lock_take(lock, LONG_TTL_MS);
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.token = row.fence + 1;
    expected.client_id = "00000000-0000-4000-8000-000000000000";
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_break(f->b, f->name, &expected, &f->err));
    expected.now = true;
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_break(f->b, f->name, &expected, &f->err));
    after = fixture_row(f, f->name);
    assert_string_equal(after.client, row.client);
    assert_true(after.fence == row.fence);
    lock_renew(lock, 0);
    lock_give(lock);
    /* The lock is free now; only sqlock's layout keeps the row. */
    expected = expecting(&row);
    assert_fails(f->layout == SQLOCK_LAYOUT_SQLOCK ? SQLOCK_ECONFLICT
                                                   : SQLOCK_ENOTFOUND,
                 sqlock_break(f->b, f->name, &expected, &f->err));
    lock_drop(lock);
}

/* A program compiled with an older header has shorter structs.  Members beyond
 * `size` are ignored: here a pattern that matches nothing, and an invalid
 * reason. */
static void test_options_of_an_older_header_are_taken(void **state)
{
    struct fixture *f = *state;
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

static void test_breaking_what_is_not_there(void **state)
{
    struct fixture *f = *state;
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

/* A client id alone, or a token alone, names a holder that is sqlock.  A client
 * id and a token of different holders are a conflict. */
static void test_a_holder_is_named_by_client_id_or_token(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_break_options expected;
    struct row row;

    lock_take(lock, LONG_TTL_MS);
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.token = row.fence + 1; /* not that of the client id */
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_break(f->b, f->name, &expected, &f->err));
    assert_contains(f->err.message, row.client);
    expected.token = 0;
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    row = fixture_row(f, f->name);
    expected = expecting(&row);
    expected.client_id = NULL;
    expected.now = true;
    assert_ok(sqlock_break(f->b, f->name, &expected, &f->err));
    lock_take_and_give(lock);
    lock_drop(lock);
}

/* A lock is released, and a peer takes its row over.  The row still has our
 * last token, but breaking by that token is a conflict: it does not end the
 * lease of the peer, which has no token. */
static void test_a_token_names_no_peer(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct peer peer = {f, &f->sql, "11111111-aaaa-4aaa-8aaa-111111111111",
                        LONG_TTL_MS};
    sqlock_break_options expected = SQLOCK_BREAK_INIT;

    lock_take(lock, 0);
    expected.token = sqlock_token(lock);
    lock_give(lock);
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    assert_true(fixture_row(f, f->name).fence == expected.token);
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_break(f->b, f->name, &expected, &f->err));
    assert_contains(f->err.message, "without a token");
    assert_contains(f->err.message, peer.client);
    assert_int_equal(peer_renew(&peer, f->name), 1);
    assert_int_equal(peer_release(&peer, f->name), 1);
    lock_drop(lock);
}

/* The row says when the holder before the Spring service acquired the lock, not
 * when the service did. */
static void test_when_a_peer_acquired_a_used_lock_is_not_known(void **state)
{
    struct fixture *f = *state;
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

/* A holder is named by both: its token with the client id of another does not
 * name it, nor does its client id with another token. */
static void test_a_token_and_another_client_id_name_nobody(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char client_id[SQLOCK_KEY_SIZE];
    sqlock_break_options expected = SQLOCK_BREAK_INIT;

    lock_take(lock, 0);
    sqlock_client_id(lock, client_id);
    for (int i = 0; i < 4; i++) {
        expected.token = sqlock_token(lock) + (i < 2 ? 0 : 1);
        expected.client_id =
            i < 2 ? "22222222-aaaa-4aaa-8aaa-222222222222" : client_id;
        expected.now = i % 2 == 1;
        assert_fails(SQLOCK_ECONFLICT,
                     sqlock_break(f->b, f->name, &expected, &f->err));
        assert_contains(f->err.message, client_id);
        lock_renew(lock, 0);
    }
    lock_end(lock);
}

/* There is nothing to break in a lease that is over: the row stays as it is. */
static void test_an_expired_lease_is_not_broken(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char client_id[SQLOCK_KEY_SIZE];
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    struct row before, after;
    lock_take(lock, SHORT_MS);
    sqlock_client_id(lock, client_id);
    fixture_await_expiry(f, f->name);
    expected.client_id = client_id;
    before = fixture_row(f, f->name);
    for (int i = 0; i < 2; i++) {
        expected.now = i == 1;
        assert_fails(SQLOCK_ECONFLICT,
                     sqlock_break(f->b, f->name, &expected, &f->err));
        assert_contains(f->err.message, "has expired");
        after = fixture_row(f, f->name);
        assert_memory_equal(&before, &after, sizeof before);
    }
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* A peer inserts the row, which has therefore never had a token.  The peer's
 * client id is enough to break its lease. */
static void test_a_peer_is_broken_by_its_client_id(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct peer peer = {f, &f->sql, "11111111-aaaa-4aaa-8aaa-111111111111",
                        LONG_TTL_MS};
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    int rc;

    expected.client_id = peer.client;
    expected.now = true;
    if (f->layout == SQLOCK_LAYOUT_SPRING6)
        peer.ttl_ms = PEER_TTL_MS;
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    rc = sqlock_break(f->b, f->name, &expected, &f->err);
    if (f->layout == SQLOCK_LAYOUT_SPRING6 && rc == SQLOCK_ECONFLICT)
        skip_or_fail("the peer's lease was over too soon");
    assert_lock_ok(rc, &f->err);
    assert_int_equal(peer_renew(&peer, f->name), 0);
    assert_int_equal(peer_release(&peer, f->name), 0);
    lock_take_and_give(lock);
    lock_drop(lock);
}

static void test_a_holder_that_is_no_sqlock_is_a_peer(void **state)
{
    struct fixture *f = *state;
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
static void test_held_locks_are_found_in_order(void **state)
{
    struct fixture *f = *state;
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

static const struct test tests[] = {
    TEST(test_held_locks_are_found_in_order),
    TEST(test_an_empty_region_lists_nothing),
    TEST(test_a_held_lock_is_shown),
    TEST(test_free_and_expired_locks_are_told_apart),
    TEST(test_a_long_list_comes_whole_and_by_key),
    TEST(test_F80_a_broken_holder_finds_itself_lost),
    TEST(test_F80_a_broken_lock_passes_on_when_the_lease_is_over),
    TEST(test_breaking_now_frees_at_once),
    TEST_ON(test_F80_breaking_keeps_who_and_why, ON_ALL, IN_SQLOCK),
    TEST(test_F80_breaking_another_than_the_holder_is_a_conflict),
    TEST(test_options_of_an_older_header_are_taken),
    TEST(test_breaking_what_is_not_there),
    TEST_ON(test_a_holder_is_named_by_client_id_or_token, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_token_names_no_peer, ON_ALL, IN_SQLOCK),
    TEST_ON(test_when_a_peer_acquired_a_used_lock_is_not_known, ON_ALL,
            IN_SQLOCK),
    TEST_ON(test_a_token_and_another_client_id_name_nobody, ON_ALL, IN_SQLOCK),
    TEST(test_an_expired_lease_is_not_broken),
    TEST(test_a_peer_is_broken_by_its_client_id),
    TEST(test_a_holder_that_is_no_sqlock_is_a_peer),
};
const struct topic topic_admin = TOPIC(tests);
